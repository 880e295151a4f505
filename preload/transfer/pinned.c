/* pinned.c: rings of pinned staging chunks. See pinned.h for the rules. */
#include "transfer/pinned.h"

#include "cuda/driver_api.h"
#include "hooks/lifecycle.h"
#include "options/config.h"
#include "record/counters.h"
#include "stall/call.h"
#include "transfer/budget.h"
#include "transfer/copier.h"

#include <sys/mman.h>

#define RINGS_MAX       16
#define MIN_CHUNK_BYTES (256u << 10)

static struct gb_pinned_ring rings[RINGS_MAX];
static gb_counter registered_bytes, limit_bytes;

uint64_t gb_pinned_bytes(void)
{
    return GB_READ(registered_bytes);
}

uint64_t gb_pinned_limit_bytes(void)
{
    return GB_READ(limit_bytes);
}

/* A ring that belongs to the context, or a free one, taken; NULL when it is taken already. */
static struct gb_pinned_ring *find(CUcontext context, bool *full)
{
    *full = false;
    for (int i = 0; i < RINGS_MAX; i++) {
        struct gb_pinned_ring *ring = &rings[i];
        CUcontext owner = NULL;
        if (!__atomic_compare_exchange_n(&ring->context, &owner, context, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE) &&
            owner != context)
            continue;
        return __atomic_exchange_n(&ring->busy, 1, __ATOMIC_ACQ_REL) ? NULL : ring;
    }
    *full = true;
    return NULL;
}

