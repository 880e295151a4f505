/* virtual_memory.c: virtual memory management: addresses, physical memory, mappings of one on the
 * other (PyTorch's expandable segments), and physical memory of other processes.
 *
 * Unmapping waits for nothing: who unmaps under running work faults, as documented nowhere but
 * promised by nobody.
 * Thread rule: sim_lock. Failure rule: INVALID_VALUE for what is not reserved, mapped or live.
 */
#include "entry.h"

#include "../engine/shared.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULARITY  (2u << 20)
#define HANDLE_MAGIC 0x70687973u
#define SHARED_MAGIC 0x73687061u

/* Physical memory: kept by its handle and by each mapping. */
struct physical {
    uint32_t magic;
    int device, refs;
    int file; /* of the process that made it; -1: this one */
    bool released;
    uint64_t arena;
    size_t bytes;
    CUmemAllocationProp prop;
};

struct mapping {
    CUdeviceptr address;
    size_t bytes;
    struct physical *physical;
    struct mapping *next;
};

static struct mapping *mappings;

static struct physical *physical_of(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = (struct physical *)handle;
    return physical && physical->magic == HANDLE_MAGIC && !physical->released ? physical : NULL;
}

static void drop(struct physical *physical)
{
    if (--physical->refs > 0)
        return;
    if (physical->file >= 0)
        close(physical->file);
    else
        sim_memory_release(physical->device, physical->arena, physical->bytes);
    physical->magic = 0;
    free(physical);
}

/* --- addresses --- */

CUresult drv_cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                 CUdeviceptr wanted, unsigned long long flags)
{
    (void)wanted;
    if (!address || bytes == 0 || bytes % GRANULARITY || flags || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_memory_reserve(bytes, alignment > GRANULARITY ? alignment : GRANULARITY, address);
}

CUresult drv_cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    return sim_memory_unreserve(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- physical memory --- */

CUresult drv_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    if (!handle || !prop || flags || bytes == 0 || bytes % GRANULARITY ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct sim_device *device = sim_device_of(prop->location.id);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    struct physical made = {HANDLE_MAGIC, device->ordinal, 1, -1, false, 0, bytes, *prop};
    CUresult result = sim_memory_create(device->ordinal, bytes, &made.arena);
    if (result != CUDA_SUCCESS && sim_free_pending(device)) {
        sim_wait_device(device);
        result = sim_memory_create(device->ordinal, bytes, &made.arena);
    }
    struct physical *physical = result == CUDA_SUCCESS ? malloc(sizeof(*physical)) : NULL;
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *physical = made;
    *handle = (CUmemGenericAllocationHandle)physical;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_of(handle);
    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    bool mapped = false;
    for (const struct mapping *m = mappings; m; m = m->next)
        mapped = mapped || m->physical == physical;
    physical->released = mapped && physical->refs == 2;
    drop(physical);
    return CUDA_SUCCESS;
}

CUresult drv_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                           CUmemAllocationGranularity_flags option)
{
    (void)option;
    if (!granularity || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_of(handle);
    if (!prop || !physical)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = physical->prop;
    return CUDA_SUCCESS;
}

/* --- between processes --- */

/* A descriptor like any other: it may be passed on, duplicated and closed. */
CUresult drv_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    struct physical *physical = physical_of(handle);
    if (!out || !physical || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(physical->prop.requestedHandleTypes & type) || physical->file >= 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_shared shared = {.magic = SHARED_MAGIC,
                                .device = physical->device,
                                .offset = physical->arena,
                                .bytes = physical->bytes};
    sim_shared_fill(&shared, sim_memory_file(physical->device));
    int file = memfd_create("gpusim memory", MFD_CLOEXEC);
    if (file < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (write(file, &shared, sizeof(shared)) != (ssize_t)sizeof(shared)) {
        close(file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *(int *)out = file;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                            CUmemAllocationHandleType type)
{
    struct sim_shared shared;
    int descriptor = (int)(intptr_t)from;
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread(descriptor, &shared, sizeof(shared), 0) != (ssize_t)sizeof(shared) ||
        shared.magic != SHARED_MAGIC || !sim_device_of(shared.device))
        return CUDA_ERROR_INVALID_VALUE;
    int file = sim_shared_open(&shared);
    struct physical *physical = file >= 0 ? calloc(1, sizeof(*physical)) : NULL;
    if (!physical) {
        close(file);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, shared.device}};
    *physical = (struct physical){HANDLE_MAGIC,  shared.device, 1,   file, false,
                                  shared.offset, shared.bytes,  prop};
    *handle = (CUmemGenericAllocationHandle)physical;
    return CUDA_SUCCESS;
}

/* --- mappings --- */

CUresult drv_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct physical *physical = physical_of(handle);
    if (!physical || flags || bytes == 0 || (address | bytes | offset) % GRANULARITY ||
        offset + bytes > physical->bytes || !sim_memory_reserved(address, bytes) ||
        sim_memory_overlaps(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct mapping *mapping = malloc(sizeof(*mapping));
    int file = physical->file >= 0 ? physical->file : sim_memory_file(physical->device);
    if (!mapping || !sim_memory_map(file, physical->arena + offset, address, bytes)) {
        free(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *mapping = (struct mapping){address, bytes, physical, mappings};
    mappings = mapping;
    physical->refs++;
    sim_memory_add((struct sim_range){.base = address,
                                      .bytes = bytes,
                                      .kind = SIM_VMM,
                                      .device = physical->device,
                                      .flags = (unsigned)physical->prop.requestedHandleTypes});
    return CUDA_SUCCESS;
}

static bool covers_whole_mappings(CUdeviceptr address, size_t bytes)
{
    size_t covered = 0;
    for (const struct mapping *m = mappings; m; m = m->next)
        if (m->address >= address && m->address + m->bytes <= address + bytes)
            covered += m->bytes;
    return bytes > 0 && covered == bytes;
}

CUresult drv_cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    if (!covers_whole_mappings(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (struct mapping **at = &mappings; *at;) {
        struct mapping *mapping = *at;
        struct sim_range removed;
        if (mapping->address < address || mapping->address >= address + bytes) {
            at = &mapping->next;
            continue;
        }
        *at = mapping->next;
        sim_memory_remove(mapping->address, &removed);
        drop(mapping->physical);
        free(mapping);
    }
    return CUDA_SUCCESS;
}

CUresult drv_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                            size_t count)
{
    if (!access || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool readable = false;
    for (size_t i = 0; i < count; i++)
        readable = readable || access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return sim_memory_set_access(address, bytes, readable) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                            CUdeviceptr address)
{
    struct sim_range range;
    if (!flags || !location || !sim_memory_find(address, &range) || range.kind != SIM_VMM)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.readable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult drv_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    for (struct mapping *m = mappings; m; m = m->next) {
        if ((CUdeviceptr)address - m->address >= m->bytes)
            continue;
        m->physical->refs++;
        m->physical->released = false;
        *handle = (CUmemGenericAllocationHandle)m->physical;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
