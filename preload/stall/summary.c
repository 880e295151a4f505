/* summary.c: the dozen lines at exit. See summary.h for the rules.
 *
 * Places are ranked by the GPU idle time charged to them, all calls of one Python stack together
 * (a blocking .to() is a copy and a wait). Thresholds: below 5 % idle nothing is wrong; when less
 * than 70 % of the idle time has a place, the verdict says so.
 */
#include "stall/summary.h"

#include "options/config.h"
#include "record/record.h"
#include "stack/place.h"
#include "stack/pystack.h"
#include "stall/site.h"

#include <string.h>

#define TOP_PLACES        4
#define TOP_GUARDS        3
#define COUNTS_MAX        256
#define HEALTHY_PERCENT   5
#define UNSEEN_PERCENT    5 /* of the staged copies: with more of them nothing is called healthy */
#define EXPLAINED_PERCENT 70

/* One place: all sites with the same Python stack, or one native site. */
struct row {
    const struct gb_site *site; /* the one with the most idle time */
    uint64_t site_idle_ns, idle_ns, calls;
    uint64_t copy_calls, copy_bytes;
};

static struct {
    struct row rows[GB_SITE_MAX];
    uint32_t count;
    uint64_t explained_ns;
    struct gb_named_count counts[COUNTS_MAX];
    int count_count;
} table;

static struct row *row_of(const struct gb_site *site)
{
    for (uint32_t i = 0; site->stack_id && site->stack_id != GB_PYSTACK_OVERFLOW && i < table.count;
         i++)
        if (table.rows[i].site->stack_id == site->stack_id)
            return &table.rows[i];
    table.rows[table.count] = (struct row){.site = site};
    return &table.rows[table.count++];
}

static void add_site(struct gb_site *site)
{
    uint64_t idle = GB_READ(site->idle_ns), calls = GB_READ(site->calls);
    if (!idle && !calls)
        return;
    struct row *row = row_of(site);
    if (idle > row->site_idle_ns) {
        row->site = site;
        row->site_idle_ns = idle;
    }
    row->idle_ns += idle;
    if (calls > row->calls)
        row->calls = calls;
    if (site->id && strcmp(gb_hook_family(site->hook), "copy") == 0) {
        row->copy_calls += calls;
        row->copy_bytes += GB_READ(site->bytes);
    }
    if (site->id)
        table.explained_ns += idle;
}

/* Moves the TOP_PLACES rows with the most idle time to the front. */
static void rank_rows(void)
{
    for (uint32_t i = 0; i < TOP_PLACES && i < table.count; i++)
        for (uint32_t k = i + 1; k < table.count; k++)
            if (table.rows[k].idle_ns > table.rows[i].idle_ns) {
                struct row swap = table.rows[i];
                table.rows[i] = table.rows[k];
                table.rows[k] = swap;
            }
}

static void collect(void)
{
    table.count = 0;
    table.explained_ns = 0;
    uint32_t count = gb_site_count();
    for (uint32_t id = 0; id < count && id < GB_SITE_MAX; id++)
        add_site(gb_site_at(id));
    rank_rows();
}

static void add_head(struct gb_text *t, const struct gb_summary *s)
{
    static const char *const profiles[] = {"observe", "safe", "max"};
    gb_text_add(t, "gpuboost: ");
    gb_text_add_clean(t, s->program);
    gb_text_add(t, " (pid %ld", s->pid);
    if (*s->rank)
        gb_text_add(t, ", rank %s", s->rank);
    gb_text_add(t, "), ");
    gb_text_add_duration(t, s->wall_ns);
    gb_text_add(t, " since the first CUDA call");
    if (*s->device) {
        gb_text_add(t, " on ");
        gb_text_add_clean(t, s->device);
    }
    gb_text_add(t, ", policy %s\n", profiles[gb_config.policy]);
}

