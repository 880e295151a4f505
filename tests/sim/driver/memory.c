/* memory.c: device and managed memory.
 *
 * Freeing waits for the device, as every driver is seen to do; GPUSIM_FREE_DRAINS=0 returns at
 * once and the memory goes when the work submitted so far is done.
 * Thread rule: sim_lock. Failure rule: OUT_OF_MEMORY only after memory freed in stream order has
 * been waited for.
 */
#include "entry.h"

#include <sys/mman.h>

#define PITCH 512

CUresult sim_memory_alloc_or_wait(struct sim_context *context, size_t bytes,
                                  enum sim_memory_kind kind, CUdeviceptr *address)
{
    CUresult result = sim_memory_alloc(context, bytes, kind, address);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !sim_free_pending(context->device))
        return result;
    sim_wait_device(context->device);
    return sim_memory_alloc(context, bytes, kind, address);
}

bool sim_free_pending(const struct sim_device *device)
{
    for (const struct sim_op *op = sim.oldest; op; op = op->newer)
        if (op->kind == SIM_OP_FREE && op->context->device == device)
            return true;
    return false;
}

/* Everything submitted so far, in any context: peers may still read. */
void sim_drain(void)
{
    sim_wait_context(NULL);
}

CUresult drv_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    sim_memory_info(sim_current()->device->ordinal, free_bytes, total_bytes);
    return CUDA_SUCCESS;
}

CUresult drv_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_memory_alloc_or_wait(sim_current(), bytes, SIM_DEVICE, address);
}

CUresult drv_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                unsigned element_bytes)
{
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return drv_cuMemAlloc_v2(address, *pitch * height);
}

static void free_later(struct sim_context *context, CUdeviceptr address)
{
    struct sim_op *op = sim_op_new(SIM_OP_FREE, SIM_NO_UNIT, 0);
    op->free = address;
    for (struct sim_op *other = sim.oldest; other; other = other->newer)
        sim_op_after(op, other);
    sim_op_submit_loose(context->legacy, op);
    sim_op_drop(op);
}

static CUresult free_managed(const struct sim_range *range)
{
    struct sim_range removed;
    sim_drain();
    if (!sim_memory_remove(range->base, &removed))
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)(uintptr_t)removed.base, removed.bytes);
    return CUDA_SUCCESS;
}

CUresult drv_cuMemFree_v2(CUdeviceptr address)
{
    struct sim_range range;
    if (!address)
        return CUDA_SUCCESS;
    if (!sim_memory_find(address, &range) || range.base != address || range.dead)
        return CUDA_ERROR_INVALID_VALUE;
    if (range.kind == SIM_MANAGED)
        return free_managed(&range);
    if (range.kind != SIM_DEVICE && range.kind != SIM_POOL)
        return CUDA_ERROR_INVALID_VALUE;
    if (SIM_NUMBER(FREE_DRAINS) == 0) {
        sim_memory_mark_dead(address);
        free_later(sim_current(), address);
        return CUDA_SUCCESS;
    }
    sim_drain();
    return sim_memory_free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr address)
{
    struct sim_range range;
    if (!sim_memory_find(address, &range) || range.dead)
        return CUDA_ERROR_NOT_FOUND;
    if (start)
        *start = range.base;
    if (bytes)
        *bytes = range.bytes;
    return CUDA_SUCCESS;
}

/* --- managed memory: host memory that both sides may touch at any time --- */

CUresult drv_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    if (!address || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (CUdeviceptr)at;
    sim_memory_add((struct sim_range){.base = *address,
                                      .bytes = bytes,
                                      .kind = SIM_MANAGED,
                                      .readable = true,
                                      .device = sim_current()->device->ordinal,
                                      .flags = flags,
                                      .context = sim_current()});
    return CUDA_SUCCESS;
}

static bool is_managed(CUdeviceptr address)
{
    struct sim_range range;
    return sim_memory_find(address, &range) && range.kind == SIM_MANAGED;
}

CUresult drv_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream handle)
{
    (void)bytes, (void)device;
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!is_managed(address))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_enqueue(stream, sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0), NULL);
}

CUresult drv_cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    (void)bytes, (void)advice, (void)device;
    return is_managed(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
