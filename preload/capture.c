/* capture.c: counts open captures, and keeps what is captured out of what is in flight. See
 * capture.h for the rules. */
#include "capture.h"

#include "inflight.h"

static uint32_t open_captures;

void gb_capture_begins(CUstream handle)
{
    struct gb_stream *stream = gb_stream_of(handle);
    if (!stream || __atomic_exchange_n(&stream->capturing, 1, __ATOMIC_ACQ_REL))
        return;
    stream->capture_seq = stream->seq;
    stream->capture_kernel_seq = stream->kernel_seq;
    __atomic_fetch_add(&open_captures, 1, __ATOMIC_ACQ_REL);
}

/* What was given to the stream since was captured and did not run. Also after a failed end: the
 * capture is over then as well (CUDA driver API, cuStreamEndCapture). */
void gb_capture_ends(CUstream handle)
{
    struct gb_stream *stream = gb_stream_of(handle);
    if (!stream || !__atomic_exchange_n(&stream->capturing, 0, __ATOMIC_ACQ_REL))
        return;
    stream->seq = stream->capture_seq;
    stream->kernel_seq = stream->capture_kernel_seq;
    __atomic_fetch_sub(&open_captures, 1, __ATOMIC_ACQ_REL);
}

bool gb_capture_is_open(void)
{
    return __atomic_load_n(&open_captures, __ATOMIC_ACQUIRE) != 0;
}