/* The time in which the GPU could have worked: first enqueue to the last drain. */
static uint64_t span_ns(const struct gb_totals *totals, uint64_t now_ns)
{
    uint64_t end =
        totals->last_drain_ns > totals->first_enqueue_ns ? totals->last_drain_ns : now_ns;
    return end > totals->first_enqueue_ns ? end - totals->first_enqueue_ns : 0;
}

static bool is_healthy(const struct gb_totals *totals, uint64_t span)
{
    return totals->idle_ns < span / 100 * HEALTHY_PERCENT &&
           totals->unseen_copies <= totals->staged_copies / 100 * UNSEEN_PERCENT;
}

static void add_verdict(struct gb_text *t, const struct gb_totals *totals, uint64_t span)
{
    bool explained = table.explained_ns >= totals->idle_ns / 100 * EXPLAINED_PERCENT;
    gb_text_add(t, "gpuboost: verdict  ");
    if (span == 0 || totals->idle_ns > span) {
        gb_text_add(t, "n/a: the GPU's idle time could not be measured\n");
        return;
    }
    gb_text_add(t, is_healthy(totals, span) ? "HEALTHY: "
                   : explained              ? "GPU WAITS: "
                                            : "INCOMPLETE: ");
    gb_text_add(t, "the GPU was idle %s", totals->unseen_copies ? "at least " : "");
    gb_text_add_percent(t, totals->idle_ns, span);
    gb_text_add(t, " of ");
    gb_text_add_duration(t, span);
    gb_text_add(t, " (");
    gb_text_add_duration(t, totals->idle_ns);
    gb_text_add(t, ")");
    if (totals->idle_ns) {
        gb_text_add(t, ", of which ");
        gb_text_add_percent(t, table.explained_ns, totals->idle_ns);
        gb_text_add(t, " has a place");
    }
    gb_text_add(t, "\n");
}

static void add_row(struct gb_text *t, const struct row *row, bool first, uint64_t span)
{
    char share[16];
    struct gb_text part;
    gb_text_init(&part, share, sizeof share);
    gb_text_add_percent(&part, row->idle_ns, span);
    gb_text_add(t, "gpuboost: %s  %8llu.%u ms  %6s  ", first ? "why    " : "       ",
                (unsigned long long)(row->idle_ns / 1000000),
                (unsigned)(row->idle_ns / 100000 % 10), share);
    gb_place_add(t, row->site, true);
    gb_text_add(t, "  %s, %llu call%s\n", row->site->id ? gb_hook_name(row->site->hook) : "various",
                (unsigned long long)row->calls, row->calls == 1 ? "" : "s");
}

static void add_why(struct gb_text *t, uint64_t span)
{
    uint64_t rest = 0;
    uint32_t others = 0;
    for (uint32_t i = 0; i < table.count; i++) {
        if (!table.rows[i].idle_ns)
            continue;
        if (i < TOP_PLACES)
            add_row(t, &table.rows[i], i == 0, span);
        else
            others++, rest += table.rows[i].idle_ns;
    }
    if (others) {
        gb_text_add(t, "gpuboost:          and ");
        gb_text_add_duration(t, rest);
        gb_text_add(t, " at %u other place%s\n", others, others == 1 ? "" : "s");
    }
}

static const char *advice(const struct row *row)
{
    const char *family = row->site->id ? gb_hook_family(row->site->hook) : "";
    const char *call = row->site->id ? gb_hook_name(row->site->hook) : "";
    if (row->copy_calls && row->copy_bytes / row->copy_calls > GB_SMALL_COPY_BYTES)
        return gb_config_policy_on((enum gb_switch)gb_config.h2d, GB_PROFILE_SAFE)
                   ? "pin the batch (DataLoader pin_memory=True) and copy with non_blocking=True"
                   : "run with GPUBOOST_POLICY=safe, or pin the batch (pin_memory=True) and copy "
                     "with non_blocking=True";
    if (strcmp(family, "sync") == 0 || strcmp(family, "copy") == 0 || strstr(call, "Synchronize"))
        return "read results less often there: .item(), .cpu() and printing a tensor wait for the "
               "GPU; every 50th step is enough for a log";
    if (strstr(call, "Free") || strstr(call, "Malloc") || strstr(call, "Alloc"))
        return "allocate once: no torch.cuda.empty_cache() in the loop, and pinned buffers that "
               "are kept";
    return NULL;
}

