/* wrap.h: the bodies of the wrappers, one macro per family of hooks.def.
 *
 * Each reads the same: begin (or forward), what must be known before the wait, the real call, the
 * accounting. RESULT is CUresult or cudaError_t; success is 0 in both. A wrapper returns what the
 * real function returned, bit for bit, and reads out-parameters only after success.
 * Thread rule: the application's thread, no lock across the real call. Failure rule: forward.
 */
#ifndef GB_WRAP_H
#define GB_WRAP_H

#include "gpu/debt.h"
#include "gpu/exported.h"
#include "gpu/ranges.h"
#include "policies/policy.h"
#include "record/record.h"
#include "stall/call.h"
#include "stall/stall.h"
#include "stall/stamp.h"
#include "transfer/pinned.h"

/* Stream expressions of hooks.def. */
#define GB_LEGACY     ((CUstream)0)
#define GB_PER_THREAD CU_STREAM_PER_THREAD
#define GB_PT(s)      ((s) ? (CUstream)(s) : CU_STREAM_PER_THREAD)

/* Copy expressions of hooks.def. */
#define GB_SYNC  false
#define GB_ASYNC true
#define GB_COPY_OF(direction, dst, src, bytes, mode)                                               \
    {                                                                                              \
        direction, (void *)(uintptr_t)(dst), (const void *)(uintptr_t)(src), bytes, GB_##mode      \
    }
#define GB_COPY_H2D(d, s, n, mode)     GB_COPY_OF(GB_COPY_H2D, d, s, n, mode)
#define GB_COPY_D2H(d, s, n, mode)     GB_COPY_OF(GB_COPY_D2H, d, s, n, mode)
#define GB_COPY_D2D(d, s, n, mode)     GB_COPY_OF(GB_COPY_D2D, d, s, n, mode)
#define GB_COPY_ANY(d, s, n, mode)     GB_COPY_OF(GB_COPY_OTHER, d, s, n, mode)
#define GB_COPY_KIND(d, s, n, k, mode) GB_COPY_OF(gb_direction_of(k), d, s, n, mode)

/* cudaMemcpyDefault leaves it to the driver; the policies ask it, accounting does not guess. */
static inline enum gb_direction gb_direction_of(enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return GB_COPY_H2D;
    case cudaMemcpyDeviceToHost:
        return GB_COPY_D2H;
    case cudaMemcpyDeviceToDevice:
        return GB_COPY_D2D;
    case cudaMemcpyDefault:
        return GB_COPY_OTHER;
    default: /* the real call refuses what is no direction */
        return GB_COPY_NONE;
    }
}

#define GB_BEGIN(hook, handle)                                                                     \
    gb_call_begin(&call, hook, (CUstream)(handle), __builtin_frame_address(0),                     \
                  __builtin_return_address(0))

/* ---- given to a stream, never waits: the fast path calls nothing but the real function, what
 * else there is to do has a function of its own, so that no register is saved for it ---- */
#define GB_BEFORE_enqueue(RESULT, symbol, handle, params, args)                                    \
    __attribute__((noinline)) static RESULT slow_##symbol params                                   \
    {                                                                                              \
        gb_debt_fence((CUstream)(handle));                                                         \
        gb_stamp_kernel((CUstream)(handle));                                                       \
        return gb_real.f.symbol args;                                                              \
    }
#define GB_WRAP_enqueue(RESULT, symbol, handle, copy, args)                                        \
    {                                                                                              \
        if (GB_LIKELY(gb_stamp_kernel_fast((CUstream)(handle))))                                   \
            return gb_real.f.symbol args;                                                          \
        return slow_##symbol args;                                                                 \
    }
#define GB_BEFORE_record(RESULT, symbol, handle, params, args)                                     \
    __attribute__((noinline)) static RESULT slow_##symbol params                                   \
    {                                                                                              \
        gb_debt_fence((CUstream)(handle));                                                         \
        struct gb_stream *on = gb_stamp_other((CUstream)(handle));                                 \
        if (on)                                                                                    \
            gb_event_recorded(e, on);                                                              \
        return gb_real.f.symbol args;                                                              \
    }
#define GB_WRAP_record(RESULT, symbol, handle, copy, args)                                         \
    {                                                                                              \
        if (GB_LIKELY(gb_stamp_event_fast(e, (CUstream)(handle))))                                 \
            return gb_real.f.symbol args;                                                          \
        return slow_##symbol args;                                                                 \
    }
/* Runs host code, waits for the host, or may (a graph). */
#define GB_WRAP_host_runs(RESULT, symbol, handle, copy, args)                                      \
    {                                                                                              \
        bool follow = GB_MAY_STAMP() && gb_armed();                                                \
        if (follow)                                                                                \
            gb_stamp_kernel((CUstream)(handle));                                                   \
        RESULT result = gb_real.f.symbol args;                                                     \
        if (follow)                                                                                \
            gb_stream_host_runs(gb_stamp_other((CUstream)(handle)));                               \
        return result;                                                                             \
    }
