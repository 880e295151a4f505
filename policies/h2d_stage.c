/* h2d_stage.c: pageable host-to-device copies above 64 KiB go through pinned memory.
 *
 * The driver sends such a copy through a small staging buffer of its own, at a fraction of the
 * link's rate. Here the bytes are copied in chunks into a pinned ring while the chunks before them
 * are on the link. The source is read while the stream's earlier work still runs, unless something
 * of that could write it, and the call returns when it has been read; what the native return
 * promises beyond that (CUDA "API synchronization behavior") is owed where it may be (owe.h), else
 * waited for. policies/README.md has the proof.
 *
 * Thread rule: the application's thread. Failure rule: decline, count why, make the real call.
 */
#include "policies/owe.h"
#include "policies/policy.h"

#include "cuda/driver_api.h"
#include "gpu/capture.h"
#include "gpu/debt.h"
#include "gpu/ranges.h"
#include "policies/verify.h"
#include "record/counters.h"
#include "transfer/copier.h"
#include "transfer/pinned.h"

#include <string.h>

#define WARM_UP_COPIES  8
#define WARM_UP_BYTES   (64u << 20)
#define END_PIECE_BYTES (256u << 10) /* of the first and the last piece */
#define CACHED_CHUNKS   4

static gb_counter seen_copies, seen_bytes, staged_copies, staged_bytes, early_copies;

/* A program that copies a little at its start is not worth pinning memory for. */
static bool is_warm(size_t bytes)
{
    uint64_t copies = GB_COUNT(seen_copies, 1), before = GB_COUNT(seen_bytes, bytes);
    return copies >= WARM_UP_COPIES || before >= WARM_UP_BYTES;
}

/* Contracts A, C, E, F, G: what must hold for the copy to be ours. Asks the driver; none of these
 * questions waits or creates anything. */
static bool is_ours(const struct gb_call *call, const struct gb_copy *copy)
{
    if (gb_verify_failed())
        return gb_declines(&gb_counters.h2d_wrong);
    if (gb_ranges_touch(copy->src, copy->bytes) != GB_RANGE_NONE)
        return gb_declines(&gb_counters.h2d_registered);
    if (!is_warm(copy->bytes))
        return gb_declines(&gb_counters.h2d_warming);
    gb_counter *why = gb_why_not_place(call, copy);
    return !why || gb_declines(why);
}

/* What is known of the work that the stream had before the copy. */
struct earlier {
    CUevent event; /* NULL: it is done */
    uint64_t start_ns, done_ns;
};

/* The chunks that a copy may use, the one longest with the GPU first. */
struct chunks {
    struct gb_pinned_chunk *at[GB_RING_CHUNKS_MAX];
    uint32_t count;
};

static void note_done(struct earlier *earlier)
{
    earlier->event = NULL;
    earlier->done_ns = gb_now_ns();
}

/* Waits until the GPU has read a chunk; one that this copy has sent is behind all earlier work:
 * then first for that, to know when it was done. */
static bool reclaim(struct gb_pinned_chunk *chunk, bool is_of_this_copy, struct earlier *earlier)
{
    if (!chunk->in_use)
        return true;
    if (is_of_this_copy && earlier->event) {
        if (gb_real.f.cuEventSynchronize(earlier->event) != CUDA_SUCCESS)
            return false;
        note_done(earlier);
    }
    if (gb_real.f.cuEventSynchronize(chunk->sent) != CUDA_SUCCESS)
        return false;
    chunk->in_use = false;
    return true;
}

/* A chunk on its way in another stream is not waited for: that stream may need us to go on. Into an
 * idle stream the link sends as fast as we copy: then a few chunks that stay in the processor's
 * cache are faster than many that do not. */
static struct chunks usable_chunks(struct gb_pinned_ring *ring, const struct gb_stream *stream,
                                   bool stream_is_busy)
{
    struct chunks chunks = {.count = 0};
    uint32_t first = stream_is_busy ? ring->next : 0;
    uint32_t most = stream_is_busy ? ring->count : CACHED_CHUNKS;
    for (uint32_t i = 0; i < ring->count && chunks.count < most; i++) {
        struct gb_pinned_chunk *chunk = &ring->chunks[(first + i) % ring->count];
        bool is_foreign = chunk->stream && chunk->stream != stream;
        if (chunk->in_use && is_foreign && gb_real.f.cuEventQuery(chunk->sent) == CUDA_SUCCESS)
            chunk->in_use = false;
        if (!chunk->in_use || !is_foreign)
            chunks.at[chunks.count++] = chunk;
    }
    return chunks;
}

/* Where the pieces go: to the destination on the caller's stream, or through device memory of ours
 * on a stream of ours (hop.h). */
struct route {
    CUdeviceptr dst;
    CUstream handle;
    struct gb_stream *stream; /* NULL: ours, which waits for nothing but the link */
    struct gb_hop_region *region;
    bool is_awaited; /* the stream has nothing else to do */
};

