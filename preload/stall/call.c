/* call.c: begin and end of a hooked call, the calling thread's context. See call.h for the rules.
 */
#include "stall/call.h"

#include "cuda/driver_api.h"
#include "cuda/resolve.h"
#include "record/counters.h"
#include "stack/pystack.h"
#include "stall/stall.h"

#include <sys/syscall.h>
#include <unistd.h>

#define SAMPLE_EVERY 32 /* power of two */

GB_TLS struct gb_thread gb_thread = {.last_stream = GB_NO_STREAM, .other_stream = GB_NO_STREAM};

uint32_t gb_thread_id(void)
{
    if (GB_UNLIKELY(!gb_thread.tid))
        gb_thread.tid = (uint32_t)syscall(SYS_gettid);
    return gb_thread.tid;
}

void gb_thread_forget_stream(void)
{
    gb_thread.last_stream = GB_NO_STREAM;
    gb_thread.other_stream = GB_NO_STREAM;
}

void gb_thread_context_set(CUcontext context)
{
    gb_thread_forget_stream();
    gb_thread.context = context;
    gb_thread.context_known = true;
}

void gb_thread_context_push(CUcontext context)
{
    if (gb_thread.depth < GB_CONTEXT_DEPTH)
        gb_thread.below[gb_thread.depth] = gb_thread.context_known ? gb_thread.context : NULL;
    gb_thread.depth++;
    gb_thread_context_set(context);
}

void gb_thread_context_unknown(void)
{
    gb_thread_forget_stream();
    gb_thread.context_known = false;
}

void gb_thread_context_pop(void)
{
    gb_thread_context_unknown();
    if (gb_thread.depth && --gb_thread.depth < GB_CONTEXT_DEPTH && gb_thread.below[gb_thread.depth])
        gb_thread_context_set(gb_thread.below[gb_thread.depth]);
}

/* Asking the driver is the exception: with one context in the process there is nothing to ask. The
 * call reads thread-local state of the driver and neither blocks nor creates anything. */
CUcontext gb_thread_context(void)
{
    if (GB_LIKELY(gb_thread.context_known && gb_thread.context))
        return gb_thread.context;
    CUcontext only = gb_only_context();
    if (only)
        return only;
    CUcontext context = NULL;
    GB_COUNT(gb_counters.context_asked, 1);
    if (gb_driver.cuCtxGetCurrent && gb_driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        gb_thread_context_set(context);
    return context;
}

bool gb_call_begin(struct gb_call *call, unsigned hook, CUstream stream, const void *frame,
                   const void *caller)
{
    struct gb_thread *t = &gb_thread;
    bool driver = gb_hook_is_driver(hook);
    if (GB_UNLIKELY(__atomic_load_n(&gb_state, __ATOMIC_RELAXED) != GB_STATE_ARMED) &&
        (!driver || !gb_armed()))
        return false;
    if ((uintptr_t)frame < t->outer_frame)
        return false;
    *call = (struct gb_call){.hook = hook, .caller = caller, .handle = stream};
    call->sampled = (++t->sample & (SAMPLE_EVERY - 1)) == 0;
    if (GB_UNLIKELY(call->sampled))
        call->entered_ticks = gb_ticks();
    t->outer_frame = (uintptr_t)frame;
    t->copied.stream = NULL;
    call->stream = stream == t->last_stream ? t->last_slot : gb_stream_of(stream);
    if (call->stream) {
        call->seq = call->stream->seq;
        call->was_done = call->stream->done >= call->seq;
        call->was_dry = __atomic_load_n(&call->stream->gpu->dry, __ATOMIC_RELAXED);
    }
    call->start_ticks = gb_ticks();
    return true;
}

void gb_call_stack(struct gb_call *call)
{
    if (!call->has_stack)
        call->stack_id = gb_pystack_capture();
    call->has_stack = true;
}

void gb_call_shares(const struct gb_call *call)
{
    static const char *const trusted[] = {"libtorch", "libc10", "libnccl"};
    for (size_t i = 0; i < GB_ARRAY_LEN(trusted); i++)
        if (gb_is_in(call->caller, trusted[i]))
            return;
    gb_host_shares_memory();
}

/* Direct-mapped by address, since to ask is slow; a collision asks again. The low bit is the
 * answer: one word, so that it is never read half. */
bool gb_call_is_of_torch(const void *caller)
{
    static uintptr_t known[64];
    uintptr_t address = (uintptr_t)caller << 1;
    uintptr_t *slot = &known[((uintptr_t)caller * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
    uintptr_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (GB_LIKELY((found & ~(uintptr_t)1) == address && caller))
        return found & 1;
    bool is = gb_is_in(caller, "libtorch_cuda") || gb_is_in(caller, "libc10_cuda");
    __atomic_store_n(slot, address | is, __ATOMIC_RELAXED);
    return is;
}

void gb_call_copied(const struct gb_call *call, const struct gb_copy *copy)
{
    gb_thread.waits = false;
    if (call->stream && copy->async && copy->bytes &&
        (copy->direction == GB_COPY_H2D || copy->direction == GB_COPY_OTHER))
        gb_thread.copied =
            (struct gb_copied){call->stream, call->stream->seq, call->caller, *copy, call->owed};
}

void gb_call_waits(const struct gb_call *call, const struct gb_copied *copied)
{
    if (copied->stream && copied->stream == call->stream && copied->seq == call->seq)
        gb_thread.waits = true;
}

void gb_call_returns(struct gb_call *call)
{
    call->ticks = gb_ticks() - call->start_ticks;
    gb_thread.outer_frame = 0;
}

void gb_call_times(struct gb_call *call)
{
    call->end_ns = gb_now_ns();
    call->start_ns = call->end_ns - gb_ticks_to_ns(call->ticks);
}

void gb_call_leave(struct gb_call *call)
{
    if (GB_UNLIKELY(call->sampled)) {
        uint64_t ours = gb_ticks() - call->entered_ticks - call->ticks;
        gb_stall_cost(gb_ticks_to_ns(ours) * SAMPLE_EVERY);
    }
}
