/* pointer.c: what an address is (cuPointerGetAttribute and its plural).
 *
 * Of an unknown address the singular answers INVALID_VALUE, the plural SUCCESS and empty values
 * (CUDA Driver API, "Unified Addressing").
 * Thread rule: sim_lock. Failure rule: INVALID_VALUE for an attribute without a meaning there.
 */
#include "entry.h"

#include <string.h>

static bool on_device(const struct sim_range *range)
{
    return range->kind != SIM_PINNED && range->kind != SIM_REGISTERED;
}

static bool on_host(const struct sim_range *range)
{
    return !on_device(range) || range->kind == SIM_MANAGED;
}

static CUcontext context_of(const struct sim_range *range)
{
    return range->kind == SIM_VMM || range->kind == SIM_POOL ? NULL : (CUcontext)range->context;
}

static CUmemoryPool pool_of(const struct sim_range *range)
{
    return range->kind == SIM_POOL ? sim_pool_of_device(range->device) : NULL;
}

#define PUT(type, value)                                                                           \
    do {                                                                                           \
        *(type *)data = (type)(value);                                                             \
        return CUDA_SUCCESS;                                                                       \
    } while (0)

/* Empty values for an unknown address. */
static CUresult get_unknown(void *data, CUpointer_attribute name)
{
    switch (name) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        PUT(unsigned, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        PUT(int, CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        PUT(bool, false);
    default:
        PUT(uint64_t, 0);
    }
}

static CUresult get(void *data, CUpointer_attribute name, CUdeviceptr address,
                    const struct sim_range *range)
{
    switch (name) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        PUT(CUcontext, context_of(range));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        PUT(unsigned, on_device(range) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        PUT(CUdeviceptr, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!on_host(range))
            return CUDA_ERROR_INVALID_VALUE;
        PUT(void *, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        PUT(unsigned, range->sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        PUT(unsigned long long, range->ordinal);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        PUT(unsigned, range->kind == SIM_MANAGED);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        PUT(int, range->device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        PUT(void *, range->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        PUT(size_t, range->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        PUT(bool, range->readable);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        PUT(bool, range->kind == SIM_DEVICE);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        PUT(bool, false);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        PUT(unsigned long long, range->kind == SIM_VMM ? range->flags : 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        PUT(unsigned, range->readable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        PUT(CUmemoryPool, pool_of(range));
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult drv_cuPointerGetAttribute(void *data, CUpointer_attribute name, CUdeviceptr address)
{
    struct sim_range range;
    if (!data || !sim_memory_find(address, &range))
        return CUDA_ERROR_INVALID_VALUE;
    return get(data, name, address, &range);
}

CUresult drv_cuPointerGetAttributes(unsigned count, CUpointer_attribute *names, void **data,
                                    CUdeviceptr address)
{
    struct sim_range range;
    bool known = sim_memory_find(address, &range);
    for (unsigned i = 0; i < count; i++)
        if (!known || get(data[i], names[i], address, &range) != CUDA_SUCCESS)
            get_unknown(data[i], names[i]);
    return CUDA_SUCCESS;
}

CUresult drv_cuPointerSetAttribute(const void *value, CUpointer_attribute name, CUdeviceptr address)
{
    struct sim_range range;
    bool known = value && sim_memory_find(address, &range) && on_device(&range);
    if (!known || name != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_set_sync(address, *(const unsigned *)value != 0);
    return CUDA_SUCCESS;
}
