/* pool.c: stream-ordered memory. Each device has one pool; made ones are further names for it.
 *
 * What is freed may not be touched by work after the free in any stream; its bytes go when the
 * stream gets there.
 * Thread rule: sim_lock. Failure rule: as documented; in a capture UNSUPPORTED.
 */
#include "entry.h"

#include <string.h>

#define POOLS_MOST 64

struct pool {
    bool live;
    int device;
    uint64_t release_threshold, used, used_high;
};

static struct pool pools[POOLS_MOST]; /* the first SIM_MAX_DEVICES are the default ones */

static struct pool *default_pool(int device)
{
    pools[device].live = true;
    pools[device].device = device;
    return &pools[device];
}

static struct pool *pool_of(CUmemoryPool handle)
{
    struct pool *pool = (struct pool *)handle;
    bool inside = pool >= pools && pool < pools + POOLS_MOST;
    return inside && pool->live ? pool : NULL;
}

CUmemoryPool sim_pool_of_device(int device)
{
    return (CUmemoryPool)default_pool(device);
}

/* --- allocating --- */

static CUresult alloc(struct pool *pool, struct sim_stream *stream, CUdeviceptr *address,
                      size_t bytes)
{
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!address || !pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) {
        sim_capture_fail(stream->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CUresult result =
        sim_memory_alloc_or_wait(stream->context, bytes ? bytes : 1, SIM_POOL, address);
    if (result != CUDA_SUCCESS)
        return result;
    pool->used += bytes;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream handle)
{
    struct sim_stream *stream = sim_stream_of(handle);
    int device = sim_current()->device->ordinal;
    return alloc(default_pool(device), stream, address, bytes);
}

CUresult drv_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                     CUstream handle)
{
    return alloc(pool_of(pool), sim_stream_of(handle), address, bytes);
}

CUresult drv_cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
    struct sim_stream *stream = sim_stream_of(handle);
    struct sim_range range;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!sim_memory_find(address, &range) || range.base != address || range.dead ||
        (range.kind != SIM_POOL && range.kind != SIM_DEVICE))
        return CUDA_ERROR_INVALID_VALUE;
    if (range.kind == SIM_POOL)
        default_pool(range.device)->used -= range.bytes;
    struct sim_op *op = sim_op_new(SIM_OP_FREE, SIM_NO_UNIT, 0);
    op->free = address;
    sim_memory_mark_dead(address);
    return sim_enqueue(stream, op, NULL);
}

/* --- pools --- */

CUresult drv_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = (CUmemoryPool)default_pool(device);
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return drv_cuDeviceGetDefaultMemPool(pool, device);
}

CUresult drv_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return pool_of(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *props)
{
    if (!props || !sim_device_of(props->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = SIM_MAX_DEVICES; i < POOLS_MOST; i++) {
        if (pools[i].live)
            continue;
        pools[i] = (struct pool){.live = true, .device = props->location.id};
        *handle = (CUmemoryPool)&pools[i];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult drv_cuMemPoolDestroy(CUmemoryPool handle)
{
    struct pool *pool = pool_of(handle);
    if (!pool || pool < pools + SIM_MAX_DEVICES)
        return CUDA_ERROR_INVALID_VALUE;
    pool->live = false;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    (void)keep_bytes;
    return pool_of(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute name, void *value)
{
    struct pool *pool = pool_of(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (name == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->release_threshold = *(cuuint64_t *)value;
    if (name == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        pool->used_high = pool->used;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute name, void *value)
{
    struct pool *pool = pool_of(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (name) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = 1;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = pool->release_threshold;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = pool->used;
        break;
    default:
        *(cuuint64_t *)value = pool->used_high;
    }
    return CUDA_SUCCESS;
}

CUresult drv_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    return pool_of(pool) && (access || !count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                                CUmemLocation *location)
{
    struct pool *pool = pool_of(handle);
    if (!pool || !location || !sim_device_of(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}