/* While the GPU waits for the bytes, two threads copy; else the program may have a better use for
 * the processor. */
static void fill(struct gb_pinned_chunk *chunk, const uint8_t *src, size_t bytes, bool is_awaited)
{
    if (is_awaited)
        gb_copier_copy(chunk->memory, src, bytes);
    else
        memcpy(chunk->memory, src, bytes);
}

static bool send_piece(struct gb_pinned_chunk *chunk, CUdeviceptr dst, const uint8_t *src,
                       size_t bytes, const struct route *route)
{
    fill(chunk, src, bytes, route->is_awaited);
    if (gb_real.f.cuMemcpyHtoDAsync_v2(dst, chunk->memory, bytes, route->handle) != CUDA_SUCCESS)
        return false;
    chunk->in_use = true;
    chunk->stream = route->stream;
    return gb_real.f.cuEventRecord(chunk->sent, route->handle) == CUDA_SUCCESS;
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

static bool send_all(struct gb_pinned_ring *ring, const struct chunks *chunks,
                     const struct route *route, const struct gb_copy *copy, struct earlier *earlier)
{
    CUdeviceptr dst = route->dst;
    const uint8_t *src = copy->src;
    size_t left = copy->bytes, piece = END_PIECE_BYTES;
    for (uint32_t i = 0; left; i++) {
        struct gb_pinned_chunk *chunk = chunks->at[i % chunks->count];
        size_t bytes = next_piece(piece, left, ring->chunk_bytes, earlier->event && !route->region);
        if (!reclaim(chunk, i >= chunks->count && !route->region, earlier) ||
            !send_piece(chunk, dst, src, bytes, route))
            return false;
        ring->next = (uint32_t)(chunk - ring->chunks + 1) % ring->count;
        if (earlier->event && gb_real.f.cuEventQuery(earlier->event) == CUDA_SUCCESS)
            note_done(earlier);
        dst += bytes, src += bytes, left -= bytes;
        piece = piece < ring->chunk_bytes ? piece * 2 : piece;
    }
    return true;
}

static bool wait_for_all(const struct chunks *chunks, struct earlier *earlier)
{
    bool ok = true;
    for (uint32_t i = 0; i < chunks->count; i++)
        ok = reclaim(chunks->at[i], true, earlier) && ok;
    return ok;
}

/* After an error: an event that was not recorded or not waited for proves nothing, the stream does.
 * Where that cannot be waited for either, the context is lost, and the ring with it. */
static void settle(struct gb_pinned_ring *ring, const struct chunks *chunks, CUstream stream)
{
    ring->refused =
        gb_real.f.cuStreamSynchronize(stream) != CUDA_SUCCESS ||
        (ring->hop.stream && gb_real.f.cuStreamSynchronize(ring->hop.stream) != CUDA_SUCCESS);
    for (uint32_t i = 0; i < chunks->count; i++)
        chunks->at[i]->in_use = false;
}

/* Waits until an operation of the stream would begin. An event and not the stream itself: a stream
 * that waits for the legacy one does so with its next operation. */
static bool wait_for_turn(const struct gb_pinned_ring *ring, CUstream stream)
{
    if (!ring->earlier)
        return gb_real.f.cuStreamSynchronize(stream) == CUDA_SUCCESS;
    return gb_real.f.cuEventRecord(ring->earlier, stream) == CUDA_SUCCESS &&
           gb_real.f.cuEventSynchronize(ring->earlier) == CUDA_SUCCESS;
}

/* Memory must be pinned, or made on the device: the stream has nothing to do meanwhile. */
static bool grow(struct gb_pinned_ring *ring, const struct gb_call *call, uint64_t bytes, bool owes,
                 struct earlier *earlier)
{
    if (!wait_for_turn(ring, call->handle))
        return gb_declines(&gb_counters.h2d_error); /* the real call reports it */
    note_done(earlier);
    if (owes && gb_hop_is_short(&ring->hop))
        gb_hop_grow(&ring->hop);
    return gb_pinned_grow(ring, bytes) || gb_declines(&gb_counters.h2d_ring);
}

/* The source is read while the stream still works, unless somebody may write it until then. Says
 * whether the copy can go on. */
static bool begin(struct gb_pinned_ring *ring, const struct gb_call *call, uint64_t bytes,
                  bool owes, struct earlier *earlier)
{
    bool is_short = gb_pinned_is_short(ring, bytes) || (owes && gb_hop_is_short(&ring->hop));
    earlier->event = NULL;
    earlier->start_ns = earlier->done_ns = gb_now_ns();
    if (is_short && !grow(ring, call, bytes, owes, earlier))
        return false;
    bool somebody_writes = gb_outstanding() & GB_HOST_RUNS;
    if (!somebody_writes && (is_short || (call->was_done && call->was_dry)))
        return true;
    if (!somebody_writes && ring->earlier &&
        gb_real.f.cuEventRecord(ring->earlier, call->handle) == CUDA_SUCCESS) {
        earlier->event = ring->earlier;
        return true;
    }
    if (!wait_for_turn(ring, call->handle))
        return gb_declines(&gb_counters.h2d_error);
    note_done(earlier);
    return true;
}

/* Through device memory when the stream still has work that the transfer can hide behind, and the
 * call need not wait for it. */
static struct route choose_route(struct gb_pinned_ring *ring, const struct gb_call *call,
                                 const struct gb_copy *copy, bool owes,
                                 const struct earlier *earlier)
{
    struct route route = {(CUdeviceptr)(uintptr_t)copy->dst, call->handle, call->stream, NULL,
                          !earlier->event};
    if (owes && earlier->event && gb_real.f.cuEventQuery(earlier->event) != CUDA_SUCCESS)
        route.region = gb_hop_take(&ring->hop, call->stream, copy->bytes);
    if (route.region) {
        GB_COUNT(gb_counters.hop_copies, 1);
        route.dst = ring->hop.memory + route.region->start;
        route.handle = ring->hop.stream;
        route.stream = NULL;
    }
    return route;
}

/* The second hop, in the order of the caller's stream. */
static bool leave_region(const struct route *route, const struct gb_call *call,
                         const struct gb_copy *copy)
{
    struct gb_hop_region *region = route->region;
    CUdeviceptr dst = (CUdeviceptr)(uintptr_t)copy->dst;
    return !region ||
           (gb_real.f.cuEventRecord(region->arrived, route->handle) == CUDA_SUCCESS &&
            gb_real.f.cuStreamWaitEvent(call->handle, region->arrived, 0) == CUDA_SUCCESS &&
            gb_real.f.cuMemcpyDtoDAsync_v2(dst, route->dst, copy->bytes, call->handle) ==
                CUDA_SUCCESS &&
            gb_real.f.cuEventRecord(region->left, call->handle) == CUDA_SUCCESS);
}

static bool stage_through(struct gb_pinned_ring *ring, struct gb_call *call,
                          const struct gb_copy *copy)
{
    struct earlier earlier;
    gb_debt_fence(
        call->handle); /* what other streams owe: our calls pass no hook that would see to it */
    bool verifies = gb_verify_wants();
    bool owes = !verifies && gb_may_owe(call, copy);
    gb_hop_note(&ring->hop, call->stream, copy->bytes);
    if (!begin(ring, call, copy->bytes, owes, &earlier))
        return false;
    struct chunks chunks = usable_chunks(ring, call->stream, earlier.event);
    if (chunks.count == 0)
        return gb_declines(&gb_counters.h2d_busy);
    struct route route = choose_route(ring, call, copy, owes, &earlier);
    bool done = send_all(ring, &chunks, &route, copy, &earlier) && leave_region(&route, call, copy);
    if (done && owes && gb_debt_open(call->stream, call->handle))
        call->owed = true;
    else if (done && route.region)
        done = gb_real.f.cuStreamSynchronize(call->handle) == CUDA_SUCCESS;
    else
        done = wait_for_all(&chunks, &earlier) && done;
    if (!done) {
        settle(ring, &chunks, call->handle);
        return gb_declines(&gb_counters.h2d_error);
    }
    if (verifies && !gb_verify_copy(ring, call, copy))
        return false;
    call->staged = true;
    call->queued_ns = earlier.event ? 0 : earlier.done_ns - earlier.start_ns;
    return true;
}

static bool stage(struct gb_call *call, const struct gb_copy *copy)
{
    struct gb_pinned_ring *ring;
    switch (gb_pinned_take(call->stream->context, &ring)) {
    case GB_PINNED_TAKEN:
        break;
    case GB_PINNED_BUSY:
        return gb_declines(&gb_counters.h2d_busy);
    default:
        return gb_declines(&gb_counters.h2d_ring);
    }
    bool staged = stage_through(ring, call, copy);
    gb_pinned_put(ring);
    if (staged) {
        GB_COUNT(staged_copies, 1);
        GB_COUNT(staged_bytes, copy->bytes);
        GB_COUNT(early_copies, call->owed);
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
        return gb_declines(&gb_counters.h2d_error);
    bool staged = stage(call, copy);
    gb_driver.cuThreadExchangeStreamCaptureMode(&mode);
    return staged;
}

static void h2d_stage_totals(struct gb_totals *totals)
{
    totals->staged_copies += GB_READ(staged_copies);
    totals->staged_bytes += GB_READ(staged_bytes);
    totals->early_copies += GB_READ(early_copies);
    totals->staging_bytes += gb_hop_bytes();
    totals->ring_bytes += gb_pinned_bytes();
    totals->ring_limit_bytes += gb_pinned_limit_bytes();
}

const struct gb_policy gb_policy_h2d_stage = {"h2d_stage", h2d_stage_copy, h2d_stage_totals};
