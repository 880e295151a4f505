/* copy_place.c: asks the driver about contexts, streams and pointers. See copy_place.h. */
#include "gpu/copy_place.h"

#include "base/lock.h"
#include "cuda/driver_api.h"

#define CONTEXTS_MAX 16
#define MAPPINGS_MAX 256 /* of one destination: 512 MB in torch's mappings of 2 MiB */

struct context_facts {
    CUcontext context;
    CUdevice device;
    enum gb_place_answer answer; /* FITS, CONTEXT or COHERENT */
    bool sure;                   /* every question was answered */
};

static struct context_facts known[CONTEXTS_MAX];
static uint32_t known_count;
static gb_lock lock;

/* Is it the device's primary context? One that is not active cannot be current, and to retain it
 * would create it, with its hundreds of megabytes. */
static bool ask_primary(CUcontext context, CUdevice device, bool *answer)
{
    CUcontext primary = NULL;
    unsigned flags;
    int active = 0;
    *answer = false;
    if (gb_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS)
        return false;
    if (!active)
        return true;
    if (gb_driver.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
        return false;
    gb_real.f.cuDevicePrimaryCtxRelease_v2(device);
    *answer = primary == context;
    return true;
}

static struct context_facts ask(CUcontext context)
{
    struct context_facts facts = {.context = context, .answer = GB_PLACE_CONTEXT};
    int coherent = 1;
    bool is_primary;
    if (gb_driver.cuCtxGetDevice(&facts.device) != CUDA_SUCCESS)
        return facts;
    if (!ask_primary(context, facts.device, &is_primary) ||
        gb_driver.cuDeviceGetAttribute(
            &coherent, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
            facts.device) != CUDA_SUCCESS)
        return facts;
    facts.sure = true;
    if (is_primary)
        facts.answer = coherent ? GB_PLACE_COHERENT : GB_PLACE_FITS;
    return facts;
}

void gb_copy_place_forget(void)
{
    gb_lock_acquire(&lock);
    __atomic_store_n(&known_count, 0, __ATOMIC_RELEASE);
    gb_lock_release(&lock);
}

/* The lock is not held while the driver is asked; two threads may ask the same. */
static struct context_facts facts_of(CUcontext context)
{
    uint32_t count = __atomic_load_n(&known_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (known[i].context == context)
            return known[i];
    struct context_facts facts = ask(context);
    gb_lock_acquire(&lock);
    if (facts.sure && known_count < CONTEXTS_MAX) {
        known[known_count] = facts;
        __atomic_store_n(&known_count, known_count + 1, __ATOMIC_RELEASE);
    }
    gb_lock_release(&lock);
    return facts;
}

static bool stream_is_of(CUstream stream, CUcontext context)
{
    CUcontext owner = NULL;
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return true;
    return gb_driver.cuStreamGetCtx(stream, &owner) == CUDA_SUCCESS && owner == context;
}

struct pointer_facts {
    CUmemorytype type; /* 0: memory that CUDA does not know */
    int managed, device, sync_memops;
    CUdeviceptr range_start;
    size_t range_bytes; /* of the allocation or mapping that the pointer lies in */
};

/* For a pointer that CUDA does not know every attribute comes back as its default, with success
 * (CUDA driver API, cuPointerGetAttributes). */
static bool ask_pointer(const void *pointer, struct pointer_facts *out)
{
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&out->type,        &out->managed,     &out->device,
                      &out->sync_memops, &out->range_start, &out->range_bytes};
    *out = (struct pointer_facts){0};
    return gb_driver.cuPointerGetAttributes(GB_ARRAY_LEN(attributes), attributes, values,
                                            (CUdeviceptr)(uintptr_t)pointer) == CUDA_SUCCESS;
}

static bool is_pageable(const void *pointer)
{
    struct pointer_facts facts;
    return ask_pointer(pointer, &facts) && !facts.type && !facts.managed;
}

bool gb_is_device_memory(CUdeviceptr address)
{
    struct pointer_facts facts;
    return ask_pointer((const void *)(uintptr_t)address, &facts) &&
           facts.type == CU_MEMORYTYPE_DEVICE && !facts.managed;
}

/* All of it, allocation by allocation: a tensor may lie in many mappings (expandable segments), and
 * one that is longer than what it lies in is refused by the real call before anything is written.
 */
static bool is_device_memory(const uint8_t *start, size_t bytes, CUdevice device)
{
    uintptr_t at = (uintptr_t)start, end = at + bytes;
    for (int i = 0; i < MAPPINGS_MAX; i++) {
        struct pointer_facts facts;
        if (!ask_pointer((const void *)at, &facts) || facts.type != CU_MEMORYTYPE_DEVICE ||
            facts.managed || facts.sync_memops || facts.device != device)
            return false;
        uintptr_t range_end = (uintptr_t)facts.range_start + facts.range_bytes;
        if (range_end >= end)
            return true;
        if (range_end <= at)
            return false;
        at = range_end;
    }
    return false;
}

enum gb_place_answer gb_copy_place(CUstream stream, CUcontext context, const struct gb_copy *copy)
{
    struct context_facts facts = facts_of(context);
    const uint8_t *src = copy->src, *dst = copy->dst;
    size_t last = copy->bytes - 1;
    if (facts.answer != GB_PLACE_FITS)
        return facts.answer;
    if (!stream_is_of(stream, context))
        return GB_PLACE_CONTEXT;
    /* A size that was computed wrongly wraps around, and both ends may look well: the real call
     * says so without reading anything. NULL is memory that CUDA does not know. */
    if (!src || (uintptr_t)src + last < (uintptr_t)src || !is_pageable(src) ||
        !is_pageable(src + last))
        return GB_PLACE_SOURCE;
    if ((uintptr_t)dst + last < (uintptr_t)dst || !is_device_memory(dst, copy->bytes, facts.device))
        return GB_PLACE_DESTINATION;
    return GB_PLACE_FITS;
}
