/* stack_cost.c: times gb_pystack_capture inside one C call, so that ctypes does not count.
 * Built and driven by stack_cost.py. */
#include "stack/pystack.h"

#define BENCH __attribute__((visibility("default")))

BENCH double stack_cost_capture_ns(int calls);
BENCH double stack_cost_empty_ns(int calls);
BENCH const char *stack_cost_status(void);
BENCH int stack_cost_depth(void);

static __attribute__((noinline)) uint32_t nothing(void)
{
    __asm__ volatile("");
    return 1;
}

double stack_cost_capture_ns(int calls)
{
    uint32_t sum = 0;
    uint64_t start = gb_now_ns();
    for (int i = 0; i < calls; i++)
        sum |= gb_pystack_capture();
    uint64_t end = gb_now_ns();
    return sum ? (double)(end - start) / calls : -1.0;
}

/* The same loop around a call that does nothing. */
double stack_cost_empty_ns(int calls)
{
    uint32_t sum = 0;
    uint64_t start = gb_now_ns();
    for (int i = 0; i < calls; i++)
        sum |= nothing();
    uint64_t end = gb_now_ns();
    return sum ? (double)(end - start) / calls : -1.0;
}

const char *stack_cost_status(void)
{
    return gb_pystack_status();
}

int stack_cost_depth(void)
{
    struct gb_pyframe frames[GB_PYSTACK_MAX_FRAMES];
    return gb_pystack_frames(gb_pystack_capture(), frames, GB_PYSTACK_MAX_FRAMES);
}
