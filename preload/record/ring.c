/* ring.c: bounded queue of stall events. See ring.h for the rules. */
#include "record/ring.h"

#define MASK (GB_RING_CELLS - 1)

_Static_assert(sizeof(struct gb_ring_cell) == 64, "one cell is one cache line");
_Static_assert((GB_RING_CELLS & MASK) == 0, "power of two");

void gb_ring_init(struct gb_ring *ring)
{
    ring->tail = ring->head = 0;
    ring->dropped = 0;
    for (uint64_t i = 0; i < GB_RING_CELLS; i++)
        ring->cells[i].sequence = i;
}

bool gb_ring_push(struct gb_ring *ring, const struct gb_stall_event *event)
{
    uint64_t ticket = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
    for (;;) {
        struct gb_ring_cell *cell = &ring->cells[ticket & MASK];
        uint64_t sequence = __atomic_load_n(&cell->sequence, __ATOMIC_ACQUIRE);
        if (sequence == ticket) {
            /* A failed exchange loads the tail of whoever was faster into ticket. */
            if (!__atomic_compare_exchange_n(&ring->tail, &ticket, ticket + 1, true,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                continue;
            cell->event = *event;
            __atomic_store_n(&cell->sequence, ticket + 1, __ATOMIC_RELEASE);
            return true;
        }
        if ((int64_t)(sequence - ticket) < 0) {
            GB_COUNT(ring->dropped, 1);
            return false;
        }
        ticket = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
    }
}

bool gb_ring_pop(struct gb_ring *ring, struct gb_stall_event *out)
{
    struct gb_ring_cell *cell = &ring->cells[ring->head & MASK];
    if (__atomic_load_n(&cell->sequence, __ATOMIC_ACQUIRE) != ring->head + 1)
        return false;
    *out = cell->event;
    __atomic_store_n(&cell->sequence, ring->head + GB_RING_CELLS, __ATOMIC_RELEASE);
    ring->head++;
    return true;
}

uint64_t gb_ring_dropped(struct gb_ring *ring, bool at_exit)
{
    uint64_t lost = GB_READ(ring->dropped);
    if (at_exit)
        lost += __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) - ring->head;
    return lost;
}
