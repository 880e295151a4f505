/* truth.c: what the simulated devices really did, kept apart from anything the product measures.
 *
 * Busy intervals per engine are coalesced and bounded: when the list is full, the smallest gaps
 * are closed; the sums stay exact.
 * Thread rule: sim_lock, or after the end. Failure rule: a file that cannot be written is said
 * once on stderr.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_INTERVALS 65536
#define MOST_UNKNOWN   1024

struct interval {
    uint64_t start, end;
};

struct intervals {
    struct interval *items;
    size_t count, capacity;
    uint64_t busy, gap; /* gaps up to this are closed */
};

static struct intervals recorded[SIM_MAX_DEVICES][SIM_UNITS];
static uint64_t mark_ns;
static char mark_label[128];

static struct {
    char *name;
    uint64_t count;
} unknown[MOST_UNKNOWN];
static size_t unknown_count;

/* --- recording --- */

static void thin(struct intervals *list)
{
    list->gap = list->gap ? 2 * list->gap : 1000;
    size_t kept = 0;
    for (size_t i = 1; i < list->count; i++) {
        if (list->items[i].start <= list->items[kept].end + list->gap)
            list->items[kept].end = list->items[i].end;
        else
            list->items[++kept] = list->items[i];
    }
    list->count = list->count ? kept + 1 : 0;
}

void sim_truth_interval(int device, enum sim_unit_kind unit, uint64_t start_ns, uint64_t end_ns)
{
    struct intervals *list = &recorded[device][unit];
    list->busy += end_ns - start_ns;
    if (end_ns == start_ns)
        return;
    if (list->count > 0 && start_ns <= list->items[list->count - 1].end + list->gap &&
        list->items[list->count - 1].start >= mark_ns) {
        list->items[list->count - 1].end = end_ns;
        return;
    }
    while (list->count == MOST_INTERVALS)
        thin(list);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 256;
        struct interval *items = realloc(list->items, capacity * sizeof(*items));
        if (!items)
            return;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (struct interval){start_ns, end_ns};
}