static void add_next(struct gb_text *t, const struct gb_summary *s, bool healthy)
{
    const char *what = table.count && table.rows[0].idle_ns ? advice(&table.rows[0]) : NULL;
    gb_text_add(t, "gpuboost: next     ");
    if (healthy) {
        gb_text_add(t, "nothing to do\n");
    } else if (what) {
        gb_text_add(t, "%s\n", what);
    } else if (*s->record_path) {
        gb_text_add(t, "gpuboost report ");
        gb_text_add_clean(t, s->record_path);
        gb_text_add(t, "\n");
    } else {
        gb_text_add(t, "run again with a record (GPUBOOST_OUT) and see gpuboost report\n");
    }
}

static uint64_t count_of(const char *name)
{
    for (int i = 0; i < table.count_count; i++)
        if (strcmp(table.counts[i].name, name) == 0)
            return table.counts[i].count;
    return 0;
}

static void add_copies(struct gb_text *t, const struct gb_totals *totals)
{
    gb_text_add(t, "gpuboost: fixed    ");
    if (totals->staged_copies) {
        gb_text_add(t, "%llu pageable copies, ", (unsigned long long)totals->staged_copies);
        gb_text_add_bytes(t, totals->staged_bytes);
        gb_text_add(t, ", went through ");
        gb_text_add_bytes(t, totals->ring_bytes);
        gb_text_add(t, " of pinned");
        if (totals->staging_bytes) {
            gb_text_add(t, " and ");
            gb_text_add_bytes(t, totals->staging_bytes);
            gb_text_add(t, " of device");
        }
        gb_text_add(t, " memory");
    } else if (!gb_config_policy_on((enum gb_switch)gb_config.h2d, GB_PROFILE_SAFE)) {
        gb_text_add(t, "nothing: staging is off (GPUBOOST_POLICY, GPUBOOST_H2D)");
    } else {
        gb_text_add(t, "nothing: no copy was staged");
    }
    if (totals->forwarded_copies) {
        gb_text_add(t, "; %llu (", (unsigned long long)totals->forwarded_copies);
        gb_text_add_bytes(t, totals->forwarded_bytes);
        gb_text_add(t, ") left to the driver");
    }
    gb_text_add(t, "\n");
}

static void add_part(struct gb_text *t, bool *begun, uint64_t count, const char *what)
{
    if (!count)
        return;
    gb_text_add(t, "%s%llu %s", *begun ? ", " : "gpuboost:          ", (unsigned long long)count,
                what);
    *begun = true;
}

/* Waits that the program did not have to make, and those that it would not have had to. */
static void add_early(struct gb_text *t, const struct gb_totals *totals)
{
    bool begun = false;
    add_part(t, &begun, totals->early_copies, "copies returned early");
    add_part(t, &begun, count_of("staging.copies"), "went by way of device memory");
    add_part(t, &begun, count_of("elide.waits"), "waits left out");
    add_part(t, &begun, count_of("elide.declined.not_proven"),
             "waits could be left out: run `gpuboost prove` once on this GPU");
    if (begun)
        gb_text_add(t, "\n");
}

/* What a guard said no to: its share of a counter's name, or NULL. The first copies of a run and a
 * GPU that nobody has proven are no guards' doing. */
