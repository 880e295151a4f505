/* pinned.h: the ring of pinned staging chunks that a staged copy goes through, one per context.
 *
 * A copy takes the whole ring for its duration; a second one that comes meanwhile is forwarded, so
 * that nobody ever waits for somebody else's copy. Chunks may still be on their way to the GPU when
 * the ring is put back: the next copy waits for those of its own stream only. Memory is MAP_SHARED,
 * so that a forked child neither copies nor loses it, and is registered chunk by chunk inside
 * copies whose stream has just been waited for. Thread rule: the application's thread, its context
 * current, inside relaxed capture mode where it calls the driver. Failure rule: no ring; a context
 * that was refused one is not asked again.
 */
#ifndef GB_PINNED_H
#define GB_PINNED_H

#include "cuda/hooks.h"
#include "transfer/hop.h"

#define GB_RING_CHUNKS_MAX 64

struct gb_pinned_chunk {
    uint8_t *memory;
    CUevent sent;             /* recorded behind the copy that last read the chunk */
    bool in_use;              /* ... and perhaps not yet seen complete */
    struct gb_stream *stream; /* on which that copy was */
};

struct gb_pinned_ring {
    CUcontext context;
    uint32_t busy;
    bool refused;
    uint8_t *memory;
    uint64_t mapped_bytes;
    uint64_t chunk_bytes;
    uint32_t next;         /* the chunk that was given to the GPU longest ago */
    uint32_t limit, count; /* chunks that may be and that are registered */
    CUevent earlier; /* recorded before the first piece: what the stream had to do; may be NULL */
    struct gb_pinned_chunk chunks[GB_RING_CHUNKS_MAX];
    struct gb_hop hop; /* the device memory beside it */
};

enum gb_pinned_answer { GB_PINNED_TAKEN, GB_PINNED_BUSY, GB_PINNED_NONE };

/* Takes the context's ring as it is, perhaps without a chunk. */
enum gb_pinned_answer gb_pinned_take(CUcontext context, struct gb_pinned_ring **out);
/* Could a copy of `bytes` do with more chunks than there are, and may there be more? */
bool gb_pinned_is_short(const struct gb_pinned_ring *ring, uint64_t bytes);
/* Pins chunks for `bytes`, as far as the budget allows; false when there is none at all, and then
 * there never will be. */
bool gb_pinned_grow(struct gb_pinned_ring *ring, uint64_t bytes);
void gb_pinned_put(struct gb_pinned_ring *ring);
/* A host allocation of the program failed: gives back every ring that is not taken; true when that
 * freed memory. */
bool gb_pinned_give_back(void);
/* A device allocation failed: the same for the device memory of rings that are not taken. */
bool gb_pinned_give_back_device(void);
/* The device memory of the calling thread's context. */
uint64_t gb_pinned_device_bytes(void);
/* The calling thread is about to end a context. */
void gb_pinned_context_ends(void);

uint64_t gb_pinned_bytes(void);
uint64_t gb_pinned_limit_bytes(void);

#endif
