/* sigguard.c: SIGPIPE and SIGXFSZ held off around a write. See sigguard.h for the rules. */
#include "base/sigguard.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SIG_SIZE 8 /* sizeof(sigset_t) of the kernel, rt_sigprocmask(2) */

static const uint64_t guarded = UINT64_C(1) << (SIGPIPE - 1) | UINT64_C(1) << (SIGXFSZ - 1);

static uint64_t pending(void)
{
    uint64_t set = 0;
    syscall(SYS_rt_sigpending, &set, KERNEL_SIG_SIZE);
    return set;
}

void gb_sigguard_enter(struct gb_sigguard *guard)
{
    guard->pending_before = pending();
    guard->active =
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &guarded, &guard->old_mask, KERNEL_SIG_SIZE) == 0;
}

void gb_sigguard_leave(struct gb_sigguard *guard)
{
    if (!guard->active)
        return;
    int kept_errno = errno;
    uint64_t ours = pending() & guarded & ~guard->pending_before;
    struct timespec at_once = {0, 0};
    while (ours && syscall(SYS_rt_sigtimedwait, &ours, NULL, &at_once, KERNEL_SIG_SIZE) < 0)
        if (errno != EINTR)
            break;
    /* Both at once: SIGXFSZ and SIGPIPE never come from one write, one take is enough. */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &guard->old_mask, NULL, KERNEL_SIG_SIZE);
    errno = kept_errno;
}
