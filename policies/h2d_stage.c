/* h2d_stage.c: pageable host-to-device copies above 64 KiB go through pinned memory.
 *
 * The driver sends such a copy through a small staging buffer of its own, at a fraction of the
 * link's rate. Here the bytes are copied in chunks into a pinned ring while the chunks before them
 * are on the link. Every wait of the native call is kept (CUDA "API synchronization behavior":
 * pageable memory is staged after a stream synchronisation, and the call returns when the source
 * has been read): the stream is synchronised first, the source is read after that, and the call
 * returns when the last byte has arrived. policies/README.md has the proof.
 * Thread rule: the application's thread. Failure rule: decline, count why, make the real call.
 */
#include "policy.h"

#include "capture.h"
#include "copy_place.h"
#include "counters.h"
#include "driver_api.h"
#include "pinned.h"
#include "ranges.h"

#include <string.h>

#define WARM_UP_COPIES  8
#define WARM_UP_BYTES   (64u << 20)
#define END_PIECE_BYTES (256u << 10) /* of the first and the last piece */

static gb_counter seen_copies, seen_bytes, staged_copies, staged_bytes;

/* A program that copies a little at its start is not worth pinning memory for. */
static bool is_warm(size_t bytes)
{
    uint64_t copies = GB_COUNT(seen_copies, 1), before = GB_COUNT(seen_bytes, bytes);
    return copies >= WARM_UP_COPIES || before >= WARM_UP_BYTES;
}

static bool declines(gb_counter *why)
{
    GB_COUNT(*why, 1);
    return false;
}

/* Contracts A, C, E, F, G: what must hold for the copy to be ours. Asks the driver; none of these
 * questions waits or creates anything. */
static bool is_ours(const struct gb_call *call, const struct gb_copy *copy)
{
    CUcontext context = NULL;
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (gb_ranges_touch(copy->src, copy->bytes) != GB_RANGE_NONE)
        return declines(&gb_counters.h2d_registered);
    if (!is_warm(copy->bytes))
        return declines(&gb_counters.h2d_warming);
    if (!gb_driver_ready() || !call->stream ||
        gb_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != call->stream->context)
        return declines(&gb_counters.h2d_context);
    if (gb_capture_is_open() ||
        gb_driver.cuStreamIsCapturing(call->handle, &capturing) != CUDA_SUCCESS ||
        capturing != CU_STREAM_CAPTURE_STATUS_NONE)
        return declines(&gb_counters.h2d_capture);
    switch (gb_copy_place(call->handle, context, copy)) {
    case GB_PLACE_FITS:
        return true;
    case GB_PLACE_CONTEXT:
        return declines(&gb_counters.h2d_context);
    case GB_PLACE_COHERENT:
        return declines(&gb_counters.h2d_coherent);
    case GB_PLACE_SOURCE:
        return declines(&gb_counters.h2d_registered);
    default:
        return declines(&gb_counters.h2d_destination);
    }
}

/* What is known of the work that the stream had before the copy. */
struct earlier {
    CUevent event; /* NULL: it is done */
    uint64_t start_ns, done_ns;
};

static void note_done(struct earlier *earlier)
{
    earlier->event = NULL;
    earlier->done_ns = gb_now_ns();
}

/* Waits until the GPU has read a chunk: first for what came before, to know when that was done. */
static bool reclaim(struct gb_pinned_chunk *chunk, struct earlier *earlier)
{
    if (!chunk->in_use)
        return true;
    if (earlier->event) {
        if (gb_real.f.cuEventSynchronize(earlier->event) != CUDA_SUCCESS)
            return false;
        note_done(earlier);
    }
    if (gb_real.f.cuEventSynchronize(chunk->sent) != CUDA_SUCCESS)
        return false;
    chunk->in_use = false;
    return true;
}

static bool send_piece(struct gb_pinned_chunk *chunk, CUdeviceptr dst, const uint8_t *src,
                       size_t bytes, CUstream stream)
{
    memcpy(chunk->memory, src, bytes);
    if (gb_real.f.cuMemcpyHtoDAsync_v2(dst, chunk->memory, bytes, stream) != CUDA_SUCCESS)
        return false;
    chunk->in_use = true;
    return gb_real.f.cuEventRecord(chunk->sent, stream) == CUDA_SUCCESS;
}

/* Pieces grow from small to a whole chunk and shrink again: at both ends of a copy one of the host
 * and the link has nothing to do for the length of a piece. Not while the stream has other work:
 * then the link does not wait for us, and a chunk that is not full is wasted. */
static size_t next_piece(size_t piece, size_t left, size_t chunk_bytes, bool stream_is_busy)
{
    if (stream_is_busy)
        return chunk_bytes < left ? chunk_bytes : left;
    size_t end = left / 2 > END_PIECE_BYTES ? left / 2 : END_PIECE_BYTES;
    size_t bytes = piece < end ? piece : end;
    bytes = bytes < chunk_bytes ? bytes : chunk_bytes;
    return bytes < left ? bytes : left;
}

