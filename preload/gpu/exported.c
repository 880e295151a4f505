/* exported.c: tables of exported ranges, and of what is mapped from which handle. See exported.h.
 */
#include "gpu/exported.h"

#include "base/lock.h"
#include "cuda/driver_api.h"
#include "cuda/resolve.h"
#include "gpu/debt.h"
#include "record/counters.h"

#define RANGES_MAX   512
#define MAPPINGS_MAX 8192
#define HANDLES_MAX  512

struct range {
    CUdeviceptr start, end;
    bool by_nccl;
};

static struct range ranges[RANGES_MAX];
static struct {
    CUmemGenericAllocationHandle handle;
    struct range range;
} mappings[MAPPINGS_MAX];
static struct {
    CUmemGenericAllocationHandle handle;
    bool by_nccl;
} handles[HANDLES_MAX];
static uint32_t range_count, mapping_count, handle_count;
static uint32_t all; /* a table was full */
static bool mappings_lost;
static gb_lock lock;

static void overflow(void)
{
    GB_COUNT(gb_counters.exported_full, 1);
    __atomic_store_n(&all, 1, __ATOMIC_RELEASE);
}

static void add(struct range range)
{
    if (range_count < RANGES_MAX) {
        ranges[range_count] = range;
        __atomic_store_n(&range_count, range_count + 1, __ATOMIC_RELEASE);
    } else {
        overflow();
    }
}

static int find_handle(CUmemGenericAllocationHandle handle)
{
    for (uint32_t i = 0; i < handle_count; i++)
        if (handles[i].handle == handle)
            return (int)i;
    return -1;
}

static bool is_nccl(const void *caller)
{
    return gb_is_in(caller, "libnccl");
}

void gb_exported_add(CUdeviceptr start, size_t bytes, const void *caller)
{
    if (!gb_debt_is_possible())
        return;
    struct range range = {start, start + bytes, is_nccl(caller)};
    gb_lock_acquire(&lock);
    add(range);
    gb_lock_release(&lock);
}

void gb_exported_block(CUdeviceptr address, const void *caller)
{
    CUdeviceptr start = 0;
    size_t bytes = 0;
    if (!gb_debt_is_possible())
        return;
    if (gb_driver.cuMemGetAddressRange_v2 &&
        gb_driver.cuMemGetAddressRange_v2(&start, &bytes, address) == CUDA_SUCCESS)
        gb_exported_add(start, bytes, caller);
    else
        overflow();
}

void gb_exported_handle(CUmemGenericAllocationHandle handle, const void *caller)
{
    if (!gb_debt_is_possible())
        return;
    bool by_nccl = is_nccl(caller);
    gb_lock_acquire(&lock);
    int known = find_handle(handle);
    if (mappings_lost || (known < 0 && handle_count == HANDLES_MAX)) {
        overflow();
    } else {
        uint32_t at = known < 0 ? handle_count++ : (uint32_t)known;
        handles[at].handle = handle;
        handles[at].by_nccl = by_nccl;
    }
    for (uint32_t i = 0; i < mapping_count; i++)
        if (mappings[i].handle == handle) {
            struct range range = mappings[i].range;
            range.by_nccl = by_nccl;
            add(range);
        }
    gb_lock_release(&lock);
}

void gb_exported_map(CUmemGenericAllocationHandle handle, CUdeviceptr start, size_t bytes)
{
    struct range range = {start, start + bytes, false};
    if (!gb_debt_is_possible())
        return;
    gb_lock_acquire(&lock);
    int known = find_handle(handle);
    if (known >= 0) {
        range.by_nccl = handles[known].by_nccl;
        add(range);
    }
    if (mapping_count < MAPPINGS_MAX) {
        mappings[mapping_count].handle = handle;
        mappings[mapping_count++].range = range;
    } else {
        mappings_lost = true;
    }
    gb_lock_release(&lock);
}

static bool lies_in(struct range range, CUdeviceptr start, CUdeviceptr end)
{
    return range.start >= start && range.end <= end;
}

void gb_exported_forget(CUdeviceptr start, size_t bytes)
{
    CUdeviceptr end = start + bytes;
    if ((!__atomic_load_n(&range_count, __ATOMIC_ACQUIRE) && !mapping_count) ||
        !gb_debt_is_possible())
        return;
    gb_lock_acquire(&lock);
    for (uint32_t i = mapping_count; i-- > 0;)
        if (bytes && lies_in(mappings[i].range, start, end))
            mappings[i] = mappings[--mapping_count];
    for (uint32_t i = range_count; i-- > 0;)
        if (bytes ? lies_in(ranges[i], start, end) : ranges[i].start == start) {
            ranges[i] = ranges[range_count - 1];
            __atomic_store_n(&range_count, range_count - 1, __ATOMIC_RELEASE);
        }
    gb_lock_release(&lock);
}

bool gb_exported_any(void)
{
    bool any = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
    if (any || !__atomic_load_n(&range_count, __ATOMIC_ACQUIRE))
        return any;
    gb_lock_acquire(&lock);
    for (uint32_t i = 0; i < range_count && !any; i++)
        any = !ranges[i].by_nccl;
    gb_lock_release(&lock);
    return any;
}

bool gb_exported_touch(CUdeviceptr start, size_t bytes)
{
    bool touches = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
    if (touches || !__atomic_load_n(&range_count, __ATOMIC_ACQUIRE))
        return touches;
    gb_lock_acquire(&lock);
    for (uint32_t i = 0; i < range_count && !touches; i++)
        touches = ranges[i].start < start + bytes && start < ranges[i].end;
    gb_lock_release(&lock);
    return touches;
}
