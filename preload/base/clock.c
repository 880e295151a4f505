/* clock.c: the rate of the processor's counter. See clock.h for the rules. */
#include "base/clock.h"

#define LATE_NS         20000u
#define BACKWARDS_TICKS (UINT64_MAX / 2)

uint64_t gb_late_ticks = UINT64_MAX;
static uint64_t start_ticks, start_ns;

void gb_clock_start(void)
{
    start_ns = gb_now_ns();
    start_ticks = gb_ticks();
}

uint64_t gb_ticks_to_ns(uint64_t ticks)
{
    uint64_t passed_ns = gb_now_ns() - start_ns, passed_ticks = gb_ticks() - start_ticks;
    if (ticks > BACKWARDS_TICKS || passed_ticks == 0 || passed_ticks > BACKWARDS_TICKS)
        return 0;
    return (uint64_t)((double)ticks * (double)passed_ns / (double)passed_ticks);
}

/* The longer the wait, the better the rate; opening the record takes long enough for 1 %. */
void gb_clock_calibrate(void)
{
    uint64_t passed_ns = gb_now_ns() - start_ns;
    if (passed_ns)
        gb_late_ticks =
            (uint64_t)((double)(gb_ticks() - start_ticks) / (double)passed_ns * LATE_NS);
}
