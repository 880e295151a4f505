/* hop.c: the buffer of device memory and its ring of regions. See hop.h for the rules. */
#include "transfer/hop.h"

#include "cuda/driver_api.h"
#include "gpu/inflight.h"
#include "options/config.h"
#include "record/counters.h"

#define ALIGN_BYTES 512u
#define SHARE       32 /* of the memory that is free when the buffer is made */

static gb_counter made_bytes; /* of all contexts */

uint64_t gb_hop_bytes(void)
{
    return GB_READ(made_bytes);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) & ~(uint64_t)(ALIGN_BYTES - 1);
}

void gb_hop_note(struct gb_hop *hop, const struct gb_stream *stream, uint64_t bytes)
{
    if (stream->kernel_seq != hop->batch_kernel_seq)
        hop->batch_bytes = 0;
    hop->batch_kernel_seq = stream->kernel_seq;
    hop->batch_bytes += aligned(bytes);
    if (hop->batch_bytes > hop->largest_batch_bytes)
        hop->largest_batch_bytes = hop->batch_bytes;
}

static uint64_t wanted_bytes(const struct gb_hop *hop)
{
    uint64_t bytes = hop->largest_batch_bytes * 2;
    if (hop->bytes && bytes > hop->bytes && bytes < hop->bytes * 2)
        bytes = hop->bytes * 2; /* sizes that creep up must not make a new buffer each time */
    return bytes < gb_config.staging_bytes ? bytes : gb_config.staging_bytes;
}

bool gb_hop_is_short(const struct gb_hop *hop)
{
    return !hop->refused && gb_config.staging_bytes && hop->bytes < wanted_bytes(hop) &&
           gb_has_staging();
}

/* ---- memory ---- */

