/* stall.h: how long the host was blocked, how long the GPU was idle, and who is charged for it.
 *
 * blocked = return - entry of a call. It is split into *queued* (earlier work of the stream still
 * ran) and *transfer* (the copy itself): exactly where the stream was known to be done at entry or
 * where staging waited itself, else with the transfer rate of transfer_rate.h;
 * before there is one, the call stays unsplit.
 * idle = time in which the compute engine is known to have nothing to do: from a wait that showed
 * the GPU dry to the next kernel given to it (a bubble, charged to the call that waited), and
 * transfers on a dry GPU (charged to the copy). It counts from the first kernel on. Of a copy that
 * returned early to a dry GPU only the time up to the next kernel is seen, and not how long that
 * kernel waits for the bytes: such copies are counted, and the idle time is a lower bound.
 * Thread rule: any thread, no lock. Failure rule: idle time that was not seen is not charged.
 */
#ifndef GB_STALL_H
#define GB_STALL_H

#include "stall/call.h"

/* Accounting after the real call; `ok` is its success. */
void gb_stall_copy(struct gb_call *call, const struct gb_copy *copy, bool ok);
void gb_stall_stream(struct gb_call *call, bool ok); /* a wait for call->stream */
void gb_stall_elided(struct gb_call *call);          /* one that was not made */
void gb_stall_event(struct gb_call *call, CUevent event, bool ok);
void gb_stall_gpu(struct gb_call *call, struct gb_gpu *gpu, const struct gb_snapshot *snapshot,
                  bool ok);
/* A query answered "done" without waiting: for call->stream, or for an event. */
void gb_stall_query(struct gb_call *call, struct gb_stream *stream, uint64_t seq);
/* A call that may block and says nothing about streams (allocation, registration). */
void gb_stall_other(struct gb_call *call, uint64_t bytes);

/* A kernel was given to a dry GPU. */
void gb_stall_ends_bubble(struct gb_gpu *gpu);

/* Own cost: what sampled calls measured; what a stamp costs, measured at arm time. */
void gb_stall_cost(uint64_t ns);
void gb_stall_calibrate(void);

/* Host memory that a copy may read or write in the background (ranges.c knows what the program
 * pinned): such a copy returns before it is done. */
bool gb_copy_is_background(const struct gb_copy *copy);

#endif
