/* call.h: what a wrapper does before and after the real call; the state of the calling thread.
 *
 * A call counts once: when a runtime hook runs, its frame address is noted, and a driver hook that
 * finds itself below it passes through. An address and not a counter, which would stick after a
 * longjmp or an exception (an address that the stack has left is simply overwritten).
 * Thread rule: the calling thread's own state only. Failure rule: a call that cannot be accounted
 * is forwarded.
 */
#ifndef GB_CALL_H
#define GB_CALL_H

#include "base/clock.h"
#include "cuda/hooks.h"
#include "gpu/inflight.h"
#include "hooks/lifecycle.h"

#define GB_CONTEXT_DEPTH 8

enum gb_direction { GB_COPY_OTHER, GB_COPY_H2D, GB_COPY_D2H, GB_COPY_D2D, GB_COPY_NONE };

struct gb_copy {
    enum gb_direction direction;
    void *dst;
    const void *src;
    size_t bytes;
    bool async;
};

/* The thread's last call, where it was an asynchronous copy to the GPU that went well. */
struct gb_copied {
    struct gb_stream *stream; /* NULL: it was not */
    uint64_t seq;             /* of the stream, behind it */
    const void *caller;
    struct gb_copy copy;
    bool owed; /* its end is owed already */
};

struct gb_thread {
    CUstream last_stream; /* GB_NO_STREAM: last_slot means nothing */
    struct gb_stream *last_slot;
    CUstream other_stream; /* the one before, for streams that alternate */
    struct gb_stream *other_slot;
    uintptr_t outer_frame; /* 0: no runtime hook is running */
    CUcontext context;
    CUcontext below[GB_CONTEXT_DEPTH]; /* contexts under the current one on the driver's stack */
    uint32_t depth;
    bool context_known;
    bool waits; /* it waited for the stream right behind its last copy */
    bool polls; /* in a query that may be answered "not ready" (debt.c) */
    uint32_t tid;
    struct gb_copied copied;
    uint32_t sample; /* now and then a call measures its own cost */
};
extern GB_TLS struct gb_thread gb_thread;

uint32_t gb_thread_id(void);
/* The context current to the thread as the hooks saw it; NULL when there is none. */
CUcontext gb_thread_context(void);
/* The only context there is, or NULL (inflight.c). */
CUcontext gb_only_context(void);
void gb_thread_context_set(CUcontext context);
void gb_thread_context_push(CUcontext context);
void gb_thread_context_pop(void);
void gb_thread_context_unknown(void);
void gb_thread_forget_stream(void); /* empties the cache of streams */

struct gb_call {
    unsigned hook;
    bool sampled;
    bool was_done;   /* all work of the stream before this call was known to be done */
    bool was_dry;    /* ... and all kernels of the GPU */
    bool background; /* a copy that returns before it is done */
    bool staged;
    bool owed; /* it returns before it is done, and a debt is open for it */
    const void *caller;
    CUstream handle;
    struct gb_stream *stream; /* NULL: not known */
    uint64_t seq;             /* of the stream, before this call */
    uint64_t entered_ticks;   /* sampled calls only */
    uint64_t start_ticks, ticks;
    uint64_t start_ns, end_ns; /* after gb_call_times */
    uint64_t queued_ns;        /* exact, where staging waited for the earlier work itself */
    uint32_t stack_id;
    bool has_stack;
};

/* False: forward the call and do nothing else. `frame` and `caller` are those of the wrapper. */
bool gb_call_begin(struct gb_call *call, unsigned hook, CUstream stream, const void *frame,
                   const void *caller);
/* Python stack of the call, once; before a wait or after it. */
void gb_call_stack(struct gb_call *call);
/* The call gives kernels host memory (gb_host_shares_memory), unless torch or NCCL makes it: those
 * read and write such memory only behind waits that the hooks see. */
void gb_call_shares(const struct gb_call *call);
/* Does the instruction lie in the part of torch that calls CUDA? Remembered by address. */
bool gb_call_is_of_torch(const void *caller);
/* A copy has succeeded: what a wait right behind it may want to know. And: such a wait is made. */
void gb_call_copied(const struct gb_call *call, const struct gb_copy *copy);
void gb_call_waits(const struct gb_call *call, const struct gb_copied *copied);
/* Takes the end time and leaves the outer frame. */
void gb_call_returns(struct gb_call *call);
/* Did it take long enough to be looked at? */
static inline bool gb_call_is_late(const struct gb_call *call)
{
    return call->ticks >= gb_late_ticks;
}
/* Works out start_ns and end_ns, right after the call has returned. */
void gb_call_times(struct gb_call *call);
/* Behind all accounting: a sampled call adds up what we cost. */
void gb_call_leave(struct gb_call *call);

#endif
