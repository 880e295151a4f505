/* memset.c: fills. They are asynchronous, also without Async in their name, unless the memory is
 * page-locked host memory (CUDA Runtime API, "API synchronization behavior").
 *
 * Thread rule: sim_lock. Failure rule: INVALID_VALUE for memory a device cannot reach.
 */
#include "entry.h"

struct sim_op *sim_fill_operation(const struct sim_fill *fill)
{
    double bytes = (double)fill->width * (double)fill->height;
    struct sim_op *op =
        sim_op_new(SIM_OP_FILL, SIM_COMPUTE, sim_transfer_ns(bytes, SIM_NUMBER(D2D_GBPS)));
    op->fill = *fill;
    return op;
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned unit_bytes,
                     size_t count, size_t height, CUstream handle, bool synchronous)
{
    struct sim_stream *stream = sim_stream_of(handle);
    struct sim_range range;
    struct sim_fill fill = {dst, count * unit_bytes, height, pitch, value, unit_bytes};
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (synchronous && sim_capture_allows_unsafe() != CUDA_SUCCESS)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (fill.width == 0 || height == 0)
        return CUDA_SUCCESS;
    size_t all = fill.width + (height - 1) * pitch;
    if (dst % unit_bytes || (height > 1 && pitch < fill.width) || !sim_memory_find(dst, &range) ||
        range.dead || !sim_memory_at(dst, all))
        return CUDA_ERROR_INVALID_VALUE;
    bool on_host = range.kind == SIM_PINNED || range.kind == SIM_REGISTERED;
    if (on_host && dst + all > range.base + range.bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_context *context = stream->context;
    CUresult result = sim_enqueue(stream, sim_fill_operation(&fill), NULL);
    if (result != CUDA_SUCCESS || !synchronous || !(on_host || sim_always_waits(stream, dst)))
        return result;
    sim_wait_stream(stream);
    return context->sticky;
}

CUresult drv_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count)
{
    return fill(dst, 0, value, 1, count, 1, NULL, true);
}

CUresult drv_cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count)
{
    return fill(dst, 0, value, 2, count, 1, NULL, true);
}

CUresult drv_cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count)
{
    return fill(dst, 0, value, 4, count, 1, NULL, true);
}

CUresult drv_cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                             size_t height)
{
    return fill(dst, pitch, value, 1, width, height, NULL, true);
}

CUresult drv_cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                              size_t height)
{
    return fill(dst, pitch, value, 2, width, height, NULL, true);
}

CUresult drv_cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                              size_t height)
{
    return fill(dst, pitch, value, 4, width, height, NULL, true);
}

CUresult drv_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
    return fill(dst, 0, value, 1, count, 1, stream, false);
}

CUresult drv_cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
    return fill(dst, 0, value, 2, count, 1, stream, false);
}

CUresult drv_cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
    return fill(dst, 0, value, 4, count, 1, stream, false);
}

CUresult drv_cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream stream)
{
    return fill(dst, pitch, value, 1, width, height, stream, false);
}

CUresult drv_cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                                size_t height, CUstream stream)
{
    return fill(dst, pitch, value, 2, width, height, stream, false);
}

CUresult drv_cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                                size_t height, CUstream stream)
{
    return fill(dst, pitch, value, 4, width, height, stream, false);
}
