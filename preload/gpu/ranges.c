/* ranges.c: sorted table of pinned host ranges. See ranges.h for the rules. */
#include "gpu/ranges.h"

#include "base/lock.h"
#include "record/counters.h"

#include <string.h>

#define RANGES_MAX   4096
#define ATTEMPTS_MAX 8

struct range {
    uintptr_t start, end;
};

static struct range ranges[RANGES_MAX]; /* by start; ranges do not overlap */
static uint32_t count;
static uint32_t sequence; /* odd: being written */
static uint32_t overflowed;
static gb_lock lock;

/* Index of the first range that ends behind `address`. */
static uint32_t first_behind(uintptr_t address, uint32_t in_use)
{
    uint32_t low = 0, high = in_use;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (__atomic_load_n(&ranges[middle].end, __ATOMIC_RELAXED) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void begin_write(void)
{
    gb_lock_acquire(&lock);
    __atomic_store_n(&sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end_write(void)
{
    __atomic_store_n(&sequence, sequence + 1, __ATOMIC_RELEASE);
    gb_lock_release(&lock);
}

void gb_ranges_add(const void *start, size_t bytes)
{
    uintptr_t address = (uintptr_t)start;
    if (!start || !bytes)
        return;
    begin_write();
    uint32_t first = first_behind(address, count), behind = first;
    /* What it covers was freed by a way that we do not see, and given out again. */
    while (behind < count && ranges[behind].start < address + bytes)
        behind++;
    if (behind > first || count < RANGES_MAX) {
        memmove(&ranges[first + 1], &ranges[behind], (count - behind) * sizeof *ranges);
        ranges[first] = (struct range){address, address + bytes};
        count = count - (behind - first) + 1;
    } else {
        __atomic_store_n(&overflowed, 1, __ATOMIC_RELAXED);
        GB_COUNT(gb_counters.ranges_full, 1);
    }
    end_write();
}

void gb_ranges_remove(const void *start)
{
    uintptr_t address = (uintptr_t)start;
    begin_write();
    uint32_t i = first_behind(address, count);
    if (i < count && ranges[i].start == address) {
        count--;
        memmove(&ranges[i], &ranges[i + 1], (count - i) * sizeof *ranges);
    }
    end_write();
}

enum gb_range gb_ranges_touch(const void *start, size_t bytes)
{
    uintptr_t address = (uintptr_t)start;
    if (__atomic_load_n(&overflowed, __ATOMIC_RELAXED))
        return GB_RANGE_UNKNOWN;
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        uint32_t before = __atomic_load_n(&sequence, __ATOMIC_ACQUIRE);
        if (before & 1)
            continue;
        uint32_t in_use = __atomic_load_n(&count, __ATOMIC_RELAXED);
        uint32_t i = first_behind(address, in_use);
        bool touches =
            i < in_use && __atomic_load_n(&ranges[i].start, __ATOMIC_RELAXED) < address + bytes;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&sequence, __ATOMIC_RELAXED) == before)
            return touches ? GB_RANGE_PINNED : GB_RANGE_NONE;
    }
    return GB_RANGE_UNKNOWN;
}
