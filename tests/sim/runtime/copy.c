/* copy.c: copies and memsets.
 *
 * A direction given by the caller picks the driver's function of that direction, cudaMemcpyDefault
 * the one that asks the addresses, as libcudart does.
 * Thread rule: none of its own. Failure rule: a direction outside the enumeration answers
 * cudaErrorInvalidMemcpyDirection, everything else is the driver's error.
 */
#include "runtime.h"

static CUdeviceptr address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemcpy(%p, %p, %zu, kind=%d)", dst, src, bytes, (int)kind);
    switch (kind) {
    case cudaMemcpyHostToDevice:
        RT_FORWARD(cuMemcpyHtoD, address(dst), src, bytes);
    case cudaMemcpyDeviceToHost:
        RT_FORWARD(cuMemcpyDtoH, dst, address(src), bytes);
    case cudaMemcpyDeviceToDevice:
        RT_FORWARD(cuMemcpyDtoD, address(dst), address(src), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        RT_FORWARD(cuMemcpy, address(dst), address(src), bytes);
    default:
        RT_RETURN(cudaErrorInvalidMemcpyDirection);
    }
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemcpyAsync(%p, %p, %zu, kind=%d, %p)", dst, src, bytes,
             (int)kind, (void *)stream);
    switch (kind) {
    case cudaMemcpyHostToDevice:
        RT_FORWARD(cuMemcpyHtoDAsync, address(dst), src, bytes, stream);
    case cudaMemcpyDeviceToHost:
        RT_FORWARD(cuMemcpyDtoHAsync, dst, address(src), bytes, stream);
    case cudaMemcpyDeviceToDevice:
        RT_FORWARD(cuMemcpyDtoDAsync, address(dst), address(src), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        RT_FORWARD(cuMemcpyAsync, address(dst), address(src), bytes, stream);
    default:
        RT_RETURN(cudaErrorInvalidMemcpyDirection);
    }
}

/* Peer copies name devices; the driver wants their primary contexts. */
static cudaError_t peer_contexts(int dst_device, int src_device, CUcontext contexts[2])
{
    cudaError_t error = RT_CALL(cuDevicePrimaryCtxRetain, &contexts[0], dst_device);
    if (error == cudaSuccess)
        error = RT_CALL(cuDevicePrimaryCtxRetain, &contexts[1], src_device);
    return error;
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemcpyPeer(%p, %d, %p, %d, %zu)", dst, dst_device, src,
             src_device, bytes);
    CUcontext contexts[2];
    cudaError_t error = peer_contexts(dst_device, src_device, contexts);
    if (error != cudaSuccess)
        RT_RETURN(error);
    RT_FORWARD(cuMemcpyPeer, address(dst), contexts[0], address(src), contexts[1], bytes);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                size_t bytes, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemcpyPeerAsync(%p, %d, %p, %d, %zu, %p)", dst, dst_device, src,
             src_device, bytes, (void *)stream);
    CUcontext contexts[2];
    cudaError_t error = peer_contexts(dst_device, src_device, contexts);
    if (error != cudaSuccess)
        RT_RETURN(error);
    RT_FORWARD(cuMemcpyPeerAsync, address(dst), contexts[0], address(src), contexts[1], bytes,
               stream);
}

/* --- pitched copies --- */

static void set_source(CUDA_MEMCPY2D *copy, CUmemorytype type, const void *pointer, size_t pitch)
{
    copy->srcMemoryType = type;
    copy->srcHost = pointer;
    copy->srcDevice = address(pointer);
    copy->srcPitch = pitch;
}

static void set_destination(CUDA_MEMCPY2D *copy, CUmemorytype type, void *pointer, size_t pitch)
{
    copy->dstMemoryType = type;
    copy->dstHost = pointer;
    copy->dstDevice = address(pointer);
    copy->dstPitch = pitch;
}

static CUDA_MEMCPY2D pitched(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                             size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy = {.WidthInBytes = width, .Height = height};
    int from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
    int to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
    int any = kind == cudaMemcpyDefault;
    set_source(&copy,
               any         ? CU_MEMORYTYPE_UNIFIED
               : from_host ? CU_MEMORYTYPE_HOST
                           : CU_MEMORYTYPE_DEVICE,
               src, src_pitch);
    set_destination(&copy,
                    any       ? CU_MEMORYTYPE_UNIFIED
                    : to_host ? CU_MEMORYTYPE_HOST
                              : CU_MEMORYTYPE_DEVICE,
                    dst, dst_pitch);
    return copy;
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemcpy2D(%p, %p, %zux%zu, kind=%d)", dst, src, width, height,
             (int)kind);
    CUDA_MEMCPY2D copy = pitched(dst, dst_pitch, src, src_pitch, width, height, kind);
    RT_FORWARD(cuMemcpy2D, &copy);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemcpy2DAsync(%p, %p, %zux%zu, kind=%d, %p)", dst, src, width,
             height, (int)kind, (void *)stream);
    CUDA_MEMCPY2D copy = pitched(dst, dst_pitch, src, src_pitch, width, height, kind);
    RT_FORWARD(cuMemcpy2DAsync, &copy, stream);
}

/* Since 12.8; the attribute structs of both layers have the same layout (driver_types.h). */
cudaError_t cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *indices,
                                 size_t attribute_count, size_t *fail_index, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemcpyBatchAsync(%zu, %p)", count, (void *)stream);
    RT_FORWARD(cuMemcpyBatchAsync, (CUdeviceptr *)dsts, (CUdeviceptr *)srcs, sizes, count,
               (CUmemcpyAttributes *)attributes, indices, attribute_count, fail_index, stream);
}

/* --- memset --- */

cudaError_t cudaMemset(void *pointer, int value, size_t bytes)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemset(%p, %d, %zu)", pointer, value, bytes);
    RT_FORWARD(cuMemsetD8, address(pointer), (unsigned char)value, bytes);
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemsetAsync(%p, %d, %zu, %p)", pointer, value, bytes,
             (void *)stream);
    RT_FORWARD(cuMemsetD8Async, address(pointer), (unsigned char)value, bytes, stream);
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemset2D(%p, %d, %zux%zu)", pointer, value, width, height);
    RT_FORWARD(cuMemsetD2D8, address(pointer), pitch, (unsigned char)value, width, height);
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemset2DAsync(%p, %d, %zux%zu, %p)", pointer, value, width,
             height, (void *)stream);
    RT_FORWARD(cuMemsetD2D8Async, address(pointer), pitch, (unsigned char)value, width, height,
               stream);
}
