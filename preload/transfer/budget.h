/* budget.h: how much host memory we may pin, from what the machine and the cgroup have left.
 *
 * In a container /proc/meminfo speaks of the host, so that the cgroup limits (v1, v2, every level
 * up to the root, page cache not counted as used) decide as well: pinned pages cannot be reclaimed
 * and going over the limit gets the program killed. Pure reading of small files; any thread.
 * Failure rule: what cannot be read does not raise the budget; nothing readable gives the floor.
 */
#ifndef GB_BUDGET_H
#define GB_BUDGET_H

#include "base/gb.h"

struct gb_budget {
    uint64_t bytes;         /* multiple of 64 KiB */
    const char *limited_by; /* "the option", "MemAvailable", "cgroup memory limit", ... */
    uint64_t memlock_bytes; /* RLIMIT_MEMLOCK, UINT64_MAX unlimited. A note, not a limit: the CUDA
                             * driver pins pages itself, outside mlock's accounting */
};

/* At most want_bytes, 1/16 of MemAvailable and 1/16 of the cgroup's headroom. Logs what limited
 * it at level info. */
uint64_t gb_budget_pinned_bytes(uint64_t want_bytes);
/* The same with other roots ("/proc", "/sys/fs/cgroup"), for tests. */
void gb_budget_read(const char *proc, const char *cgroup, uint64_t want_bytes,
                    struct gb_budget *out);

#endif
