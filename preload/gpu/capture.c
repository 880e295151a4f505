/* capture.c: counts open captures, and keeps what is captured out of what is in flight. See
 * capture.h for the rules. */
#include "gpu/capture.h"

static uint32_t open_captures;

/* What is given to the stream inside gets numbers that are not given out again: an event of the
 * capture says nothing about work that comes after it, and one from before still counts. */
static bool enter(struct gb_stream *stream, struct gb_stream *origin)
{
    if (__atomic_load_n(&stream->capturing, __ATOMIC_RELAXED))
        return false;
    stream->capture_kernel_seq = stream->kernel_seq;
    stream->capture_not_kernels = stream->not_kernels;
    stream->capture_seq = stream->seq++;
    __atomic_store_n(&stream->capturing, origin, __ATOMIC_RELEASE);
    return true;
}

/* What was given to the stream since was captured and did not run. */
static void leave(struct gb_stream *stream)
{
    stream->not_kernels = stream->capture_not_kernels + stream->seq - stream->capture_seq;
    stream->kernel_seq = stream->capture_kernel_seq;
    if (stream->done >= stream->capture_seq)
        gb_stream_done(stream, stream->seq);
    __atomic_store_n(&stream->capturing, NULL, __ATOMIC_RELEASE);
}

void gb_capture_begins(CUstream handle)
{
    struct gb_stream *stream = gb_stream_of(handle);
    if (stream && enter(stream, stream))
        __atomic_fetch_add(&open_captures, 1, __ATOMIC_ACQ_REL);
}

/* Only streams of the same GPU are found again at the end. */
void gb_capture_joins(struct gb_stream *stream, struct gb_stream *of)
{
    struct gb_stream *origin = __atomic_load_n(&of->capturing, __ATOMIC_ACQUIRE);
    if (origin && stream->gpu == of->gpu)
        enter(stream, origin);
}

/* Also after a failed end: the capture is over then as well (CUDA driver API, cuStreamEndCapture).
 */
void gb_capture_ends(CUstream handle)
{
    struct gb_stream *origin = gb_stream_of(handle);
    if (!origin || __atomic_load_n(&origin->capturing, __ATOMIC_ACQUIRE) != origin)
        return;
    struct gb_stream *s = __atomic_load_n(&origin->gpu->streams, __ATOMIC_ACQUIRE);
    for (; s; s = s->next_of_gpu)
        if (__atomic_load_n(&s->capturing, __ATOMIC_ACQUIRE) == origin)
            leave(s);
    __atomic_fetch_sub(&open_captures, 1, __ATOMIC_ACQ_REL);
}

bool gb_capture_is_open(void)
{
    return __atomic_load_n(&open_captures, __ATOMIC_ACQUIRE) != 0;
}
