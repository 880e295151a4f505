/* stamp.h: the fast path: a kernel or an event record is given to a stream.
 *
 * Three loads, two stores and a branch when the stream is the thread's last one; else one look-up.
 * Everything unusual (not armed, off, forked, other context) empties the thread's cache, so that
 * the one comparison covers it. Thread rule and failure rule: inflight.h.
 */
#ifndef GB_STAMP_H
#define GB_STAMP_H

#include "call.h"
#include "stall.h"

/* The stream behind another handle than the thread's last one; NULL: not to be accounted. */
struct gb_stream *gb_stamp_other(CUstream handle);

static inline struct gb_stream *gb_stamp_stream(CUstream handle)
{
    struct gb_thread *t = &gb_thread;
    return GB_LIKELY(handle == t->last_stream) ? t->last_slot : gb_stamp_other(handle);
}

static inline void gb_stamp_kernel(CUstream handle)
{
    struct gb_stream *stream = gb_stamp_stream(handle);
    if (GB_UNLIKELY(!stream))
        return;
    uint64_t seq = stream->seq + 1;
    stream->seq = seq;
    stream->kernel_seq = seq;
    if (GB_UNLIKELY(__atomic_load_n(&stream->gpu->dry, __ATOMIC_RELAXED)))
        gb_stall_ends_bubble(stream->gpu);
}

#endif
