/* stamp.c: the fast path where the stream is not the thread's last one. See stamp.h for the rules.
 *
 * Streams that alternate meet here at every call.
 */
#include "stamp.h"

struct gb_stream *gb_stamp_other(CUstream handle)
{
    if (GB_UNLIKELY(!gb_armed()))
        return NULL;
    struct gb_stream *stream = gb_stream_of(handle);
    if (GB_LIKELY(stream != NULL)) {
        gb_thread.last_stream = handle;
        gb_thread.last_slot = stream;
    }
    return stream;
}