/* Reserves address space within the budget; nothing is pinned yet. */
static bool reserve(struct gb_pinned_ring *ring)
{
    uint64_t chunk = gb_config.chunk_bytes & ~(uint64_t)0xffff;
    uint64_t budget = gb_budget_pinned_bytes(gb_config.ring_bytes);
    while (chunk * 2 > budget && chunk > MIN_CHUNK_BYTES)
        chunk /= 2;
    chunk &= ~(uint64_t)0xffff;
    uint64_t chunks = chunk ? budget / chunk : 0;
    if (chunks > GB_RING_CHUNKS_MAX)
        chunks = GB_RING_CHUNKS_MAX;
    if (chunks == 0)
        return false;
    void *memory =
        mmap(NULL, chunk * chunks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    gb_copier_start();
    ring->memory = memory;
    ring->chunk_bytes = chunk;
    ring->limit = (uint32_t)chunks;
    ring->mapped_bytes = chunk * chunks;
    GB_COUNT(limit_bytes, ring->mapped_bytes);
    return true;
}

/* Pins one more chunk. Its pages are touched by the driver as it pins them. */
static bool pin_chunk(struct gb_pinned_ring *ring)
{
    struct gb_pinned_chunk *chunk = &ring->chunks[ring->count];
    chunk->memory = ring->memory + ring->chunk_bytes * ring->count;
    chunk->in_use = false;
    if (gb_driver.cuEventCreate(&chunk->sent, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return false;
    if (gb_real.f.cuMemHostRegister_v2(chunk->memory, ring->chunk_bytes, 0) != CUDA_SUCCESS) {
        gb_driver.cuEventDestroy_v2(chunk->sent);
        return false;
    }
    if (!ring->earlier &&
        gb_driver.cuEventCreate(&ring->earlier, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        ring->earlier = NULL;
    ring->count++;
    GB_COUNT(registered_bytes, ring->chunk_bytes);
    return true;
}

enum gb_pinned_answer gb_pinned_take(CUcontext context, struct gb_pinned_ring **out)
{
    bool full;
    struct gb_pinned_ring *ring = find(context, &full);
    if (!ring)
        return full ? GB_PINNED_NONE : GB_PINNED_BUSY;
    if (!ring->refused && !ring->memory)
        ring->refused = !reserve(ring);
    if (ring->refused) {
        gb_pinned_put(ring);
        return GB_PINNED_NONE;
    }
    *out = ring;
    return GB_PINNED_TAKEN;
}

bool gb_pinned_is_short(const struct gb_pinned_ring *ring, uint64_t bytes)
{
    return ring->count < ring->limit && ring->chunk_bytes * ring->count < bytes;
}

bool gb_pinned_grow(struct gb_pinned_ring *ring, uint64_t bytes)
{
    while (gb_pinned_is_short(ring, bytes))
        if (!pin_chunk(ring))
            ring->limit = ring->count;
    ring->refused = ring->count == 0;
    return !ring->refused;
}

void gb_pinned_put(struct gb_pinned_ring *ring)
{
    __atomic_store_n(&ring->busy, 0, __ATOMIC_RELEASE);
}

/* Memory that cannot be unregistered stays mapped: the driver may still know it. */
static void dismantle(struct gb_pinned_ring *ring)
{
    bool clean = true;
    for (uint32_t i = 0; i < ring->count; i++) {
        gb_driver.cuEventDestroy_v2(ring->chunks[i].sent);
        clean &= gb_real.f.cuMemHostUnregister(ring->chunks[i].memory) == CUDA_SUCCESS;
    }
    if (ring->earlier)
        gb_driver.cuEventDestroy_v2(ring->earlier);
    ring->earlier = NULL;
    GB_COUNT(registered_bytes, -(ring->chunk_bytes * ring->count));
    GB_COUNT(limit_bytes, -ring->mapped_bytes);
    if (clean && ring->memory)
        munmap(ring->memory, ring->mapped_bytes);
    ring->memory = NULL;
    ring->count = ring->limit = 0;
}

/* Is the GPU done with all chunks? `wait`: the context ends, and with it all its work. */
static bool is_idle(struct gb_pinned_ring *ring, bool wait)
{
    for (uint32_t i = 0; i < ring->count; i++) {
        struct gb_pinned_chunk *chunk = &ring->chunks[i];
        if (!chunk->in_use)
            continue;
        if (wait)
            gb_real.f.cuEventSynchronize(chunk->sent);
        else if (gb_real.f.cuEventQuery(chunk->sent) != CUDA_SUCCESS)
            return false;
        chunk->in_use = false;
    }
    return true;
}

/* What to take away from the rings that nobody has. */
enum taken { PINNED, DEVICE, ALL };

static bool take_away(struct gb_pinned_ring *ring, enum taken what)
{
    bool freed = what != PINNED && gb_hop_give_back(&ring->hop, what == ALL);
    if (what != DEVICE && is_idle(ring, what == ALL)) {
        freed |= ring->count > 0;
        if (ring->memory)
            dismantle(ring);
        ring->refused |= what == PINNED;
    }
    return freed;
}

static bool take_from_idle_rings(enum taken what)
{
    bool freed = false;
    if (__atomic_load_n(&gb_state, __ATOMIC_RELAXED) != GB_STATE_ARMED)
        return false; /* a forked child must not call CUDA, and at exit it is too late */
    for (int i = 0; i < RINGS_MAX; i++) {
        struct gb_pinned_ring *ring = &rings[i];
        if (!__atomic_load_n(&ring->context, __ATOMIC_ACQUIRE) ||
            __atomic_exchange_n(&ring->busy, 1, __ATOMIC_ACQ_REL))
            continue;
        freed |= take_away(ring, what);
        gb_pinned_put(ring);
    }
    return freed;
}

/* Not asked for again: the program needs the memory. */
bool gb_pinned_give_back(void)
{
    bool freed = take_from_idle_rings(PINNED);
    if (freed)
        GB_COUNT(gb_counters.ring_given_back, 1);
    return freed;
}

uint64_t gb_pinned_device_bytes(void)
{
    CUcontext context = gb_thread_context();
    for (int i = 0; i < RINGS_MAX; i++)
        if (context && __atomic_load_n(&rings[i].context, __ATOMIC_ACQUIRE) == context)
            return __atomic_load_n(&rings[i].hop.bytes, __ATOMIC_RELAXED);
    return 0;
}

bool gb_pinned_give_back_device(void)
{
    bool freed = take_from_idle_rings(DEVICE);
    if (freed)
        GB_COUNT(gb_counters.hop_given_back, 1);
    return freed;
}

void gb_pinned_context_ends(void)
{
    take_from_idle_rings(ALL);
}
