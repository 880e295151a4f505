/* clock.h: a time stamp that costs a third of clock_gettime, for calls that rarely take long.
 *
 * The processor's constant-rate counter (x86-64: the time-stamp counter; aarch64: the virtual
 * counter) measures a duration; nanoseconds are worked out only for the calls that are accounted,
 * by the rate against CLOCK_MONOTONIC since arm time. Thread rule: any thread. Failure rule: a
 * counter that runs backwards (unsynchronised processors) gives a duration of 0.
 */
#ifndef GB_CLOCK_H
#define GB_CLOCK_H

#include "base/gb.h"

static inline uint64_t gb_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return gb_now_ns();
#endif
}

/* At the start of arming, and at its end, when the rate is first known. */
void gb_clock_start(void);
void gb_clock_calibrate(void);

uint64_t gb_ticks_to_ns(uint64_t ticks);
/* A call that took this many ticks is looked at (20 us); UINT64_MAX before it is known. */
extern uint64_t gb_late_ticks;

#endif
