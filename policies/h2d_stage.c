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

/* Waits until the GPU has read a chunk. */
static bool reclaim(struct gb_pinned_chunk *chunk)
{
    if (chunk->in_use && gb_real.f.cuEventSynchronize(chunk->sent) != CUDA_SUCCESS)
        return false;
    chunk->in_use = false;
    return true;
}

static bool send_piece(struct gb_pinned_chunk *chunk, CUdeviceptr dst, const uint8_t *src,
                       size_t bytes, CUstream stream)
{
    if (!reclaim(chunk))
        return false;
    memcpy(chunk->memory, src, bytes);
    if (gb_real.f.cuMemcpyHtoDAsync_v2(dst, chunk->memory, bytes, stream) != CUDA_SUCCESS)
        return false;
    chunk->in_use = true;
    return gb_real.f.cuEventRecord(chunk->sent, stream) == CUDA_SUCCESS;
}

/* Pieces grow from small to a whole chunk and shrink again: at both ends of a copy one of the host
 * and the link has nothing to do for the length of a piece. */
static size_t next_piece(size_t piece, size_t left, size_t chunk_bytes)
{
    size_t end = left / 2 > END_PIECE_BYTES ? left / 2 : END_PIECE_BYTES;
    size_t bytes = piece < end ? piece : end;
    bytes = bytes < chunk_bytes ? bytes : chunk_bytes;
    return bytes < left ? bytes : left;
}

static bool send_all(struct gb_pinned_ring *ring, const struct gb_copy *copy, CUstream stream)
{
    CUdeviceptr dst = (CUdeviceptr)(uintptr_t)copy->dst;
    const uint8_t *src = copy->src;
    size_t left = copy->bytes, piece = END_PIECE_BYTES;
    for (uint32_t i = 0; left; i++) {
        size_t bytes = next_piece(piece, left, ring->chunk_bytes);
        if (!send_piece(&ring->chunks[i % ring->count], dst, src, bytes, stream))
            return false;
        dst += bytes, src += bytes, left -= bytes;
        piece = piece < ring->chunk_bytes ? piece * 2 : piece;
    }
    return true;
}

/* The ring may be handed on only when the GPU has read all of it. */
static bool wait_for_all(struct gb_pinned_ring *ring)
{
    bool ok = true;
    for (uint32_t i = 0; i < ring->count; i++)
        ok = reclaim(&ring->chunks[i]) && ok;
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

static bool stage(struct gb_call *call, const struct gb_copy *copy)
{
    struct gb_pinned_ring *ring;
    uint64_t start_ns = gb_now_ns();
    if (gb_real.f.cuStreamSynchronize(call->handle) != CUDA_SUCCESS)
        return declines(&gb_counters.h2d_error); /* the real call reports it */
    uint64_t waited_ns = gb_now_ns() - start_ns;
    switch (gb_pinned_take(call->stream->context, copy->bytes, &ring)) {
    case GB_PINNED_TAKEN:
        break;
    case GB_PINNED_BUSY:
        return declines(&gb_counters.h2d_busy);
    default:
        return declines(&gb_counters.h2d_ring);
    }
    bool done = send_all(ring, copy, call->handle) && wait_for_all(ring);
    if (!done)
        settle(ring, call->handle);
    gb_pinned_put(ring);
    if (!done)
        return declines(&gb_counters.h2d_error);
    call->staged = true;
    call->queued_ns = waited_ns;
    GB_COUNT(staged_copies, 1);
    GB_COUNT(staged_bytes, copy->bytes);
    return true;
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
