/* host_memory.c: page-locked and registered host memory.
 *
 * Page-locked memory is plain anonymous memory that munmap gives back at once, so that malloc may
 * get the same addresses: whoever keeps what an address once was is wrong.
 * Thread rule: sim_lock, given up while the cost of page-locking is slept. Failure rule: as
 * documented per call.
 */
#include "entry.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE      4096u
#define ALL_FLAGS 7u

/* "Global lock in driver" costs (pytorch CachingHostAllocator): time, but not the device's. */
static void pay(size_t bytes)
{
    if (sim.virtual_clock || SIM_NUMBER(HOST_ALLOC_NS_PER_MIB) <= 0)
        return;
    uint64_t ns = (uint64_t)((double)bytes / 1048576 * SIM_NUMBER(HOST_ALLOC_NS_PER_MIB));
    struct timespec span = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    sim_unlock();
    while (nanosleep(&span, &span) != 0 && errno == EINTR)
        continue;
    sim_lock();
}

CUresult drv_cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    if (!pointer || bytes == 0 || (flags & ~ALL_FLAGS))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_context *context = sim_current();
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (sim.poison)
        memset(at, 0xFF, bytes);
    sim_memory_add((struct sim_range){.base = (uint64_t)at,
                                      .bytes = bytes,
                                      .kind = SIM_PINNED,
                                      .readable = true,
                                      .device = context->device->ordinal,
                                      .flags = flags,
                                      .context = context});
    *pointer = at;
    pay(bytes);
    return CUDA_SUCCESS;
}

CUresult drv_cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    return drv_cuMemHostAlloc(pointer, bytes, 0);
}

/* The engine may still read or write there, so this waits whatever GPUSIM_FREE_DRAINS says. */
CUresult drv_cuMemFreeHost(void *pointer)
{
    struct sim_range range;
    uint64_t address = (uint64_t)pointer;
    if (!sim_memory_find(address, &range) || range.base != address || range.kind != SIM_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    sim_drain();
    if (!sim_memory_remove(address, &range))
        return CUDA_ERROR_INVALID_VALUE;
    munmap(pointer, range.bytes);
    return CUDA_SUCCESS;
}

/* Is every page of it there? */
static bool is_mapped(uint64_t address, size_t bytes)
{
    unsigned char seen[256];
    uint64_t page = address / PAGE * PAGE, end = address + bytes;
    for (; page < end; page += sizeof(seen) * PAGE) {
        uint64_t left = end - page, most = sizeof(seen) * PAGE;
        if (mincore((void *)page, left < most ? left : most, seen) != 0)
            return false;
    }
    return true;
}

CUresult drv_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    uint64_t address = (uint64_t)pointer;
    if (!pointer || bytes == 0 || (flags & ~15u) || address + bytes < address ||
        sim_is_device_address(address) || !is_mapped(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_memory_overlaps(address, bytes))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct sim_context *context = sim_current();
    sim_memory_add((struct sim_range){.base = address,
                                      .bytes = bytes,
                                      .kind = SIM_REGISTERED,
                                      .readable = true,
                                      .device = context->device->ordinal,
                                      .flags = flags,
                                      .context = context});
    pay(bytes / 4); /* measured elsewhere: registering touched memory is 4 to 5 times faster */
    return CUDA_SUCCESS;
}

CUresult drv_cuMemHostUnregister(void *pointer)
{
    struct sim_range range;
    uint64_t address = (uint64_t)pointer;
    if (!sim_memory_find(address, &range) || range.base != address || range.kind != SIM_REGISTERED)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (SIM_NUMBER(FREE_DRAINS) != 0)
        sim_drain();
    sim_memory_remove(address, &range);
    return CUDA_SUCCESS;
}

CUresult drv_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *pointer, unsigned flags)
{
    struct sim_range range;
    bool ours = sim_memory_find((uint64_t)pointer, &range) &&
                (range.kind == SIM_PINNED || range.kind == SIM_REGISTERED);
    if (!device || flags || !ours)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdeviceptr)pointer;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    struct sim_range range;
    if (!sim_memory_find((uint64_t)pointer, &range) || range.kind != SIM_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    /* With unified addressing every page-locked allocation is mapped and portable. */
    *flags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}