static bool make_stream(struct gb_hop *hop)
{
    if (hop->stream)
        return true;
    if (gb_driver.cuCtxGetDevice(&hop->device) != CUDA_SUCCESS ||
        gb_driver.cuStreamCreate(&hop->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        hop->stream = NULL;
        return false;
    }
    for (uint32_t i = 0; i < GB_HOP_REGIONS; i++) {
        struct gb_hop_region *region = &hop->regions[i];
        if (gb_driver.cuEventCreate(&region->arrived, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
            gb_driver.cuEventCreate(&region->left, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
            return false; /* those that were made go with the context */
    }
    return true;
}

static bool map(struct gb_hop *hop, uint64_t bytes, const CUmemAllocationProp *what)
{
    CUmemAccessDesc access = {.location = what->location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (gb_driver.cuMemAddressReserve(&hop->memory, bytes, 0, 0, 0) != CUDA_SUCCESS)
        return false;
    if (gb_real.f.cuMemMap(hop->memory, bytes, 0, hop->handle, 0) == CUDA_SUCCESS) {
        if (gb_driver.cuMemSetAccess(hop->memory, bytes, &access, 1) == CUDA_SUCCESS)
            return true;
        gb_real.f.cuMemUnmap(hop->memory, bytes);
    }
    gb_real.f.cuMemAddressFree(hop->memory, bytes);
    return false;
}

/* A share of what is free, so that the program hardly meets the buffer's end before its own. */
static uint64_t within_budget(uint64_t bytes, uint64_t granularity)
{
    size_t free_bytes = 0, total_bytes = 0;
    if (gb_real.f.cuMemGetInfo_v2(&free_bytes, &total_bytes) != CUDA_SUCCESS)
        return 0;
    if (bytes > free_bytes / SHARE)
        bytes = free_bytes / SHARE;
    return granularity ? bytes / granularity * granularity : 0;
}

static bool make_memory(struct gb_hop *hop, uint64_t bytes)
{
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, hop->device}};
    size_t granularity = 0;
    if (gb_driver.cuMemGetAllocationGranularity(
            &granularity, &what, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS)
        return false;
    bytes = within_budget(bytes + granularity - 1, granularity);
    if (!bytes || gb_real.f.cuMemCreate(&hop->handle, bytes, &what, 0) != CUDA_SUCCESS)
        return false;
    if (!map(hop, bytes, &what)) {
        gb_real.f.cuMemRelease(hop->handle);
        return false;
    }
    hop->bytes = bytes;
    GB_COUNT(made_bytes, bytes);
    return true;
}

static bool free_memory(struct gb_hop *hop)
{
    if (!hop->bytes)
        return false;
    gb_real.f.cuMemUnmap(hop->memory, hop->bytes);
    gb_real.f.cuMemAddressFree(hop->memory, hop->bytes);
    gb_real.f.cuMemRelease(hop->handle);
    GB_COUNT(made_bytes, -hop->bytes);
    hop->bytes = 0;
    return true;
}

/* Drops the regions whose copies are done. */
static void retire(struct gb_hop *hop)
{
    while (hop->count && gb_real.f.cuEventQuery(hop->regions[hop->first].left) == CUDA_SUCCESS) {
        hop->first = (hop->first + 1) % GB_HOP_REGIONS;
        hop->count--;
    }
}

void gb_hop_grow(struct gb_hop *hop)
{
    uint64_t bytes = wanted_bytes(hop);
    retire(hop);
    if (hop->count || !gb_hop_is_short(hop))
        return; /* another stream still uses a region: another time */
    free_memory(hop);
    if (make_stream(hop) && make_memory(hop, bytes) && hop->bytes >= bytes)
        return;
    hop->refused = true; /* more is not to be had */
    GB_COUNT(gb_counters.hop_refused, 1);
}

bool gb_hop_give_back(struct gb_hop *hop, bool wait)
{
    if (wait && hop->stream) {
        gb_real.f.cuStreamSynchronize(hop->stream);
        while (hop->count--)
            gb_real.f.cuEventSynchronize(hop->regions[hop->first++ % GB_HOP_REGIONS].left);
        hop->count = 0;
    }
    retire(hop);
    bool freed = !hop->count && free_memory(hop);
    if (wait)
        *hop = (struct gb_hop){0}; /* stream and events go with the context */
    else if (freed)
        hop->refused = true;
    return freed;
}

/* ---- regions ---- */

/* Where a region of `bytes` fits behind the newest one; UINT64_MAX: nowhere. */
static uint64_t place_for(const struct gb_hop *hop, uint64_t bytes)
{
    if (!hop->count)
        return bytes <= hop->bytes ? 0 : UINT64_MAX;
    if (hop->count == GB_HOP_REGIONS)
        return UINT64_MAX;
    const struct gb_hop_region *oldest = &hop->regions[hop->first];
    const struct gb_hop_region *newest =
        &hop->regions[(hop->first + hop->count - 1) % GB_HOP_REGIONS];
    uint64_t end = newest->start + newest->bytes;
    if (newest->start >= oldest->start) {
        if (end + bytes <= hop->bytes)
            return end;
        return bytes <= oldest->start ? 0 : UINT64_MAX;
    }
    return end + bytes <= oldest->start ? end : UINT64_MAX;
}

struct gb_hop_region *gb_hop_take(struct gb_hop *hop, struct gb_stream *stream, uint64_t bytes)
{
    bytes = aligned(bytes);
    if (bytes > hop->bytes)
        return NULL;
    retire(hop);
    uint64_t start;
    while ((start = place_for(hop, bytes)) == UINT64_MAX) {
        struct gb_hop_region *oldest = &hop->regions[hop->first];
        if (oldest->stream != stream || gb_real.f.cuEventSynchronize(oldest->left) != CUDA_SUCCESS)
            return NULL;
        retire(hop);
    }
    struct gb_hop_region *region = &hop->regions[(hop->first + hop->count++) % GB_HOP_REGIONS];
    region->start = start;
    region->bytes = bytes;
    region->stream = stream;
    return region;
}
