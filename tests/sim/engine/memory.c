/* memory.c: device memory, and which host memory is page-locked, registered or managed.
 *
 * A device address is reserved PROT_NONE: the host that touches it gets SIGSEGV, as with a real
 * GPU. The engine reaches the bytes at a constant distance, where a memfd is mapped. An address
 * that is not in a live range resolves to nothing even though its alias stays mapped, so that an
 * operation still running there can do no harm to the process.
 * Thread rule: own reader-writer lock. Failure rule: an error code or false, nothing half done.
 */
#include "engine.h"
#include "spans.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BASE          0x200000000000u /* where nothing else lives on x86-64 and aarch64 Linux */
#define ALIAS_BASE    0x300000000000u
#define DEVICE_SPACE  (1ull << 40) /* addresses of one device */
#define RESERVE_START (SIM_MAX_DEVICES * DEVICE_SPACE)
#define RESERVE_BYTES (8ull << 40)
#define ALL_BYTES     (RESERVE_START + RESERVE_BYTES)
#define GRANULE       512
#define PUNCH_BYTES   (32u << 20)
#define POISON_BYTES  (1u << 30) /* larger allocations are filled at both ends only */

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct sim_range *ranges; /* sorted by base */
static size_t range_count, range_capacity;
static uint64_t next_ordinal = 1;
static struct sim_spans arenas[SIM_MAX_DEVICES], reservations;
static struct sim_spans reserved_list; /* what is reserved, as spans */
static int arena_files[SIM_MAX_DEVICES];
static uint64_t base = BASE, alias_base = ALIAS_BASE;