static const char *guard_of(const char *name, const char **what)
{
    static const struct {
        const char *prefix, *what;
    } kinds[] = {{"h2d.declined.", "copies"},
                 {"early.declined.", "early returns"},
                 {"elide.declined.", "waits"}};
    for (size_t i = 0; i < GB_ARRAY_LEN(kinds); i++) {
        size_t length = strlen(kinds[i].prefix);
        *what = kinds[i].what;
        if (strncmp(name, kinds[i].prefix, length) == 0 && strcmp(name + length, "warming_up") &&
            strcmp(name + length, "not_proven"))
            return name + length;
    }
    return NULL;
}

/* The guards that said no most often; all are in the report. */
static void add_declined(struct gb_text *t)
{
    const char *what, *guard;
    for (int said = 0; said < TOP_GUARDS; said++) {
        struct gb_named_count *most = NULL;
        for (int i = 0; i < table.count_count; i++)
            if (table.counts[i].count && guard_of(table.counts[i].name, &what) &&
                (!most || table.counts[i].count > most->count))
                most = &table.counts[i];
        if (!most) {
            gb_text_add(t, said ? "\n" : "");
            return;
        }
        guard = guard_of(most->name, &what);
        gb_text_add(t, "%s%llu %s (", said ? ", " : "gpuboost: declined ",
                    (unsigned long long)most->count, what);
        for (const char *c = guard; *c; c++)
            gb_text_add(t, "%c", *c == '_' ? ' ' : *c);
        gb_text_add(t, ")");
        most->count = 0;
    }
    gb_text_add(t, "\n");
}

static void add_fixed(struct gb_text *t, const struct gb_totals *totals)
{
    table.count_count = gb_named_counts(table.counts, COUNTS_MAX);
    add_copies(t, totals);
    add_early(t, totals);
    add_declined(t);
}

static void add_cost(struct gb_text *t, const struct gb_summary *s, const struct gb_totals *totals)
{
    gb_text_add(t, "gpuboost: cost     ");
    if (totals->hook_ns) {
        gb_text_add_duration(t, totals->hook_ns);
        gb_text_add(t, " in our own code (");
        gb_text_add_percent(t, totals->hook_ns, s->wall_ns);
        gb_text_add(t, "), estimated from sampled calls");
    } else {
        gb_text_add(t, "n/a: not measured");
    }
    if (s->dropped)
        gb_text_add(t, "; %llu events were dropped", (unsigned long long)s->dropped);
    gb_text_add(t, "\n");
}

/* Only where Python lines are missing: nobody needs to read that all is as it should be. */
static void add_stacks(struct gb_text *t)
{
    const char *status = gb_pystack_status();
    if (strncmp(status, "on", 2) == 0)
        return;
    gb_text_add(t, "gpuboost: stacks   ");
    gb_text_add_clean(t, status);
    gb_text_add(t, "\n");
}

static void add_record(struct gb_text *t, const struct gb_summary *s)
{
    gb_text_add(t, "gpuboost: record   ");
    if (*s->record_problem) {
        gb_text_add(t, "off: ");
        gb_text_add_clean(t, s->record_problem);
    } else if (*s->record_path) {
        gb_text_add_clean(t, s->record_path);
    } else {
        gb_text_add(t, "none (GPUBOOST_OUT=none)");
    }
    gb_text_add(t, "\n");
}

void gb_summary_write(struct gb_text *t, const struct gb_summary *s)
{
    struct gb_totals totals = {0};
    gb_totals_read(&totals);
    add_head(t, s);
    if (!totals.first_enqueue_ns) {
        gb_text_add(t, "gpuboost: verdict  n/a: nothing was given to the GPU\n");
        add_record(t, s);
        return;
    }
    uint64_t span = span_ns(&totals, s->now_ns);
    collect();
    add_verdict(t, &totals, span);
    add_why(t, span);
    add_next(t, s, is_healthy(&totals, span));
    add_fixed(t, &totals);
    add_cost(t, s, &totals);
    add_stacks(t);
    add_record(t, s);
}
