/* shared.h: device memory and events that other processes see: how a handle names them.
 *
 * Device memory lies in memfds. A handle says whose, which and where; another process of the same
 * user opens the file through /proc/PID/fd, so a handle is worth nothing after its maker's end.
 * Thread rule: sim_lock. Failure rule: -1, NULL or false, nothing half done.
 */
#ifndef SIM_SHARED_H
#define SIM_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* At most 64 bytes: it is what CUipcMemHandle and CUipcEventHandle carry. */
struct sim_shared {
    uint32_t magic; /* of what it is */
    pid_t process;
    int32_t file, device;
    uint64_t inode; /* of the file: the process may be another one by now */
    uint64_t offset, bytes, ordinal;
};

void sim_shared_fill(struct sim_shared *shared, int file);
/* A descriptor of the file, or -1. */
int sim_shared_open(const struct sim_shared *shared);

/* An event as several processes see it: its records, counted, and how many of them are done. */
struct sim_mark {
    _Atomic uint64_t recorded, done, asked_for;
};

struct sim_op;
struct sim_event;

/* The event's mark, made at the first call. Work before it is reported to it. */
bool sim_mark_share(struct sim_event *event, struct sim_shared *shared);
struct sim_mark *sim_mark_open(const struct sim_shared *shared);
/* An operation that is a record of the event. */
struct sim_op *sim_mark_record(struct sim_event *event);
/* One that waits for the records so far. */
struct sim_op *sim_mark_wait(struct sim_event *event);
/* Are that many done? If not, their process is told that somebody waits. */
bool sim_mark_done(struct sim_event *event, uint64_t records);

#endif
