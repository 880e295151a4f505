/* copy_pitched.c: two- and three-dimensional copies; arrays do not exist here.
 *
 * Thread rule: sim_lock. Failure rule: INVALID_VALUE for a pitch below the width; NOT_SUPPORTED for
 * an array.
 */
#include "entry.h"

#include "log_args.h"

static CUresult address_of(CUmemorytype type, const void *host, CUdeviceptr device,
                           uint64_t *address)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        *address = (uint64_t)host;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        *address = device;
        return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim_copy_box_of(const CUDA_MEMCPY3D *from, struct sim_copy *box)
{
    *box = (struct sim_copy){.width = from->WidthInBytes,
                             .height = from->Height,
                             .depth = from->Depth,
                             .src_pitch = from->srcPitch,
                             .dst_pitch = from->dstPitch};
    CUresult result = address_of(from->srcMemoryType, from->srcHost, from->srcDevice, &box->src);
    if (result == CUDA_SUCCESS)
        result = address_of(from->dstMemoryType, from->dstHost, from->dstDevice, &box->dst);
    if (result != CUDA_SUCCESS)
        return result;
    bool rows = box->height > 1 || box->depth > 1;
    if (rows && (box->src_pitch < box->width || box->dst_pitch < box->width))
        return CUDA_ERROR_INVALID_VALUE;
    box->src_slice = box->src_pitch * from->srcHeight;
    box->dst_slice = box->dst_pitch * from->dstHeight;
    box->src += from->srcZ * box->src_slice + from->srcY * box->src_pitch + from->srcXInBytes;
    box->dst += from->dstZ * box->dst_slice + from->dstY * box->dst_pitch + from->dstXInBytes;
    return CUDA_SUCCESS;
}

static CUresult copy3d(const CUDA_MEMCPY3D *from, CUstream stream, bool synchronous)
{
    struct sim_copy box;
    CUresult result = from ? sim_copy_box_of(from, &box) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    sim_log_copy(&box);
    return sim_copy_box(&box, sim_stream_of(stream), synchronous);
}

static CUresult copy2d(const CUDA_MEMCPY2D *from, CUstream stream, bool synchronous)
{
    if (!from)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D same = {.srcXInBytes = from->srcXInBytes,
                          .srcY = from->srcY,
                          .srcMemoryType = from->srcMemoryType,
                          .srcHost = from->srcHost,
                          .srcDevice = from->srcDevice,
                          .srcPitch = from->srcPitch,
                          .dstXInBytes = from->dstXInBytes,
                          .dstY = from->dstY,
                          .dstMemoryType = from->dstMemoryType,
                          .dstHost = from->dstHost,
                          .dstDevice = from->dstDevice,
                          .dstPitch = from->dstPitch,
                          .WidthInBytes = from->WidthInBytes,
                          .Height = from->Height,
                          .Depth = 1};
    return copy3d(&same, stream, synchronous);
}

CUresult drv_cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    return copy2d(copy, NULL, true);
}

CUresult drv_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    return copy2d(copy, NULL, true);
}

CUresult drv_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    return copy2d(copy, stream, false);
}

CUresult drv_cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
    return copy3d(copy, NULL, true);
}

CUresult drv_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    return copy3d(copy, stream, false);
}