static bool send_all(struct gb_pinned_ring *ring, const struct gb_copy *copy, CUstream stream,
                     struct earlier *earlier)
{
    CUdeviceptr dst = (CUdeviceptr)(uintptr_t)copy->dst;
    const uint8_t *src = copy->src;
    size_t left = copy->bytes, piece = END_PIECE_BYTES;
    for (uint32_t i = 0; left; i++) {
        struct gb_pinned_chunk *chunk = &ring->chunks[i % ring->count];
        size_t bytes = next_piece(piece, left, ring->chunk_bytes, earlier->event);
        if (!reclaim(chunk, earlier) || !send_piece(chunk, dst, src, bytes, stream))
            return false;
        if (earlier->event && gb_real.f.cuEventQuery(earlier->event) == CUDA_SUCCESS)
            note_done(earlier);
        dst += bytes, src += bytes, left -= bytes;
        piece = piece < ring->chunk_bytes ? piece * 2 : piece;
    }
    return true;
}

/* The ring may be handed on only when the GPU has read all of it. */
static bool wait_for_all(struct gb_pinned_ring *ring, struct earlier *earlier)
{
    bool ok = true;
    for (uint32_t i = 0; i < ring->count; i++)
        ok = reclaim(&ring->chunks[i], earlier) && ok;
    return ok;
}

/* After an error: an event that was not recorded or not waited for proves nothing, the stream does.
 * Where that cannot be waited for either, the context is lost, and the ring with it. */
static void settle(struct gb_pinned_ring *ring, CUstream stream)
{
    ring->refused = gb_real.f.cuStreamSynchronize(stream) != CUDA_SUCCESS;
    for (uint32_t i = 0; i < ring->count; i++)
        ring->chunks[i].in_use = false;
}

/* The source is read while the stream still works, unless somebody may write it until then, or
 * memory must be pinned first. Says whether the copy can go on. */
static bool begin(struct gb_pinned_ring *ring, const struct gb_call *call, uint64_t bytes,
                  struct earlier *earlier)
{
    bool is_short = gb_pinned_is_short(ring, bytes);
    uint64_t now_ns = gb_now_ns();
    *earlier = (struct earlier){.start_ns = now_ns, .done_ns = now_ns};
    if (!is_short && call->was_done)
        return true;
    if (!is_short && ring->earlier && !(gb_outstanding() & GB_HOST_RUNS)) {
        earlier->event = ring->earlier;
        if (gb_real.f.cuEventRecord(ring->earlier, call->handle) == CUDA_SUCCESS)
            return true;
    }
    if (gb_real.f.cuStreamSynchronize(call->handle) != CUDA_SUCCESS)
        return declines(&gb_counters.h2d_error); /* the real call reports it */
    note_done(earlier);
    return !is_short || gb_pinned_grow(ring, bytes) || declines(&gb_counters.h2d_ring);
}

static bool stage_through(struct gb_pinned_ring *ring, struct gb_call *call,
                          const struct gb_copy *copy)
{
    struct earlier earlier;
    if (!begin(ring, call, copy->bytes, &earlier))
        return false;
    if (!send_all(ring, copy, call->handle, &earlier) || !wait_for_all(ring, &earlier)) {
        settle(ring, call->handle);
        return declines(&gb_counters.h2d_error);
    }
    call->staged = true;
    call->queued_ns = earlier.done_ns - earlier.start_ns;
    return true;
}

static bool stage(struct gb_call *call, const struct gb_copy *copy)
{
    struct gb_pinned_ring *ring;
    switch (gb_pinned_take(call->stream->context, &ring)) {
    case GB_PINNED_TAKEN:
        break;
    case GB_PINNED_BUSY:
        return declines(&gb_counters.h2d_busy);
    default:
        return declines(&gb_counters.h2d_ring);
    }
    bool staged = stage_through(ring, call, copy);
    gb_pinned_put(ring);
    if (staged) {
        GB_COUNT(staged_copies, 1);
        GB_COUNT(staged_bytes, copy->bytes);
    }
    return staged;
}

/* Relaxed: another thread's capture must not be broken by our registrations and waits, nor forbid
 * them (CUDA driver API, cuThreadExchangeStreamCaptureMode: push and pop). */
static bool h2d_stage_copy(struct gb_call *call, const struct gb_copy *copy)
{
    if (copy->direction != GB_COPY_H2D && copy->direction != GB_COPY_OTHER)
        return false;
    if (copy->bytes <= GB_SMALL_COPY_BYTES || !is_ours(call, copy))
        return false;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (gb_driver.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return declines(&gb_counters.h2d_error);
    bool staged = stage(call, copy);
    gb_driver.cuThreadExchangeStreamCaptureMode(&mode);
    return staged;
}

static void h2d_stage_totals(struct gb_totals *totals)
{
    totals->staged_copies += GB_READ(staged_copies);
    totals->staged_bytes += GB_READ(staged_bytes);
    totals->ring_bytes += gb_pinned_bytes();
    totals->ring_limit_bytes += gb_pinned_limit_bytes();
}

const struct gb_policy gb_policy_h2d_stage = {"h2d_stage", h2d_stage_copy, h2d_stage_totals};
