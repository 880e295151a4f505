/* hop.h: staging in device memory, so that a copy overlaps with the kernels before it.
 *
 * A copy whose stream still has work is sent on a stream of our own into memory of our own; the
 * program's stream waits for that and then copies within the device, so that the destination is
 * still written in stream order. The memory is one buffer per context, given out as a ring of
 * regions: a region is free again when the copy out of it is known to be done.
 * The buffer is physical memory of its own (cuMemCreate), made while the device has nothing to do,
 * counted as free in cuMemGetInfo, and given back when an allocation of the program fails.
 * Thread rule: whoever has the context's pinned ring. Failure rule: no region: the copy goes
 * straight to its destination; a refusal is not asked again.
 */
#ifndef GB_HOP_H
#define GB_HOP_H

#include "cuda/hooks.h"

#define GB_HOP_REGIONS 64

struct gb_stream;

struct gb_hop_region {
    uint64_t start, bytes;
    CUevent arrived; /* on our stream */
    CUevent left;    /* on the program's, behind the copy out of it */
    struct gb_stream *stream;
};

struct gb_hop {
    bool refused;
    CUdevice device;
    CUstream stream;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr memory;
    uint64_t bytes, address_bytes; /* what there is; what there may be */
    uint64_t batch_bytes, largest_batch_bytes, batch_kernel_seq;
    uint32_t first, count; /* regions in use, the oldest first */
    struct gb_hop_region regions[GB_HOP_REGIONS];
};

/* A copy of `bytes` is about to be made on the stream: batches are what comes between kernels. */
void gb_hop_note(struct gb_hop *hop, const struct gb_stream *stream, uint64_t bytes);
/* Is there less memory than two batches, and may there be more? */
bool gb_hop_is_short(const struct gb_hop *hop);
/* Makes it so, as far as the budget allows. The device must be idle. */
void gb_hop_grow(struct gb_hop *hop);
/* A free region, or NULL. Waits for one that a copy on the same stream is to leave. */
struct gb_hop_region *gb_hop_take(struct gb_hop *hop, struct gb_stream *stream, uint64_t bytes);
/* Gives the memory back; false when there is none or it is in use. `wait`: the context ends. */
bool gb_hop_give_back(struct gb_hop *hop, bool wait);

/* Of all contexts. */
uint64_t gb_hop_bytes(void);

#endif
