/* memory.c: device, host, managed and pool memory, and what a pointer is.
 *
 * Thread rule: none of its own. Failure rule: the driver's error; inter-process handles are refused
 * by the driver.
 */
#include "runtime.h"

static CUdeviceptr address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMalloc(%zu)", bytes);
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    RT_FORWARD(cuMemAlloc, (CUdeviceptr *)pointer, bytes);
}

cudaError_t cudaFree(void *pointer)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaFree(%p)", pointer);
    if (!pointer)
        return cudaSuccess;
    RT_FORWARD(cuMemFree, address(pointer));
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMallocAsync(%zu, %p)", bytes, (void *)stream);
    RT_FORWARD(cuMemAllocAsync, (CUdeviceptr *)pointer, bytes, stream);
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMallocFromPoolAsync(%zu, %p)", bytes, (void *)stream);
    RT_FORWARD(cuMemAllocFromPoolAsync, (CUdeviceptr *)pointer, bytes, pool, stream);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaFreeAsync(%p, %p)", pointer, (void *)stream);
    RT_FORWARD(cuMemFreeAsync, address(pointer), stream);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMallocManaged(%zu)", bytes);
    RT_FORWARD(cuMemAllocManaged, (CUdeviceptr *)pointer, bytes, flags);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMallocHost(%zu)", bytes);
    RT_FORWARD(cuMemHostAlloc, pointer, bytes, 0);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaHostAlloc(%zu, flags=%u)", bytes, flags);
    RT_FORWARD(cuMemHostAlloc, pointer, bytes, flags);
}

cudaError_t cudaFreeHost(void *pointer)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaFreeHost(%p)", pointer);
    if (!pointer)
        return cudaSuccess;
    RT_FORWARD(cuMemFreeHost, pointer);
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaHostRegister(%p, %zu, flags=%u)", pointer, bytes, flags);
    RT_FORWARD(cuMemHostRegister, pointer, bytes, flags);
}

cudaError_t cudaHostUnregister(void *pointer)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaHostUnregister(%p)", pointer);
    RT_FORWARD(cuMemHostUnregister, pointer);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaHostGetDevicePointer(%p)", host);
    RT_FORWARD(cuMemHostGetDevicePointer, (CUdeviceptr *)device, host, flags);
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaHostGetFlags(%p)", host);
    RT_FORWARD(cuMemHostGetFlags, flags, host);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemGetInfo");
    RT_FORWARD(cuMemGetInfo, free_bytes, total_bytes);
}

/* Unknown host memory is not an error since CUDA 11: type unregistered, device -2
 * (CUDA Runtime API, cudaPointerGetAttributes). */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaPointerGetAttributes(%p)", pointer);
    unsigned int type = 0, managed = 0;
    int ordinal = -2;
    CUdeviceptr device = 0;
    void *host = NULL;
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,
    };
    void *values[] = {&type, &managed, &ordinal, &device, &host};
    cudaError_t error = RT_CALL(cuPointerGetAttributes, 5, names, values, address(pointer));
    if (error != cudaSuccess)
        RT_RETURN(error);
    attributes->type = managed                        ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                       : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                                                      : cudaMemoryTypeUnregistered;
    int known = attributes->type != cudaMemoryTypeUnregistered;
    attributes->device = known ? ordinal : -2;
    attributes->devicePointer = known ? (void *)(uintptr_t)device : NULL;
    attributes->hostPointer = known ? host : (void *)(uintptr_t)pointer;
    return cudaSuccess;
}

/* --- pools --- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaDeviceGetDefaultMemPool(%d)", device);
    RT_FORWARD(cuDeviceGetDefaultMemPool, pool, device);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemPoolTrimTo(%p, %zu)", (void *)pool, keep_bytes);
    RT_FORWARD(cuMemPoolTrimTo, pool, keep_bytes);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr name, void *value)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemPoolSetAttribute(%p, %d)", (void *)pool, (int)name);
    RT_FORWARD(cuMemPoolSetAttribute, pool, (CUmemPool_attribute)name, value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr name, void *value)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemPoolGetAttribute(%p, %d)", (void *)pool, (int)name);
    RT_FORWARD(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)name, value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access,
                                 size_t count)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaMemPoolSetAccess(%p)", (void *)pool);
    RT_FORWARD(cuMemPoolSetAccess, pool, (const CUmemAccessDesc *)access, count);
}

/* --- between processes --- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaIpcGetMemHandle(%p)", pointer);
    RT_FORWARD(cuIpcGetMemHandle, (CUipcMemHandle *)handle, address(pointer));
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaIpcOpenMemHandle");
    CUipcMemHandle same;
    __builtin_memcpy(&same, &handle, sizeof(same));
    RT_FORWARD(cuIpcOpenMemHandle, (CUdeviceptr *)pointer, same, flags);
}

cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaIpcCloseMemHandle(%p)", pointer);
    RT_FORWARD(cuIpcCloseMemHandle, address(pointer));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaIpcGetEventHandle(%p)", (void *)event);
    RT_FORWARD(cuIpcGetEventHandle, (CUipcEventHandle *)handle, event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaIpcOpenEventHandle");
    CUipcEventHandle same;
    __builtin_memcpy(&same, &handle, sizeof(same));
    RT_FORWARD(cuIpcOpenEventHandle, event, same);
}
