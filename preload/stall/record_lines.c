/* record_lines.c: the lines of record.jsonl and stalls.log. See record_lines.h for the rules. */
#include "stall/record_lines.h"

#include "base/version.h"
#include "options/config.h"
#include "stack/native_stack.h"
#include "stack/place.h"
#include "stack/pystack.h"

#define COUNTS_MAX 256

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* 0 is "never" for a time, not a time. */
static void add_time(struct gb_json *j, const char *key, uint64_t ns)
{
    if (ns)
        gb_json_u64(j, key, ns);
    else
        gb_json_null(j, key);
}

static void add_rank(struct gb_json *j, const char *rank)
{
    uint64_t n = 0;
    for (const char *s = rank; *s; s++)
        n = n * 10 + (uint64_t)(*s - '0');
    if (*rank)
        gb_json_u64(j, "rank", n);
    else
        gb_json_null(j, "rank");
}

static void add_config(struct gb_json *j)
{
    struct gb_config_entry entry;
    gb_json_open(j, "config", '{');
    for (unsigned i = 0; gb_config_entry(i, &entry); i++) {
        gb_json_open(j, entry.name, '{');
        gb_json_text(j, "value", entry.value);
        gb_json_text(j, "source", entry.source);
        gb_json_close(j, '}');
    }
    gb_json_close(j, '}');
}

static const char *profile_name(void)
{
    static const char *const names[] = {"observe", "safe", "max"};
    return names[gb_config.policy];
}

void gb_line_run(struct gb_json *j, const struct gb_run_info *run)
{
    gb_json_open(j, NULL, '{');
    gb_json_text(j, "type", "run");
    gb_json_u64(j, "format", GB_RECORD_FORMAT);
    gb_json_text(j, "version", GB_VERSION);
    gb_json_i64(j, "pid", run->pid);
    gb_json_text(j, "host", run->host);
    add_rank(j, run->rank);
    gb_json_text(j, "job", or_null(run->job));
    gb_json_text(j, "program", run->program);
    gb_json_u64(j, "start_unix_ns", run->start_unix_ns);
    gb_json_u64(j, "start_monotonic_ns", run->start_ns);
    gb_json_text(j, "policy", profile_name());
    add_config(j);
    gb_json_close(j, '}');
}

void gb_line_stacks(struct gb_json *j, const char *python, const char *native)
{
    gb_json_open(j, NULL, '{');
    gb_json_text(j, "type", "stacks");
    gb_json_text(j, "python", python);
    gb_json_text(j, "native", native);
    gb_json_close(j, '}');
}

void gb_line_device(struct gb_json *j, int ordinal, const char *name)
{
    gb_json_open(j, NULL, '{');
    gb_json_text(j, "type", "device");
    gb_json_i64(j, "ordinal", ordinal);
    gb_json_text(j, "name", name);
    gb_json_close(j, '}');
}

static void add_frames(struct gb_json *j, const struct gb_site *site)
{
    struct gb_pyframe frames[GB_RECORD_FRAMES_MAX];
    int count =
        site->stack_id ? gb_pystack_frames(site->stack_id, frames, GB_RECORD_FRAMES_MAX) : 0;
    gb_json_open(j, "frames", '[');
    for (int i = 0; i < count; i++) {
        gb_json_open(j, NULL, '{');
        gb_json_text(j, "file", frames[i].file);
        if (frames[i].line >= 0)
            gb_json_i64(j, "line", frames[i].line);
        else
            gb_json_null(j, "line");
        gb_json_text(j, "func", frames[i].func);
        gb_json_close(j, '}');
    }
    gb_json_close(j, ']');
}

static void add_native(struct gb_json *j, const struct gb_site *site)
{
    char name[160];
    gb_json_open(j, "native", '[');
    for (int i = 0; i < site->native_count && i < (int)GB_ARRAY_LEN(site->native_pcs); i++) {
        gb_native_frame_name(site->native_pcs[i], name, sizeof name);
        gb_json_text(j, NULL, name);
    }
    gb_json_close(j, ']');
}

void gb_line_site(struct gb_json *j, const struct gb_site *site)
{
    bool overflow = site->id == 0; /* many calls of many kinds */
    gb_json_open(j, NULL, '{');
    gb_json_text(j, "type", "site");
    gb_json_u64(j, "id", site->id);
    gb_json_text(j, "call", overflow ? NULL : gb_hook_name(site->hook));
    gb_json_text(j, "family", overflow ? NULL : gb_hook_family(site->hook));
    gb_json_text(j, "module", or_null(site->module));
    add_frames(j, site);
    add_native(j, site);
    gb_json_close(j, '}');
}

