/* budget.c: how much host memory we may pin. See budget.h for the rules.
 *
 * Formats: proc(5) meminfo and cgroup, Linux admin-guide cgroup-v1/memory and cgroup-v2.
 */
#include "transfer/budget.h"

#include "base/file.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define SHARE      16            /* 8 ranks on one host take half of what is free */
#define FLOOR      (16ull << 20) /* when nothing can be read */
#define GRANULE    (64ull << 10)
#define NO_LIMIT   (1ull << 60) /* v1 writes "unlimited" as a huge number */
#define UNKNOWN    UINT64_MAX
#define FILE_BYTES 8192
#define PATH_BYTES 1024

/* A decimal number at s that ends at a blank or the end; UNKNOWN for anything else. */
static uint64_t number_at(const char *s)
{
    uint64_t n = 0;
    if (*s < '0' || *s > '9')
        return UNKNOWN;
    for (; *s >= '0' && *s <= '9'; s++) {
        if (n > (UINT64_MAX - 9) / 10)
            return UNKNOWN;
        n = n * 10 + (uint64_t)(*s - '0');
    }
    return *s == 0 || strchr(" \t\n", *s) ? n : UNKNOWN;
}

/* The number behind `key` at the beginning of a line, UNKNOWN when there is none. */
static uint64_t field(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0)
            return number_at(line + n + strspn(line + n, " \t"));
    }
    return UNKNOWN;
}

/* Too long a file is read up to the buffer; a missing one is empty. */
static void read_text(const char *dir, const char *name, char *buf)
{
    char path[PATH_BYTES + 64];
    buf[0] = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) < sizeof path)
        gb_file_read(path, buf, FILE_BYTES);
}

static uint64_t read_number(const char *dir, const char *name)
{
    char buf[FILE_BYTES];
    read_text(dir, name, buf);
    return number_at(buf);
}

static uint64_t lower_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Names of the files and keys of one cgroup version. */
struct version {
    const char *limit, *soft_limit, *usage, *file_pages[2];
};
static const struct version v1 = {"memory.limit_in_bytes",
                                  NULL,
                                  "memory.usage_in_bytes",
                                  {"total_inactive_file ", "total_active_file "}};
static const struct version v2 = {
    "memory.max", "memory.high", "memory.current", {"inactive_file ", "active_file "}};

/* What one cgroup directory still lets us use; UNKNOWN without a limit. */
static uint64_t headroom_of(const char *dir, const struct version *v)
{
    uint64_t limit = read_number(dir, v->limit); /* "max" is no number */
    if (v->soft_limit)
        limit = lower_of(limit, read_number(dir, v->soft_limit));
    if (limit >= NO_LIMIT)
        return UNKNOWN;
    uint64_t used = read_number(dir, v->usage);
    if (used == UNKNOWN)
        return limit / 2;
    char stat[FILE_BYTES];
    read_text(dir, "memory.stat", stat);
    for (int i = 0; i < 2; i++) {
        uint64_t cache = field(stat, v->file_pages[i]);
        if (cache != UNKNOWN)
            used -= lower_of(used, cache);
    }
    return limit - lower_of(limit, used);
}

/* The least headroom from mount/path up to mount. A path that is not below this mount (container
 * with the host's paths in /proc/self/cgroup) is missing at every level but the mount itself. */
static uint64_t headroom(const char *mount, const char *path, const struct version *v)
{
    char dir[PATH_BYTES];
    uint64_t least = UNKNOWN;
    size_t root = strlen(mount);
    bool fits = (size_t)snprintf(dir, sizeof dir, "%s%s", mount, path) < sizeof dir;
    if (!fits || strstr(path, "/.."))
        snprintf(dir, sizeof dir, "%s", mount);
    for (;;) {
        least = lower_of(least, headroom_of(dir, v));
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= root || !slash)
            return least;
        *slash = 0;
    }
}

/* Is `name` one of the comma-separated controllers? */
static bool has_controller(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strncmp(list, name, n) == 0 && (list[n] == ',' || list[n] == 0))
            return true;
    return false;
}

/* One line of /proc/self/cgroup: "0::/path" for v2, "N:controllers:/path" for v1. */
static uint64_t headroom_of_line(const char *cgroup, char *line)
{
    char mount[PATH_BYTES];
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || path[1] != '/')
        return UNKNOWN;
    *path++ = 0;
    controllers++;
    if (*controllers == 0) {
        /* The unified tree is mounted at the root, or beside v1 in "unified" (hybrid). */
        snprintf(mount, sizeof mount, "%s/unified", cgroup);
        return lower_of(headroom(cgroup, path, &v2), headroom(mount, path, &v2));
    }
    if (!has_controller(controllers, "memory"))
        return UNKNOWN;
    snprintf(mount, sizeof mount, "%s/memory", cgroup);
    return headroom(mount, path, &v1);
}

static uint64_t cgroup_headroom(const char *proc, const char *cgroup)
{
    char text[FILE_BYTES];
    uint64_t least = UNKNOWN;
    read_text(proc, "self/cgroup", text);
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        least = lower_of(least, headroom_of_line(cgroup, line));
    }
    return least;
}

static uint64_t available_bytes(const char *proc)
{
    char text[FILE_BYTES];
    read_text(proc, "meminfo", text);
    uint64_t kib = field(text, "MemAvailable:");
    if (kib == UNKNOWN)
        kib = field(text, "MemFree:"); /* kernels before 3.14 */
    return kib >= NO_LIMIT ? UNKNOWN : kib << 10;
}

static void limit_to(struct gb_budget *b, uint64_t bytes, const char *why)
{
    if (bytes < b->bytes) {
        b->bytes = bytes;
        b->limited_by = why;
    }
}

void gb_budget_read(const char *proc, const char *cgroup, uint64_t want_bytes,
                    struct gb_budget *out)
{
    struct rlimit memlock;
    uint64_t available = available_bytes(proc), room = cgroup_headroom(proc, cgroup);
    *out = (struct gb_budget){.bytes = want_bytes, .limited_by = "the option"};
    if (available != UNKNOWN)
        limit_to(out, available / SHARE, "MemAvailable");
    if (room != UNKNOWN)
        limit_to(out, room / SHARE, "the cgroup's memory limit");
    if (available == UNKNOWN && room == UNKNOWN)
        limit_to(out, FLOOR, "unreadable memory figures");
    out->bytes -= out->bytes % GRANULE;
    out->memlock_bytes = UINT64_MAX;
    if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY)
        out->memlock_bytes = memlock.rlim_cur;
}

uint64_t gb_budget_pinned_bytes(uint64_t want_bytes)
{
    struct gb_budget b;
    gb_budget_read("/proc", "/sys/fs/cgroup", want_bytes, &b);
    gb_log(GB_LOG_INFO, "pinned memory: %llu of %llu KiB, limited by %s",
           (unsigned long long)(b.bytes >> 10), (unsigned long long)(want_bytes >> 10),
           b.limited_by);
    if (b.memlock_bytes < b.bytes)
        gb_log(GB_LOG_INFO,
               "RLIMIT_MEMLOCK is %llu KiB; a driver that counts pinned pages there "
               "refuses, and copies go unstaged",
               (unsigned long long)(b.memlock_bytes >> 10));
    return b.bytes;
}
