/* lock.h: the one lock of the library, a futex mutex that lives in ordinary memory.
 *
 * Not pthread_mutex: a forked child resets it by writing zero, and it never allocates. Held only
 * over short sections of our own; never across a CUDA call, a Python call or user code.
 */
#ifndef GB_LOCK_H
#define GB_LOCK_H

#include "base/gb.h"

typedef struct gb_lock {
    uint32_t state; /* 0 free, 1 held, 2 held with waiters; only by __atomic built-ins */
} gb_lock;

void gb_lock_acquire(gb_lock *lock);
bool gb_lock_try(gb_lock *lock);
/* Gives up after timeout_ns; for the exit path, which may find a lock held by a dead thread. */
bool gb_lock_acquire_for(gb_lock *lock, uint64_t timeout_ns);
void gb_lock_release(gb_lock *lock);

#endif