static void add_totals(struct gb_json *j)
{
    struct gb_totals t = {0};
    gb_totals_read(&t);
    gb_json_open(j, "totals", '{');
    add_time(j, "first_enqueue_ns", t.first_enqueue_ns);
    add_time(j, "last_drain_ns", t.last_drain_ns);
    gb_json_u64(j, "idle_ns", t.idle_ns);
    gb_json_u64(j, "hook_ns", t.hook_ns);
    gb_json_u64(j, "launches", t.launches);
    gb_json_u64(j, "staged_copies", t.staged_copies);
    gb_json_u64(j, "staged_bytes", t.staged_bytes);
    gb_json_u64(j, "early_copies", t.early_copies);
    gb_json_u64(j, "unseen_copies", t.unseen_copies);
    gb_json_u64(j, "forwarded_copies", t.forwarded_copies);
    gb_json_u64(j, "forwarded_bytes", t.forwarded_bytes);
    gb_json_u64(j, "ring_bytes", t.ring_bytes);
    gb_json_u64(j, "ring_limit_bytes", t.ring_limit_bytes);
    gb_json_u64(j, "staging_bytes", t.staging_bytes);
    gb_json_close(j, '}');
}

static void add_counts(struct gb_json *j)
{
    struct gb_named_count counts[COUNTS_MAX];
    int n = gb_named_counts(counts, COUNTS_MAX);
    gb_json_open(j, "counts", '{');
    for (int i = 0; i < n && i < COUNTS_MAX; i++)
        gb_json_u64(j, counts[i].name, counts[i].count);
    gb_json_close(j, '}');
}

static void add_site_counters(struct gb_json *j, struct gb_site *s)
{
    uint64_t blocked = GB_READ(s->blocked_ns), unsplit = GB_READ(s->unsplit_ns);
    bool split_known = unsplit < blocked || blocked == 0;
    gb_json_open(j, NULL, '{');
    gb_json_u64(j, "id", s->id);
    gb_json_u64(j, "calls", GB_READ(s->calls));
    gb_json_u64(j, "bytes", GB_READ(s->bytes));
    gb_json_u64(j, "blocked_ns", blocked);
    gb_json_u64(j, "max_blocked_ns", GB_READ(s->max_blocked_ns));
    if (split_known) {
        gb_json_u64(j, "queued_ns", GB_READ(s->queued_ns));
        gb_json_u64(j, "transfer_ns", GB_READ(s->transfer_ns));
    } else {
        gb_json_null(j, "queued_ns");
        gb_json_null(j, "transfer_ns");
    }
    gb_json_u64(j, "unsplit_ns", unsplit);
    gb_json_u64(j, "idle_ns", GB_READ(s->idle_ns));
    gb_json_u64(j, "bubbles", GB_READ(s->bubbles));
    gb_json_u64(j, "staged", GB_READ(s->staged));
    gb_json_u64(j, "elided", GB_READ(s->elided));
    gb_json_close(j, '}');
}

size_t gb_line_snapshot(struct gb_json *j, uint64_t t_ns, uint64_t dropped, const uint8_t *known)
{
    gb_json_open(j, NULL, '{');
    gb_json_text(j, "type", "snapshot");
    gb_json_u64(j, "t_ns", t_ns);
    size_t behind_time = j->used;
    add_totals(j);
    add_counts(j);
    gb_json_u64(j, "dropped_events", dropped);
    gb_json_open(j, "sites", '[');
    uint32_t count = gb_site_count();
    for (uint32_t id = 0; id < count && id < GB_SITE_MAX; id++)
        if (known[id / 8] & 1u << id % 8)
            add_site_counters(j, gb_site_at(id));
    gb_json_close(j, ']');
    gb_json_close(j, '}');
    return behind_time;
}

void gb_line_end(struct gb_json *j, uint64_t t_ns, const char *reason)
{
    gb_json_open(j, NULL, '{');
    gb_json_text(j, "type", "end");
    gb_json_u64(j, "t_ns", t_ns);
    gb_json_text(j, "reason", reason);
    gb_json_close(j, '}');
}

static void add_known_duration(struct gb_text *t, uint64_t ns)
{
    if (ns == UINT64_MAX)
        gb_text_add(t, "n/a");
    else
        gb_text_add_duration(t, ns);
}

void gb_line_stall(struct gb_text *t, const struct gb_stall_event *event, uint64_t start_ns)
{
    uint64_t since = event->start_ns > start_ns ? event->start_ns - start_ns : 0;
    const struct gb_site *site = gb_site_at(event->site < gb_site_count() ? event->site : 0);
    gb_text_add(t, "%6llu.%06u s  blocked ", (unsigned long long)(since / 1000000000),
                (unsigned)(since / 1000 % 1000000));
    gb_text_add_duration(t, event->blocked_ns);
    gb_text_add(t, " (queued ");
    add_known_duration(t, event->queued_ns);
    gb_text_add(t, ", transfer ");
    add_known_duration(t, event->transfer_ns);
    gb_text_add(t, ")  idle ");
    gb_text_add_duration(t, event->idle_ns);
    if (event->bytes) {
        gb_text_add(t, "  ");
        gb_text_add_bytes(t, event->bytes);
    }
    gb_text_add(t, "  %s  ", site->id ? gb_hook_name(site->hook) : "(various)");
    gb_place_add(t, site, false);
    gb_text_add(t, "  tid %u\n", event->tid);
}
