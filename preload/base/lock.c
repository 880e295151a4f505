/* lock.c: futex mutex and the monotonic clock. See lock.h for the rules. */
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t gb_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool gb_lock_try(gb_lock *lock)
{
    uint32_t expected = 0;
    return __atomic_compare_exchange_n(&lock->state, &expected, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Waits until the lock is free or the deadline (0: none) has passed. Three-state futex lock. */
static bool acquire_until(gb_lock *lock, uint64_t deadline_ns)
{
    if (gb_lock_try(lock))
        return true;
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0) {
        struct timespec step, *timeout = NULL;
        if (deadline_ns) {
            uint64_t now = gb_now_ns();
            if (now >= deadline_ns)
                return false;
            step.tv_sec = (time_t)((deadline_ns - now) / 1000000000u);
            step.tv_nsec = (long)((deadline_ns - now) % 1000000000u);
            timeout = &step;
        }
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, timeout, NULL, 0);
    }
    return true;
}

void gb_lock_acquire(gb_lock *lock)
{
    acquire_until(lock, 0);
}

bool gb_lock_acquire_for(gb_lock *lock, uint64_t timeout_ns)
{
    return acquire_until(lock, gb_now_ns() + timeout_ns);
}

void gb_lock_release(gb_lock *lock)
{
    if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
