/* counting.c: lets counted_step.py turn callgrind's counting on and off. */
#include <valgrind/callgrind.h>

void counting_on(void);
void counting_off(void);

void counting_on(void)
{
    CALLGRIND_START_INSTRUMENTATION;
}

void counting_off(void)
{
    CALLGRIND_STOP_INSTRUMENTATION;
}