void sim_truth_unknown_kernel(const char *name)
{
    for (size_t i = 0; i < unknown_count; i++) {
        if (strcmp(unknown[i].name, name) == 0) {
            __atomic_add_fetch(&unknown[i].count, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    if (unknown_count == MOST_UNKNOWN)
        return;
    unknown[unknown_count].name = strdup(name);
    unknown[unknown_count++].count = 1;
}

/* --- summing --- */

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static uint64_t union_of(int device, uint64_t since, uint64_t *first, uint64_t *last)
{
    size_t total = 0;
    for (int u = 0; u < SIM_UNITS; u++)
        total += recorded[device][u].count;
    struct interval *all = malloc((total + 1) * sizeof(*all));
    size_t count = 0;
    for (int u = 0; all && u < SIM_UNITS; u++)
        for (size_t i = 0; i < recorded[device][u].count; i++)
            if (recorded[device][u].items[i].start >= since)
                all[count++] = recorded[device][u].items[i];
    uint64_t busy = 0, upto = 0;
    *first = *last = 0;
    if (count > 0) {
        qsort(all, count, sizeof(*all), by_start);
        *first = upto = all[0].start;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t from = all[i].start > upto ? all[i].start : upto;
        if (all[i].end > from) {
            busy += all[i].end - from;
            upto = all[i].end;
        }
    }
    *last = upto;
    free(all);
    return busy;
}

static uint64_t busy_since(int device, int unit, uint64_t since)
{
    const struct intervals *list = &recorded[device][unit];
    if (since == 0)
        return list->busy;
    uint64_t busy = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].start >= since)
            busy += list->items[i].end - list->items[i].start;
    return busy;
}

static void sum(int device, uint64_t since, struct gpusim_usage *out)
{
    out->any_busy_ns = union_of(device, since, &out->first_ns, &out->last_ns);
    out->compute_busy_ns = busy_since(device, SIM_COMPUTE, since);
    out->h2d_busy_ns = busy_since(device, SIM_H2D, since);
    out->d2h_busy_ns = busy_since(device, SIM_D2H, since);
}

/* --- writing --- */

static void write_name(FILE *file, const char *name)
{
    fputc('"', file);
    for (; *name; name++) {
        if (*name == '"' || *name == '\\')
            fputc('\\', file);
        if ((unsigned char)*name >= 32)
            fputc(*name, file);
    }
    fputc('"', file);
}

static void write_device(FILE *file, int device)
{
    static const char *const names[SIM_UNITS] = {"compute", "h2d", "d2h", "d2d"};
    struct gpusim_usage usage;
    sum(device, 0, &usage);
    fprintf(file, "%s{\"ordinal\":%d,\"name\":\"SIMULATED GPU %d (gpusim)\",", device ? "," : "",
            device, device);
    fprintf(file,
            "\"first_ns\":%lu,\"last_ns\":%lu,\"compute_busy_ns\":%lu,\"compute_idle_ns\":%lu,"
            "\"h2d_busy_ns\":%lu,\"d2h_busy_ns\":%lu,\"any_busy_ns\":%lu,\"intervals\":{",
            usage.first_ns, usage.last_ns, usage.compute_busy_ns,
            usage.last_ns - usage.first_ns > usage.compute_busy_ns
                ? usage.last_ns - usage.first_ns - usage.compute_busy_ns
                : 0,
            usage.h2d_busy_ns, usage.d2h_busy_ns, usage.any_busy_ns);
    for (int u = 0; u < SIM_UNITS; u++) {
        const struct intervals *list = &recorded[device][u];
        fprintf(file, "%s\"%s\":[", u ? "," : "", names[u]);
        for (size_t i = 0; i < list->count; i++)
            fprintf(file, "%s[%lu,%lu]", i ? "," : "", list->items[i].start, list->items[i].end);
        fputc(']', file);
    }
    fputs("}}", file);
}

static void write_json(FILE *file)
{
    fprintf(file, "{\"simulated\":true,\"clock\":\"%s\",\"mark\":", SIM_TEXT(CLOCK));
    write_name(file, mark_label);
    fprintf(file, ",\"mark_ns\":%lu,\"devices\":[", mark_ns);
    for (int d = 0; d < sim.device_count; d++)
        write_device(file, d);
    fputs("],\"calls\":{", file);
    bool some = false;
    for (unsigned i = 0; i < sim_entry_total(); i++) {
        if (sim_entry_count(i) == 0)
            continue;
        fprintf(file, "%s\"%s\":%lu", some ? "," : "", sim_entry_name(i), sim_entry_count(i));
        some = true;
    }
    fputs("},\"unknown_kernels\":{", file);
    for (size_t i = 0; i < unknown_count; i++) {
        fputs(i ? "," : "", file);
        write_name(file, unknown[i].name);
        fprintf(file, ":%lu", unknown[i].count);
    }
    fputs("}}\n", file);
}

static void write_text(FILE *file)
{
    for (int d = 0; d < sim.device_count; d++) {
        struct gpusim_usage usage;
        sum(d, 0, &usage);
        if (usage.last_ns == 0)
            continue;
        fprintf(file,
                "gpusim: device %d ran %.3f ms: compute %.3f ms, h2d %.3f ms, d2h %.3f ms, "
                "any %.3f ms\n",
                d, (double)(usage.last_ns - usage.first_ns) / 1e6,
                (double)usage.compute_busy_ns / 1e6, (double)usage.h2d_busy_ns / 1e6,
                (double)usage.d2h_busy_ns / 1e6, (double)usage.any_busy_ns / 1e6);
    }
}

static void write_truth(const char *path)
{
    if (!path || !*path)
        return;
    if (strcmp(path, "-") == 0) {
        write_text(stderr);
        return;
    }
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "gpusim: cannot write %s\n", path);
        return;
    }
    write_json(file);
    fclose(file);
}

void sim_truth_end(void)
{
    write_truth(SIM_TEXT(TRUTH));
}

__attribute__((visibility("default"))) void gpusim_write_truth(const char *path)
{
    sim_lock();
    write_truth(path ? path : SIM_TEXT(TRUTH));
    sim_unlock();
}

__attribute__((visibility("default"))) void gpusim_mark(const char *label)
{
    sim_lock();
    mark_ns = sim_now();
    snprintf(mark_label, sizeof(mark_label), "%s", label);
    sim_unlock();
    if (sim_log_on)
        sim_log_line("mark", label, "", 0);
}

__attribute__((visibility("default"))) void gpusim_usage(int device, struct gpusim_usage *out)
{
    memset(out, 0, sizeof(*out));
    sim_lock();
    if (device >= 0 && device < sim.device_count)
        sum(device, mark_ns, out);
    sim_unlock();
}
