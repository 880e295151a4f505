/* copy.c: linear copies, and the rules for every copy (CUDA Runtime API, "API synchronization
 * behavior").
 *
 * A copy with page-locked memory is the engine's business. From pageable memory up to
 * GPUSIM_SMALL_COPY_BYTES the bytes are taken at the call; of more, the driver waits for what the
 * stream has, then transfers while the caller waits (GPUSIM_PAGEABLE_BLOCKS=0: until the source is
 * read). To pageable memory the call returns when the bytes are there.
 * Thread rule: sim_lock, given up while the caller waits or large sources are read. Failure rule:
 * an address that is nothing answers INVALID_VALUE.
 */
#include "entry.h"

#include "log_args.h"

#include <stdlib.h>
#include <string.h>

enum place { ON_DEVICE, LOCKED, PAGEABLE, NOWHERE };

uint64_t sim_transfer_ns(double bytes, double gigabytes_per_s)
{
    double ns = gigabytes_per_s > 0 ? bytes / gigabytes_per_s : 0;
    return (uint64_t)(ns > SIM_NUMBER(COPY_NS) ? ns : SIM_NUMBER(COPY_NS));
}

static size_t extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
    return width + (height - 1) * pitch + (depth - 1) * slice;
}

static enum place place_of(uint64_t address, size_t bytes, int *device)
{
    struct sim_range range;
    bool known = sim_memory_find(address, &range);
    if (sim_is_device_address(address)) {
        *device = known ? range.device : 0;
        return known && !range.dead && sim_memory_at(address, bytes) ? ON_DEVICE : NOWHERE;
    }
    if (!known || address + bytes > range.base + range.bytes)
        return address ? PAGEABLE : NOWHERE;
    *device = range.device;
    return range.kind == SIM_MANAGED ? ON_DEVICE : LOCKED;
}

/* --- the kinds of copies --- */

static struct sim_op *operation(const struct sim_copy *box, enum sim_unit_kind unit, double rate)
{
    double bytes = (double)box->width * (double)box->height * (double)box->depth;
    struct sim_op *op = sim_op_new(SIM_OP_COPY, unit, sim_transfer_ns(bytes, rate));
    op->copy = *box;
    return op;
}

/* Both streams and directions of one engine share the first. */
static enum sim_unit_kind link_unit(enum sim_unit_kind unit)
{
    return SIM_NUMBER(COPY_ENGINES) < 2 ? SIM_H2D : unit;
}

static CUresult submit(struct sim_stream *stream, struct sim_op *op, bool wait)
{
    struct sim_op *kept;
    struct sim_context *context = stream->context;
    CUresult result = sim_enqueue(stream, op, wait ? &kept : NULL);
    if (result != CUDA_SUCCESS || !wait || !kept)
        return result;
    sim_wait_op(kept);
    sim_op_drop(kept);
    return context->sticky;
}

/* Some drivers keep the context's lock while the caller waits for a pageable copy. */
static CUresult submit_pageable(struct sim_stream *stream, struct sim_op *op)
{
    bool locks = SIM_NUMBER(COPY_LOCKS) != 0 && !sim.copying;
    if (locks)
        sim.copying = &sim_thread;
    CUresult result = submit(stream, op, true);
    if (locks) {
        sim.copying = NULL;
        pthread_cond_broadcast(&sim.progress);
    }
    return result;
}

/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_CTX_SYNC_MEMOPS: "synchronous memory operations initiated on
 * the region of memory [or this context] will always synchronize". */
bool sim_always_waits(const struct sim_stream *stream, uint64_t address)
{
    struct sim_range range;
    return (stream->context->flags & CU_CTX_SYNC_MEMOPS) ||
           (sim_memory_find(address, &range) && range.sync_memops);
}

static bool always_waits(const struct sim_stream *stream, const struct sim_copy *box)
{
    return sim_always_waits(stream, box->dst) || sim_always_waits(stream, box->src);
}

