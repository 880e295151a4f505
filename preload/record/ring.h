/* ring.h: bounded queue of stall events, many producers, one consumer, no lock.
 *
 * Each cell carries a sequence number: cell i is free for ticket t when it says t, and holds an
 * event when it says t + 1 (Vyukov's bounded queue). A full ring drops and counts. A producer that
 * dies between taking a ticket and publishing blocks the consumer at that cell and nothing else.
 */
#ifndef GB_RING_H
#define GB_RING_H

#include "record/record.h"

#define GB_RING_CELLS 4096u /* power of two; 64 bytes each */

struct gb_ring_cell {
    uint64_t sequence;
    struct gb_stall_event event;
};

struct gb_ring {
    _Alignas(64) uint64_t tail; /* next ticket of the producers */
    _Alignas(64) uint64_t head; /* next ticket of the consumer */
    gb_counter dropped;
    struct gb_ring_cell cells[GB_RING_CELLS];
};

void gb_ring_init(struct gb_ring *ring);
/* Any thread; false when full. */
bool gb_ring_push(struct gb_ring *ring, const struct gb_stall_event *event);
/* One thread at a time; false when there is nothing (published) to take. */
bool gb_ring_pop(struct gb_ring *ring, struct gb_stall_event *out);
/* Events lost so far; `at_exit` counts those of producers that never published, too. */
uint64_t gb_ring_dropped(struct gb_ring *ring, bool at_exit);

#endif