static void *reserve_space(uint64_t wanted)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap((void *)wanted, ALL_BYTES, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        at = mmap(NULL, ALL_BYTES, PROT_NONE, flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static char *alias_of(uint64_t address)
{
    return (char *)(address - base + alias_base);
}

static bool start_device(int device)
{
    uint64_t bytes = (uint64_t)SIM_NUMBER(MEMORY) * 2;
    int file = memfd_create("gpusim", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        return false;
    uint64_t start = base + (uint64_t)device * DEVICE_SPACE;
    void *at = mmap(alias_of(start), bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, bytes, MADV_DONTFORK);
    arena_files[device] = file;
    return sim_spans_init(&arenas[device], 0, bytes);
}

bool sim_memory_start(void)
{
    void *at = reserve_space(BASE), *alias = reserve_space(ALIAS_BASE);
    if (!at || !alias)
        return false;
    base = (uint64_t)at;
    alias_base = (uint64_t)alias;
    for (int i = 0; i < sim.device_count; i++)
        if (!start_device(i))
            return false;
    return sim_spans_init(&reservations, base + RESERVE_START, RESERVE_BYTES);
}

bool sim_is_device_address(uint64_t address)
{
    return address - base < ALL_BYTES;
}

/* --- the table; its lock is held --- */

static size_t first_after(uint64_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sim_range *find(uint64_t address)
{
    size_t after = first_after(address);
    if (after == 0)
        return NULL;
    struct sim_range *range = &ranges[after - 1];
    return address - range->base < range->bytes ? range : NULL;
}

static uint64_t add(struct sim_range range)
{
    if (range_count == range_capacity) {
        size_t capacity = range_capacity ? 2 * range_capacity : 1024;
        struct sim_range *more = realloc(ranges, capacity * sizeof(*more));
        if (!more)
            return 0;
        ranges = more;
        range_capacity = capacity;
    }
    size_t at = first_after(range.base);
    memmove(&ranges[at + 1], &ranges[at], (range_count - at) * sizeof(*ranges));
    range.ordinal = next_ordinal++;
    ranges[at] = range;
    range_count++;
    return range.ordinal;
}

static bool erase(uint64_t address, struct sim_range *removed)
{
    struct sim_range *range = find(address);
    if (!range || range->base != address)
        return false;
    *removed = *range;
    size_t at = (size_t)(range - ranges);
    range_count--;
    memmove(&ranges[at], &ranges[at + 1], (range_count - at) * sizeof(*ranges));
    return true;
}

/* Bytes from address on that are live without a gap. */
static uint64_t live_bytes(uint64_t address, uint64_t enough)
{
    struct sim_range *range = find(address), *end = ranges + range_count;
    if (!range || (range->kind == SIM_VMM && !range->readable))
        return 0;
    uint64_t upto = range->base + range->bytes;
    for (range++; range < end && range->base == upto && upto - address < enough; range++)
        if (range->kind == SIM_VMM && range[-1].kind == SIM_VMM && range->readable)
            upto += range->bytes;
        else
            break;
    return upto - address;
}

/* --- look-ups --- */

bool sim_memory_find(uint64_t address, struct sim_range *range)
{
    pthread_rwlock_rdlock(&table_lock);
    struct sim_range *found = find(address);
    if (found)
        *range = *found;
    pthread_rwlock_unlock(&table_lock);
    return found != NULL;
}

bool sim_memory_overlaps(uint64_t address, uint64_t bytes)
{
    pthread_rwlock_rdlock(&table_lock);
    size_t after = first_after(address);
    bool hit = find(address) || (after < range_count && ranges[after].base < address + bytes);
    pthread_rwlock_unlock(&table_lock);
    return hit;
}

void *sim_mem_alias(CUdeviceptr address, size_t *bytes_left)
{
    pthread_rwlock_rdlock(&table_lock);
    uint64_t left = live_bytes(address, UINT64_MAX);
    pthread_rwlock_unlock(&table_lock);
    *bytes_left = left;
    if (left == 0)
        return NULL;
    return sim_is_device_address(address) ? alias_of(address) : (char *)address;
}

char *sim_memory_at(uint64_t address, size_t bytes)
{
    if (!sim_is_device_address(address))
        return (char *)address;
    pthread_rwlock_rdlock(&table_lock);
    uint64_t left = live_bytes(address, bytes);
    pthread_rwlock_unlock(&table_lock);
    return left >= bytes && left > 0 ? alias_of(address) : NULL;
}

/* --- additions and removals --- */

uint64_t sim_memory_add(struct sim_range range)
{
    pthread_rwlock_wrlock(&table_lock);
    uint64_t ordinal = add(range);
    pthread_rwlock_unlock(&table_lock);
    return ordinal;
}

bool sim_memory_remove(uint64_t address, struct sim_range *removed)
{
    pthread_rwlock_wrlock(&table_lock);
    bool found = erase(address, removed);
    pthread_rwlock_unlock(&table_lock);
    return found;
}

/* 0xFF bytes are a NaN in every floating-point format and -1 in every integer. */
static void poison(char *at, size_t bytes)
{
    if (!sim.poison)
        return;
    size_t part = bytes <= POISON_BYTES ? bytes : POISON_BYTES / 64;
    memset(at, 0xFF, part);
    memset(at + bytes - part, 0xFF, part);
}

/* Takes from the arena; the limit is the bytes in use, never fragmentation. */
static bool take(int device, size_t bytes, uint64_t alignment, uint64_t *arena)
{
    struct sim_device *owner = &sim.devices[device];
    if (bytes > (uint64_t)SIM_NUMBER(MEMORY) - owner->used_bytes ||
        !sim_spans_take(&arenas[device], bytes, alignment, arena))
        return false;
    owner->used_bytes += bytes;
    poison(sim_memory_arena(device, *arena), bytes);
    return true;
}

static void give(int device, uint64_t arena, size_t bytes)
{
    if (bytes >= PUNCH_BYTES)
        madvise(sim_memory_arena(device, arena), bytes / 4096 * 4096, MADV_REMOVE);
    sim_spans_give(&arenas[device], arena, bytes);
    sim.devices[device].used_bytes -= bytes;
}

char *sim_memory_arena(int device, uint64_t arena)
{
    return alias_of(base + (uint64_t)device * DEVICE_SPACE + arena);
}

CUresult sim_memory_alloc(struct sim_context *context, size_t bytes, enum sim_memory_kind kind,
                          CUdeviceptr *address)
{
    int device = context->device->ordinal;
    struct sim_range range = {.bytes = bytes,
                              .kind = (uint8_t)kind,
                              .readable = true,
                              .device = device,
                              .arena_bytes = (bytes + GRANULE - 1) / GRANULE * GRANULE,
                              .context = context};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    pthread_rwlock_wrlock(&table_lock);
    if (bytes < (1ull << 40) && take(device, range.arena_bytes, GRANULE, &range.arena)) {
        range.base = base + (uint64_t)device * DEVICE_SPACE + range.arena;
        add(range);
        *address = range.base;
        result = CUDA_SUCCESS;
    }
    pthread_rwlock_unlock(&table_lock);
    return result;
}

bool sim_memory_free(uint64_t address)
{
    struct sim_range range;
    pthread_rwlock_wrlock(&table_lock);
    struct sim_range *found = find(address);
    bool ours =
        found && (found->kind == SIM_DEVICE || found->kind == SIM_POOL) && erase(address, &range);
    if (ours) {
        poison(alias_of(range.base), range.bytes);
        give(range.device, range.arena, range.arena_bytes);
    }
    pthread_rwlock_unlock(&table_lock);
    return ours;
}

void sim_memory_mark_dead(uint64_t address)
{
    pthread_rwlock_wrlock(&table_lock);
    struct sim_range *found = find(address);
    if (found)
        found->dead = true;
    pthread_rwlock_unlock(&table_lock);
}

void sim_memory_set_sync(uint64_t address, bool on)
{
    pthread_rwlock_wrlock(&table_lock);
    struct sim_range *found = find(address);
    if (found)
        found->sync_memops = on;
    pthread_rwlock_unlock(&table_lock);
}

void sim_memory_remove_context(struct sim_context *context)
{
    pthread_rwlock_wrlock(&table_lock);
    for (size_t i = 0; i < range_count;) {
        struct sim_range range = ranges[i];
        bool ours = range.kind == SIM_DEVICE || range.kind == SIM_POOL;
        if (!ours || range.context != context) {
            i++;
            continue;
        }
        erase(range.base, &range);
        give(range.device, range.arena, range.arena_bytes);
    }
    pthread_rwlock_unlock(&table_lock);
}

void sim_memory_info(int device, size_t *free_bytes, size_t *total_bytes)
{
    pthread_rwlock_rdlock(&table_lock);
    *total_bytes = (size_t)SIM_NUMBER(MEMORY);
    *free_bytes = *total_bytes - sim.devices[device].used_bytes;
    pthread_rwlock_unlock(&table_lock);
}

/* --- virtual memory management --- */

CUresult sim_memory_create(int device, size_t bytes, uint64_t *arena)
{
    pthread_rwlock_wrlock(&table_lock);
    bool taken = take(device, bytes, 4096, arena);
    pthread_rwlock_unlock(&table_lock);
    return taken ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_memory_release(int device, uint64_t arena, size_t bytes)
{
    pthread_rwlock_wrlock(&table_lock);
    give(device, arena, bytes);
    pthread_rwlock_unlock(&table_lock);
}

CUresult sim_memory_reserve(size_t bytes, size_t alignment, CUdeviceptr *address)
{
    uint64_t start;
    pthread_rwlock_wrlock(&table_lock);
    bool taken = sim_spans_take(&reservations, bytes, alignment, &start);
    if (taken)
        sim_spans_give(&reserved_list, start, bytes);
    pthread_rwlock_unlock(&table_lock);
    if (taken)
        *address = start;
    return taken ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool sim_memory_reserved(CUdeviceptr address, size_t bytes)
{
    bool inside = false;
    pthread_rwlock_rdlock(&table_lock);
    for (size_t i = 0; i < reserved_list.count && !inside; i++) {
        struct sim_span span = reserved_list.items[i];
        inside = address >= span.start && address + bytes <= span.start + span.bytes;
    }
    pthread_rwlock_unlock(&table_lock);
    return inside;
}

bool sim_memory_unreserve(CUdeviceptr address, size_t bytes)
{
    if (!sim_memory_reserved(address, bytes) || sim_memory_overlaps(address, bytes))
        return false;
    pthread_rwlock_wrlock(&table_lock);
    sim_spans_cut(&reserved_list, address, bytes);
    sim_spans_give(&reservations, address, bytes);
    pthread_rwlock_unlock(&table_lock);
    return true;
}

int sim_memory_file(int device)
{
    return arena_files[device];
}

/* What was there before stays until then. */
bool sim_memory_map(int file, uint64_t offset, CUdeviceptr address, size_t bytes)
{
    void *at = mmap(alias_of(address), bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, (off_t)offset);
    if (at == MAP_FAILED)
        return false;
    madvise(at, bytes, MADV_DONTFORK);
    return true;
}

bool sim_memory_set_access(uint64_t address, uint64_t bytes, bool readable)
{
    bool mapped = true;
    pthread_rwlock_wrlock(&table_lock);
    for (uint64_t at = address; mapped && at < address + bytes;) {
        struct sim_range *range = find(at);
        mapped = range && range->kind == SIM_VMM;
        if (mapped) {
            range->readable = readable;
            at = range->base + range->bytes;
        }
    }
    pthread_rwlock_unlock(&table_lock);
    return mapped;
}
