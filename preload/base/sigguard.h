/* sigguard.h: writing without being killed for it.
 *
 * A write to a pipe without readers raises SIGPIPE, one beyond RLIMIT_FSIZE raises SIGXFSZ, both at
 * the writing thread (signal(7)). Between enter and leave both are blocked for this thread; what
 * our write raised is taken back, what was pending before stays. sigprocmask acts on the calling
 * thread on Linux; the system calls are used since pthread_sigmask was not in libc before 2.32.
 */
#ifndef GB_SIGGUARD_H
#define GB_SIGGUARD_H

#include "base/gb.h"

struct gb_sigguard {
    uint64_t old_mask;
    uint64_t pending_before;
    bool active;
};

void gb_sigguard_enter(struct gb_sigguard *guard);
void gb_sigguard_leave(struct gb_sigguard *guard);

#endif
