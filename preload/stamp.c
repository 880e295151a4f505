/* stamp.c: the fast path where the stream is not the thread's last one. See stamp.h for the rules.
 *
 * Streams that alternate meet here at every call.
 */
#include "stamp.h"

struct gb_stream *gb_stamp_other(CUstream handle)
{
    if (handle == gb_thread.last_stream)
        return gb_thread.last_slot;
    if (GB_UNLIKELY(!gb_armed()))
        return NULL;
    struct gb_stream *stream = gb_stream_of(handle);
    if (GB_LIKELY(stream != NULL)) {
        gb_thread.last_stream = handle;
        gb_thread.last_slot = stream;
    }
    return stream;
}

void gb_stamp_kernel(CUstream handle)
{
    struct gb_stream *stream = gb_stamp_other(handle);
    if (GB_UNLIKELY(!stream))
        return;
    if (GB_UNLIKELY(__atomic_load_n(&stream->gpu->dry, __ATOMIC_RELAXED)))
        gb_stall_ends_bubble(stream->gpu);
    uint64_t seq = stream->seq + 1;
    stream->seq = seq;
    stream->kernel_seq = seq;
}