/* Takes the source now; the operation gets a packed copy of it. */
static bool take_source(struct sim_op *op)
{
    struct sim_copy *copy = &op->copy;
    size_t bytes = copy->width * copy->height * copy->depth;
    struct sim_copy packed = *copy;
    packed.owned = malloc(bytes);
    if (!packed.owned)
        return false;
    struct sim_copy to = *copy;
    to.dst = (uint64_t)packed.owned;
    to.dst_pitch = copy->width;
    to.dst_slice = copy->width * copy->height;
    sim_copy_move(&to);
    packed.src_pitch = to.dst_pitch;
    packed.src_slice = to.dst_slice;
    *copy = packed;
    return true;
}

static CUresult from_pageable(const struct sim_copy *box, struct sim_stream *stream,
                              bool synchronous)
{
    double bytes = (double)box->width * (double)box->height * (double)box->depth;
    bool small = bytes <= SIM_NUMBER(SMALL_COPY_BYTES);
    bool blocks = SIM_NUMBER(PAGEABLE_BLOCKS) != 0;
    struct sim_op *op = operation(box, link_unit(SIM_H2D), SIM_NUMBER(PAGEABLE_GBPS));
    if (stream->capture) /* a node that reads the source at every launch */
        return submit(stream, op, false);
    if (!small && blocks)
        return submit_pageable(stream, op);
    if (synchronous || !small)
        sim_wait_stream(stream);
    if (!take_source(op)) {
        sim_op_drop(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return submit(stream, op, synchronous && always_waits(stream, box));
}

static CUresult within_host(const struct sim_copy *box, struct sim_stream *stream)
{
    struct sim_op *op = sim_op_new(SIM_OP_COPY, SIM_NO_UNIT, 0);
    op->copy = *box;
    return submit(stream, op, !stream->capture);
}

static CUresult within_devices(const struct sim_copy *box, struct sim_stream *stream, bool peers,
                               bool synchronous)
{
    double rate = peers ? SIM_NUMBER(PINNED_GBPS) : SIM_NUMBER(D2D_GBPS);
    bool own_engine = peers || SIM_NUMBER(COPY_ENGINES) >= 3;
    return submit(stream, operation(box, own_engine ? SIM_D2D : SIM_COMPUTE, rate),
                  synchronous && always_waits(stream, box));
}

static CUresult to_host(struct sim_copy *box, struct sim_stream *stream, bool locked, bool wait)
{
    double rate = locked ? SIM_NUMBER(PINNED_GBPS) : SIM_NUMBER(PAGEABLE_GBPS);
    box->early = locked;
    struct sim_op *op = operation(box, link_unit(SIM_D2H), rate);
    if (!locked && !stream->capture)
        return submit_pageable(stream, op);
    return submit(stream, op, wait && !stream->capture);
}

CUresult sim_copy_box(const struct sim_copy *wanted, struct sim_stream *stream, bool synchronous)
{
    struct sim_copy box = *wanted;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (synchronous) {
        CUresult allowed = sim_capture_allows_unsafe();
        if (allowed == CUDA_SUCCESS)
            allowed = sim_capture_allows_stream(stream);
        if (allowed != CUDA_SUCCESS)
            return allowed;
    }
    if (box.width == 0 || box.height == 0 || box.depth == 0)
        return CUDA_SUCCESS;
    int src_device = 0, dst_device = 0;
    size_t rows = box.height, slices = box.depth;
    enum place src = place_of(
        box.src, extent(box.width, rows, slices, box.src_pitch, box.src_slice), &src_device);
    enum place dst = place_of(
        box.dst, extent(box.width, rows, slices, box.dst_pitch, box.dst_slice), &dst_device);
    if (src == NOWHERE || dst == NOWHERE)
        return CUDA_ERROR_INVALID_VALUE;
    if (src == ON_DEVICE && dst == ON_DEVICE)
        return within_devices(&box, stream, src_device != dst_device, synchronous);
    if (src == ON_DEVICE)
        return to_host(&box, stream, dst == LOCKED, synchronous);
    if (dst != ON_DEVICE)
        return within_host(&box, stream);
    if (src == PAGEABLE)
        return from_pageable(&box, stream, synchronous);
    return submit(stream, operation(&box, link_unit(SIM_H2D), SIM_NUMBER(PINNED_GBPS)),
                  synchronous);
}

/* --- entry points --- */

static CUresult linear(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream handle,
                       bool synchronous)
{
    struct sim_copy box = {.src = src, .dst = dst, .width = bytes, .height = 1, .depth = 1};
    return sim_copy_box(&box, sim_stream_of(handle), synchronous);
}

static bool is_device_side(CUdeviceptr address)
{
    struct sim_range range;
    return sim_is_device_address(address) || sim_memory_find(address, &range);
}

CUresult drv_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return linear(dst, src, bytes, NULL, true);
}

CUresult drv_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    if (bytes && !is_device_side(dst))
        return CUDA_ERROR_INVALID_VALUE;
    return linear(dst, (CUdeviceptr)src, bytes, NULL, true);
}

