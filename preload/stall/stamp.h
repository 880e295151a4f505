/* stamp.h: the fast path: a kernel or an event record is given to a stream.
 *
 * A few loads and stores when the stream is one of the thread's last two; else one look-up.
 * Everything unusual (not armed, off, forked, other context) empties the thread's cache, so that
 * the one comparison covers it. Thread rule and failure rule: inflight.h.
 */
#ifndef GB_STAMP_H
#define GB_STAMP_H

#include "gpu/debt.h"
#include "stall/call.h"
#include "stall/stall.h"

/* The stream behind another handle than the thread's last one; NULL: not to be accounted. */
struct gb_stream *gb_stamp_other(CUstream handle);

/* One of the thread's last two streams, or NULL. */
static inline struct gb_stream *gb_stamp_cached(CUstream handle)
{
    const struct gb_thread *t = &gb_thread;
    if (GB_LIKELY(handle == t->last_stream))
        return t->last_slot;
    return handle == t->other_stream ? t->other_slot : NULL;
}

/* True when that was all there is to do. */
static inline bool gb_stamp_kernel_fast(CUstream handle)
{
    struct gb_stream *stream = gb_stamp_cached(handle);
    if (GB_UNLIKELY(!stream || __atomic_load_n(&stream->gpu->dry, __ATOMIC_RELAXED) ||
                    stream->fenced_id != gb_debt_last()))
        return false;
    gb_stream_given_kernel(stream);
    return true;
}

/* The same for any stream and for a dry GPU. */
void gb_stamp_kernel(CUstream handle);

static inline bool gb_stamp_event_fast(CUevent event, CUstream handle)
{
    struct gb_stream *stream = gb_stamp_cached(handle);
    if (GB_UNLIKELY(!stream || stream->fenced_id != gb_debt_last()))
        return false;
    gb_event_recorded(event, stream);
    return true;
}

#endif
