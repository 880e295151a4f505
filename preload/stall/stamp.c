/* stamp.c: the fast path where the stream is none of the thread's last two, and everything that is
 * unusual. See stamp.h for the rules. */
#include "stall/stamp.h"

struct gb_stream *gb_stamp_other(CUstream handle)
{
    struct gb_stream *stream = gb_stamp_cached(handle);
    if (stream)
        return stream;
    if (GB_UNLIKELY(!gb_armed()) || !(stream = gb_stream_of(handle)))
        return NULL;
    struct gb_thread *t = &gb_thread;
    t->other_stream = t->last_stream;
    t->other_slot = t->last_slot;
    t->last_stream = handle;
    t->last_slot = stream;
    return stream;
}

void gb_stamp_kernel(CUstream handle)
{
    struct gb_stream *stream = gb_stamp_other(handle);
    if (GB_UNLIKELY(!stream))
        return;
    gb_stream_given_kernel(stream);
    if (GB_UNLIKELY(__atomic_load_n(&stream->gpu->dry, __ATOMIC_RELAXED)))
        gb_stall_ends_bubble(stream->gpu);
}