CUresult drv_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    if (bytes && !is_device_side(src))
        return CUDA_ERROR_INVALID_VALUE;
    return linear((CUdeviceptr)dst, src, bytes, NULL, true);
}

CUresult drv_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    if (bytes && (!is_device_side(dst) || !is_device_side(src)))
        return CUDA_ERROR_INVALID_VALUE;
    return linear(dst, src, bytes, NULL, true);
}

CUresult drv_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return linear(dst, src, bytes, stream, false);
}

CUresult drv_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
    if (bytes && !is_device_side(dst))
        return CUDA_ERROR_INVALID_VALUE;
    return linear(dst, (CUdeviceptr)src, bytes, stream, false);
}

CUresult drv_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    if (bytes && !is_device_side(src))
        return CUDA_ERROR_INVALID_VALUE;
    return linear((CUdeviceptr)dst, src, bytes, stream, false);
}

CUresult drv_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    if (bytes && (!is_device_side(dst) || !is_device_side(src)))
        return CUDA_ERROR_INVALID_VALUE;
    return linear(dst, src, bytes, stream, false);
}

static bool contexts_valid(CUcontext a, CUcontext b)
{
    return sim_context_valid((struct sim_context *)a) && sim_context_valid((struct sim_context *)b);
}

CUresult drv_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                          CUcontext src_context, size_t bytes)
{
    if (!contexts_valid(dst_context, src_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return drv_cuMemcpyDtoD_v2(dst, src, bytes);
}

CUresult drv_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                               CUcontext src_context, size_t bytes, CUstream stream)
{
    if (!contexts_valid(dst_context, src_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return drv_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

/* --- batches: each copy on its own; the legacy stream is not allowed --- */

static CUresult one_of_batch(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                             const CUmemcpyAttributes *attributes, CUstream stream)
{
    if (attributes->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_INVALID ||
        attributes->srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = linear(dst, src, bytes, stream, false);
    bool now = attributes->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    sim_log_range(now ? "takes" : "reads", src, bytes);
    sim_log_range("writes", dst, bytes);
    if (result == CUDA_SUCCESS && now && !sim_is_device_address(src))
        sim_wait_stream(sim_stream_of(stream)); /* the source has been read when this returns */
    return result;
}

CUresult drv_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attributes, size_t *indices,
                                size_t attribute_count, size_t *fail_index, CUstream handle)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (fail_index)
        *fail_index = SIZE_MAX;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream == stream->context->legacy || count == 0 || attribute_count == 0 || indices[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    size_t which = 0;
    for (size_t i = 0; i < count; i++) {
        while (which + 1 < attribute_count && indices[which + 1] <= i)
            which++;
        CUresult result = one_of_batch(dsts[i], srcs[i], sizes[i], &attributes[which], handle);
        if (result == CUDA_SUCCESS)
            continue;
        if (fail_index)
            *fail_index = i;
        return result;
    }
    return CUDA_SUCCESS;
}
