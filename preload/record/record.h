/* record.h: the record of the run: run directory, stalls.log, record.jsonl.
 *
 * Hooks only push fixed-size events into a bounded lock-free ring (full: drop and count). A helper
 * thread drains it, so that no hook ever touches a file; without a helper the ring is drained at
 * exit. Everything up to the last flush survives SIGKILL. The format is docs/record.md.
 * Failure rule: a file that cannot be written turns the record off with one line; the program and
 * the summary go on.
 */
#ifndef GB_RECORD_H
#define GB_RECORD_H

#include "base/gb.h"

struct gb_stall_event {
    uint64_t start_ns; /* gb_now_ns at entry */
    uint64_t blocked_ns;
    uint64_t queued_ns;   /* UINT64_MAX: not known */
    uint64_t transfer_ns; /* UINT64_MAX: not known */
    uint64_t idle_ns;     /* GPU idle time charged by this event; a bubble event has blocked_ns 0 */
    uint64_t bytes;
    uint32_t site;
    uint32_t tid;
};

/* Totals that do not belong to one site; filled by the stall model and the policies. */
struct gb_totals {
    uint64_t first_enqueue_ns; /* of a kernel; 0: there was none */
    uint64_t last_drain_ns;
    uint64_t idle_ns; /* all idle time charged */
    uint64_t hook_ns; /* our own measured cost, estimate from sampled calls */
    uint64_t launches;
    uint64_t staged_copies, staged_bytes;
    uint64_t early_copies; /* of them: returned before they were done */
    uint64_t
        unseen_copies; /* of those: to an idle GPU, straight: how long it waited was not seen */
    uint64_t forwarded_copies, forwarded_bytes; /* pageable copies left to the driver */
    uint64_t ring_bytes, ring_limit_bytes;
    uint64_t staging_bytes; /* device memory in use for copies */
};

struct gb_named_count {
    const char *name; /* "h2d.declined.capture" */
    uint64_t count;
};

/* Provided by the stall model and the policies (stall.c, policies/). */
void gb_totals_read(struct gb_totals *out);
int gb_named_counts(struct gb_named_count *out, int max);

/* Called once at arm time from the application's thread: makes the run directory, starts the
 * helper. Silent when GPUBOOST_OUT is "none". */
void gb_record_open(void);
/* Any thread: pushes an event; cheap and silent when the record is off. */
void gb_record_stall(const struct gb_stall_event *event);
/* Name of a device, when it becomes known (once per device, not from a hot path). */
void gb_record_device(int ordinal, const char *name);
/* From the destructor: drains the ring, writes the last snapshot and the end line, then the
 * summary on stderr. Nothing in a process that never armed and in a forked child. */
void gb_record_close(void);
/* Path of the run directory, "" when there is none. */
const char *gb_record_path(void);
/* Child handler of fork. */
void gb_record_after_fork(void);

#endif