/* A fill may be one of page-locked host memory. */
#define GB_WRAP_fill(RESULT, symbol, handle, copy, args)                                           \
    {                                                                                              \
        bool follow = GB_MAY_STAMP() && gb_armed();                                                \
        if (follow)                                                                                \
            gb_stamp_kernel((CUstream)(handle));                                                   \
        RESULT result = gb_real.f.symbol args;                                                     \
        if (follow && gb_ranges_touch((const void *)(uintptr_t)d, n) != GB_RANGE_NONE)             \
            gb_stream_host_sees(gb_stamp_other((CUstream)(handle)));                               \
        return result;                                                                             \
    }
#define GB_WRAP_wait(RESULT, symbol, handle, copy, args)                                           \
    {                                                                                              \
        struct gb_stream *on = gb_stamp_other((CUstream)(handle));                                 \
        if (GB_LIKELY(on != NULL))                                                                 \
            gb_stream_waits(on, e);                                                                \
        return gb_real.f.symbol args;                                                              \
    }
/* ---- copies ---- */
#define GB_WRAP_copy(RESULT, symbol, handle, copy, args)                                           \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return gb_real.f.symbol args;                                                          \
        const struct gb_copy what = GB_COPY_##copy;                                                \
        call.background = gb_copy_is_background(&what);                                            \
        if (!call.background)                                                                      \
            gb_call_stack(&call);                                                                  \
        RESULT result = 0;                                                                         \
        if (call.background || !gb_policies_copy(&call, &what))                                    \
            result = gb_real.f.symbol args;                                                        \
        gb_stall_copy(&call, &what, result == 0);                                                  \
        if (result == 0)                                                                           \
            gb_call_copied(&call, &what);                                                          \
        return result;                                                                             \
    }
/* Copies of other shapes: timed, and counted as work of the stream that the host may see. Fills of
 * other shapes: the same, where they are of page-locked memory. */
#define GB_TIMED(symbol, handle, args, is_seen)                                                    \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return gb_real.f.symbol args;                                                          \
        gb_stamp_kernel((CUstream)(handle));                                                       \
        __typeof__(gb_real.f.symbol args) result = gb_real.f.symbol args;                          \
        if (is_seen)                                                                               \
            gb_stream_host_sees(call.stream);                                                      \
        gb_stall_other(&call, 0);                                                                  \
        return result;                                                                             \
    }
#define GB_WRAP_timed(RESULT, symbol, handle, copy, args) GB_TIMED(symbol, handle, args, true)
#define GB_WRAP_timed_fill(RESULT, symbol, handle, copy, args)                                     \
    GB_TIMED(symbol, handle, args, gb_ranges_touch((const void *)(uintptr_t)d, 1) != GB_RANGE_NONE)

/* ---- waits and queries ---- */
#define GB_WRAP_sync_stream(RESULT, symbol, handle, copy, args)                                    \
    {                                                                                              \
        struct gb_call call;                                                                       \
        struct gb_copied copied = gb_thread.copied;                                                \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return gb_real.f.symbol args;                                                          \
        if (GB_UNLIKELY(copied.stream) && gb_elide_wait(&call, &copied)) {                         \
            gb_stall_elided(&call);                                                                \
            return 0;                                                                              \
        }                                                                                          \
        gb_call_waits(&call, &copied);                                                             \
        if (!call.was_done)                                                                        \
            gb_call_stack(&call);                                                                  \
        RESULT result = gb_real.f.symbol args;                                                     \
        gb_stall_stream(&call, result == 0);                                                       \
        return result;                                                                             \
    }
#define GB_WRAP_sync_event(RESULT, symbol, event, copy, args)                                      \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, GB_LEGACY))                                                \
            return gb_real.f.symbol args;                                                          \
        if (!gb_event_is_done(event))                                                              \
            gb_call_stack(&call);                                                                  \
        RESULT result = gb_real.f.symbol args;                                                     \
        gb_stall_event(&call, event, result == 0);                                                 \
        return result;                                                                             \
    }
#define GB_WRAP_sync_context(RESULT, symbol, handle, copy, args)                                   \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return gb_real.f.symbol args;                                                          \
        struct gb_gpu *gpu = gb_gpu_here();                                                        \
        struct gb_snapshot given;                                                                  \
        if (gpu)                                                                                   \
            gb_gpu_snapshot(gpu, &given);                                                          \
        if (!call.was_dry)                                                                         \
            gb_call_stack(&call);                                                                  \
        RESULT result = gb_real.f.symbol args;                                                     \
        gb_stall_gpu(&call, gpu, &given, result == 0);                                             \
        return result;                                                                             \
    }
#define GB_WRAP_query(RESULT, symbol, handle, copy, args)                                          \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return GB_ASK(gb_real.f.symbol args, gb_debt_pay_for_stream((CUstream)(handle)));      \
        RESULT result = GB_ASK(gb_real.f.symbol args, gb_debt_pay_for_stream((CUstream)(handle))); \
        gb_stall_query(&call, result == 0 ? call.stream : NULL, call.seq);                         \
        return result;                                                                             \
    }
