/* context.c: contexts: the primary ones, made ones, and each thread's stack of them.
 *
 * Thread rule: sim_lock; the stack is thread-local. Failure rule: as documented per call in the
 * CUDA Driver API.
 */
#include "entry.h"

#include <string.h>

#define STACK_MOST ((int)(sizeof(sim_thread.stack) / sizeof(sim_thread.stack[0])) - 1)

static struct sim_context_ref *top(void)
{
    return &sim_thread.stack[sim_thread.depth];
}

static struct sim_context_ref reference(struct sim_context *context)
{
    return (struct sim_context_ref){context, context ? context->generation : 0};
}

/* --- primary contexts --- */

CUresult drv_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal)
{
    struct sim_device *device = sim_device_of(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary) {
        device->primary = sim_context_new(device, device->primary_flags);
        if (!device->primary)
            return CUDA_ERROR_OUT_OF_MEMORY;
        device->primary->primary = true;
    }
    device->primary_retained++;
    *context = (CUcontext)device->primary;
    return CUDA_SUCCESS;
}

CUresult drv_cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    struct sim_device *device = sim_device_of(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary)
        sim_context_end(device->primary);
    device->primary = NULL;
    return CUDA_SUCCESS;
}

CUresult drv_cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    struct sim_device *device = sim_device_of(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary_retained == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_retained > 0)
        return CUDA_SUCCESS;
    return drv_cuDevicePrimaryCtxReset_v2(ordinal);
}

CUresult drv_cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags)
{
    struct sim_device *device = sim_device_of(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    device->primary_flags = flags;
    return CUDA_SUCCESS;
}

CUresult drv_cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active)
{
    struct sim_device *device = sim_device_of(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = device->primary_flags;
    *active = device->primary != NULL;
    return CUDA_SUCCESS;
}

/* --- made contexts and the stack --- */

static CUresult push(struct sim_context *context)
{
    if (sim_thread.depth == STACK_MOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_thread.depth++;
    *top() = reference(context);
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice ordinal)
{
    struct sim_device *device = sim_device_of(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    struct sim_context *made = sim_context_new(device, flags);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *context = (CUcontext)made;
    return push(made);
}

CUresult drv_cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count,
                            unsigned flags, CUdevice ordinal)
{
    (void)affinity;
    return count ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                 : drv_cuCtxCreate_v2(context, flags, ordinal);
}

CUresult drv_cuCtxDestroy_v2(CUcontext handle)
{
    struct sim_context *context = (struct sim_context *)handle;
    if (!sim_context_valid(context) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    bool current = sim_current() == context;
    sim_context_end(context);
    if (current && sim_thread.depth > 0)
        sim_thread.depth--;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxPushCurrent_v2(CUcontext handle)
{
    struct sim_context *context = (struct sim_context *)handle;
    if (!sim_context_valid(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return push(context);
}

CUresult drv_cuCtxPopCurrent_v2(CUcontext *context)
{
    if (!sim_current() && sim_thread.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = (CUcontext)sim_current();
    if (sim_thread.depth > 0)
        sim_thread.depth--;
    else
        *top() = reference(NULL);
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxSetCurrent(CUcontext handle)
{
    struct sim_context *context = (struct sim_context *)handle;
    if (context && !sim_context_valid(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context && sim_thread.depth > 0)
        sim_thread.depth--; /* "if hctx is NULL and the stack is not empty, it is popped" */
    else
        *top() = reference(context);
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)sim_current();
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetDevice(CUdevice *device)
{
    *device = sim_current()->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    struct sim_context *context = handle ? (struct sim_context *)handle : sim_current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!sim_context_valid(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetFlags(unsigned *flags)
{
    *flags = sim_current()->flags;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxSetFlags(unsigned flags)
{
    sim_current()->flags = flags;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    if (context && !sim_context_valid((struct sim_context *)context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

/* Not permitted while one of the context's streams captures. */
CUresult drv_cuCtxSynchronize(void)
{
    struct sim_context *context = sim_current();
    struct sim_capture *capture = sim_capture_in(context);
    if (capture) {
        sim_capture_fail(capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    sim_wait_context(context);
    return context->sticky;
}

/* --- limits and preferences: kept, without effect --- */

static size_t limits[CU_LIMIT_MAX] = {[CU_LIMIT_STACK_SIZE] = 1024,
                                      [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
                                      [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20};

CUresult drv_cuCtxSetLimit(CUlimit limit, size_t value)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetLimit(size_t *value, CUlimit limit)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = limits[limit];
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetCacheConfig(CUfunc_cache *config)
{
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxSetCacheConfig(CUfunc_cache config)
{
    (void)config;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    *config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    (void)config;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

static bool peers[SIM_MAX_DEVICES][SIM_MAX_DEVICES];

CUresult drv_cuCtxEnablePeerAccess(CUcontext handle, unsigned flags)
{
    struct sim_context *context = (struct sim_context *)handle;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_context_valid(context) || context->device == sim_current()->device)
        return CUDA_ERROR_INVALID_CONTEXT;
    bool *enabled = &peers[sim_current()->device->ordinal][context->device->ordinal];
    if (*enabled)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    *enabled = true;
    return CUDA_SUCCESS;
}

CUresult drv_cuCtxDisablePeerAccess(CUcontext handle)
{
    struct sim_context *context = (struct sim_context *)handle;
    if (!sim_context_valid(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    bool *enabled = &peers[sim_current()->device->ordinal][context->device->ordinal];
    if (!*enabled)
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    *enabled = false;
    return CUDA_SUCCESS;
}
