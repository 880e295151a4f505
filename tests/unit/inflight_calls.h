/* inflight_calls.h: a program that gives work to streams, for the tests of inflight.c and
 * capture.c. Included once. */
#ifndef INFLIGHT_CALLS_H
#define INFLIGHT_CALLS_H

#include "stall/stamp.h"

#define CONTEXT   ((CUcontext)0xc0)
#define STREAM(n) ((CUstream)(uintptr_t)(0x1000 + 64 * (n)))
#define EVENT(n)  ((CUevent)(uintptr_t)(0x500000 + 48 * (n)))

static void start(CUcontext context)
{
    __atomic_store_n(&gb_state, GB_STATE_ARMED, __ATOMIC_RELAXED);
    gb_thread_context_set(context);
}

static struct gb_stream *launch(CUstream handle, int kernels)
{
    while (kernels--)
        gb_stamp_kernel(handle);
    return gb_stream_of(handle);
}

static void record(int event, struct gb_stream *stream)
{
    gb_event_recorded(EVENT(event), stream);
}

#endif