#define GB_WRAP_query_event(RESULT, symbol, event, copy, args)                                     \
    {                                                                                              \
        struct gb_call call;                                                                       \
        struct gb_stream *on = NULL;                                                               \
        uint64_t seq = 0;                                                                          \
        if (!GB_BEGIN(GB_HOOK_##symbol, GB_LEGACY))                                                \
            return GB_ASK(gb_real.f.symbol args, gb_debt_pay_for_event((CUevent)(event)));         \
        bool known = gb_event_position(event, &on, &seq);                                          \
        gb_thread.polls = gb_debts.open && gb_call_is_of_torch(call.caller);                       \
        RESULT result = GB_ASK(gb_real.f.symbol args, gb_debt_pay_for_event((CUevent)(event)));    \
        gb_thread.polls = false;                                                                   \
        gb_stall_query(&call, result == 0 && known ? on : NULL, seq);                              \
        return result;                                                                             \
    }

/* ---- memory ---- */
/* GB_CALL_ALLOC: the real call, once more after our device memory was given back. */
#define GB_WRAP_alloc(RESULT, symbol, handle, copy, args)                                          \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return GB_CALL_ALLOC(gb_real.f.symbol args);                                           \
        RESULT result = GB_CALL_ALLOC(gb_real.f.symbol args);                                      \
        gb_stall_other(&call, 0);                                                                  \
        return result;                                                                             \
    }
#define GB_WRAP_free(RESULT, symbol, handle, copy, args)                                           \
    {                                                                                              \
        struct gb_call call;                                                                       \
        gb_exported_forget((CUdeviceptr)(uintptr_t)(p), 0);                                        \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return gb_real.f.symbol args;                                                          \
        RESULT result = gb_real.f.symbol args;                                                     \
        gb_stall_other(&call, 0);                                                                  \
        return result;                                                                             \
    }
#define GB_WRAP_share(RESULT, symbol, handle, copy, args)                                          \
    {                                                                                              \
        gb_host_shares_memory();                                                                   \
        return gb_real.f.symbol args;                                                              \
    }
/* A kernel is about to be given page-locked memory; torch asks only whether it could. */
#define GB_WRAP_map(RESULT, symbol, handle, copy, args)                                            \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (GB_BEGIN(GB_HOOK_##symbol, handle)) {                                                  \
            gb_call_shares(&call);                                                                 \
            gb_call_returns(&call);                                                                \
        }                                                                                          \
        return gb_real.f.symbol args;                                                              \
    }
#define GB_FLAGS_NONE     0
#define GB_FLAGS_FLAGS(f) (f)
/* GB_CALL_PINNING: the real call, once more after our pinned memory was given back. */
#define GB_WRAP_host_alloc(RESULT, symbol, handle, copy, args)                                     \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return GB_CALL_PINNING(gb_real.f.symbol args);                                         \
        if (GB_FLAGS_##copy & CU_MEMHOSTALLOC_DEVICEMAP)                                           \
            gb_call_shares(&call);                                                                 \
        RESULT result = GB_CALL_PINNING(gb_real.f.symbol args);                                    \
        if (result == 0 && p)                                                                      \
            gb_ranges_add(*p, n);                                                                  \
        gb_stall_other(&call, n);                                                                  \
        return result;                                                                             \
    }
#define GB_WRAP_host_register(RESULT, symbol, handle, copy, args)                                  \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return GB_CALL_PINNING(gb_real.f.symbol args);                                         \
        RESULT result = GB_CALL_PINNING(gb_real.f.symbol args);                                    \
        if (result == 0)                                                                           \
            gb_ranges_add(p, n);                                                                   \
        gb_stall_other(&call, n);                                                                  \
        return result;                                                                             \
    }
/* Removed before the real call: after it another thread may be given the same address. */
#define GB_WRAP_host_free(RESULT, symbol, handle, copy, args)                                      \
    {                                                                                              \
        struct gb_call call;                                                                       \
        if (!GB_BEGIN(GB_HOOK_##symbol, handle))                                                   \
            return gb_real.f.symbol args;                                                          \
        gb_ranges_remove(p);                                                                       \
        RESULT result = gb_real.f.symbol args;                                                     \
        gb_stall_other(&call, 0);                                                                  \
        return result;                                                                             \
    }
#define GB_WRAP_host_unregister GB_WRAP_host_free

/* Families without a function of their own before the wrapper. */
#define GB_BEFORE_host_runs(...)
#define GB_BEFORE_fill(...)
#define GB_BEFORE_share(...)
#define GB_BEFORE_map(...)
#define GB_BEFORE_wait(...)
#define GB_BEFORE_copy(...)
#define GB_BEFORE_timed(...)
#define GB_BEFORE_timed_fill(...)
#define GB_BEFORE_sync_stream(...)
#define GB_BEFORE_sync_event(...)
#define GB_BEFORE_sync_context(...)
#define GB_BEFORE_query(...)
#define GB_BEFORE_query_event(...)
#define GB_BEFORE_alloc(...)
#define GB_BEFORE_free(...)
#define GB_BEFORE_host_alloc(...)
#define GB_BEFORE_host_register(...)
#define GB_BEFORE_host_free(...)
#define GB_BEFORE_host_unregister(...)

#endif
