/* wrap_driver.c: the wrappers of the driver layer: hooks.def by wrap.h, and the families that only
 * the driver has: contexts, captures, names, look-ups.
 *
 * Types are checked against cudaTypedefs.h. See wrap.h for the rules.
 */
#include "cuda/driver_api.h"
#include "cuda/resolve.h"
#include "gpu/capture.h"
#include "gpu/copy_place.h"
#include "gpu/exported.h"
#include "gpu/graph.h"
#include "hooks/wrap.h"
#include "record/counters.h"
#include "transfer/hop.h"

#define GB_MAY_STAMP() true

/* The real call; where it went well and `when` holds, something is noted. */
#define GB_THEN(symbol, args, when, note)                                                          \
    {                                                                                              \
        CUresult result = gb_real.f.symbol args;                                                   \
        if (result == CUDA_SUCCESS && (when))                                                      \
            note;                                                                                  \
        return result;                                                                             \
    }
/* The real call, and once more when `freed` has made it worth trying. */
#define GB_AGAIN(freed, real_call)                                                                 \
    ({                                                                                             \
        CUresult first = (real_call);                                                              \
        freed(first) ? (real_call) : first;                                                        \
    })

/* ---- owed waits, by the ledger class of hooks.def (debt.h) ---- */
#define GB_OWED_fence(handle)   gb_debt_fence((CUstream)(handle))
#define GB_OWED_stamp(handle)   (void)0 /* the fast path looks, and then the function behind it */
#define GB_OWED_pay(handle)     gb_debt_pay()
#define GB_OWED_query(handle)   (void)0 /* the wrapper asks, pays, asks again */
#define GB_OWED_neutral(handle) (void)0
#define GB_ASK(real_call, pays)                                                                    \
    ({                                                                                             \
        CUresult answer = (real_call);                                                             \
        if (GB_UNLIKELY(answer == CUDA_ERROR_NOT_READY && gb_debts.open && (pays)))                \
            answer = (real_call);                                                                  \
        answer;                                                                                    \
    })
/* Nothing but the ledger cares. */
#define GB_WRAP_owed(RESULT, symbol, handle, copy, args)                                           \
    {                                                                                              \
        return gb_real.f.symbol args;                                                              \
    }
#define GB_WRAP_elapsed(RESULT, symbol, handle, copy, args)                                        \
    {                                                                                              \
        return GB_ASK(gb_real.f.symbol args,                                                       \
                      (int)gb_debt_pay_for_event(e) | (int)gb_debt_pay_for_event(x));              \
    }

/* What is owed may hold memory: what is on its way through ours, and what was freed in the order of
 * a stream. It is waited for, as it would have been natively. */
static bool made_room(CUresult result)
{
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return false;
    bool owed = __atomic_load_n(&gb_debts.open, __ATOMIC_ACQUIRE);
    gb_debt_pay();
    return gb_pinned_give_back_device() || owed;
}
#define GB_CALL_ALLOC(real_call) GB_AGAIN(made_room, real_call)

/* ---- graphs ---- */
#define GB_WRAP_graph_make(RESULT, symbol, handle, copy, args)                                     \
    {                                                                                              \
        CUresult result = GB_CALL_ALLOC(gb_real.f.symbol args);                                    \
        if (result == CUDA_SUCCESS && x)                                                           \
            gb_graph_made(*x, g);                                                                  \
        return result;                                                                             \
    }
#define GB_WRAP_graph_change(RESULT, symbol, handle, copy, args)                                   \
    {                                                                                              \
        gb_graph_changes(x);                                                                       \
        return gb_real.f.symbol args;                                                              \
    }
#define GB_WRAP_graph_launch(RESULT, symbol, handle, copy, args)                                   \
    {                                                                                              \
        bool follow = gb_armed();                                                                  \
        if (follow)                                                                                \
            gb_stamp_kernel((CUstream)(handle));                                                   \
        CUresult result = gb_real.f.symbol args;                                                   \
        if (follow && !gb_graph_is_quiet(g))                                                       \
            gb_stream_host_runs(gb_stamp_other((CUstream)(handle)));                               \
        return result;                                                                             \
    }

/* ---- memory that others may see (exported.h) ---- */
#define GB_WRAP_vmm_map(RESULT, symbol, handle, copy, args)                                        \
    GB_THEN(symbol, args, true, gb_exported_map(h, p, n))
#define GB_WRAP_vmm_unmap(RESULT, symbol, handle, copy, args)                                      \
    {                                                                                              \
        gb_exported_forget(p, n);                                                                  \
        return gb_real.f.symbol args;                                                              \
    }
#define GB_WRAP_vmm_export(RESULT, symbol, handle, copy, args)                                     \
    GB_THEN(symbol, args, true, gb_exported_handle(h, __builtin_return_address(0)))
#define GB_WRAP_vmm_import(RESULT, symbol, handle, copy, args)                                     \
    GB_THEN(symbol, args, h, gb_exported_handle(*h, __builtin_return_address(0)))
#define GB_WRAP_export_range(RESULT, symbol, handle, copy, args)                                   \
    GB_THEN(symbol, args, true, gb_exported_add(p, n, __builtin_return_address(0)))
/* A device on the bus is about to read or write the memory by itself (GPUDirect RDMA). */
#define GB_WRAP_set_attribute(RESULT, symbol, handle, copy, args)                                  \
    GB_THEN(symbol, args, k == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && v && *(const unsigned *)v,      \
            gb_exported_block(p, __builtin_return_address(0)))
#define GB_WRAP_import_block(RESULT, symbol, handle, copy, args)                                   \
    GB_THEN(symbol, args, p, gb_exported_block(*p, __builtin_return_address(0)))
#define GB_WRAP_export_block(RESULT, symbol, handle, copy, args)                                   \
    GB_THEN(symbol, args, true, gb_exported_block(p, __builtin_return_address(0)))

static bool gave_back(CUresult result)
{
    return result == CUDA_ERROR_OUT_OF_MEMORY && gb_pinned_give_back();
}
#define GB_CALL_PINNING(real_call) GB_AGAIN(gave_back, real_call)

/* What we would give back is free. */
#define GB_WRAP_free_bytes(RESULT, symbol, handle, copy, args)                                     \
    GB_THEN(symbol, args, n &&gb_hop_bytes(), *n += gb_pinned_device_bytes())

/* ---- contexts: followed from the start, since a thread may set its own before we arm ---- */
#define GB_WRAP_ctx_set(RESULT, symbol, handle, copy, args)                                        \
    GB_THEN(symbol, args, true, gb_thread_context_set(c))
#define GB_WRAP_ctx_push(RESULT, symbol, handle, copy, args)                                       \
    GB_THEN(symbol, args, true, gb_thread_context_push(c))
#define GB_WRAP_ctx_pop(RESULT, symbol, handle, copy, args)                                        \
    GB_THEN(symbol, args, true, gb_thread_context_pop())
/* Our pinned memory belongs to the context that ends. */
#define GB_WRAP_ctx_gone(RESULT, symbol, handle, copy, args)                                       \
    {                                                                                              \
        gb_debt_context_ends();                                                                    \
        gb_pinned_context_ends();                                                                  \
        gb_copy_place_forget();                                                                    \
        gb_thread_context_unknown();                                                               \
        return gb_real.f.symbol args;                                                              \
    }

#define GB_WRAP_stream_end(RESULT, symbol, handle, copy, args)                                     \
    {                                                                                              \
        if (gb_armed())                                                                            \
            gb_stream_ends(s);                                                                     \
        return gb_real.f.symbol args;                                                              \
    }

/* ---- captures ---- */
#define GB_WRAP_capture_begin(RESULT, symbol, handle, copy, args)                                  \
    GB_THEN(symbol, args, gb_armed(), gb_capture_begins(handle))
#define GB_WRAP_capture_end(RESULT, symbol, handle, copy, args)                                    \
    {                                                                                              \
        CUresult result = gb_real.f.symbol args;                                                   \
        if (gb_armed())                                                                            \
            gb_capture_ends(handle);                                                               \
        return result;                                                                             \
    }

/* ---- names and look-ups ---- */
#define GB_WRAP_device_name(RESULT, symbol, handle, copy, args)                                    \
    {                                                                                              \
        CUresult result = gb_real.f.symbol args;                                                   \
        if (result == CUDA_SUCCESS && t && n > 0 && !gb_lifecycle_off())                           \
            gb_record_device(c, t);                                                                \
        return result;                                                                             \
    }
#define GB_WRAP_lookup(RESULT, symbol, handle, copy, args)                                         \
    {                                                                                              \
        CUresult result = gb_real.f.symbol args;                                                   \
        if (result == CUDA_SUCCESS && t && p && *p)                                                \
            *p = substitute_api(t, *p, v, f, __builtin_return_address(0));                         \
        return result;                                                                             \
    }
#define GB_WRAP_lookup_v2 GB_WRAP_lookup

/* What a program gets for what the driver answered. A version beyond our headers may mean another
 * signature, and a per-thread look-up may mean a variant that we do not hook: then only the very
 * function that the driver exports under the name we know will do. */
static void *substitute_api(const char *name, void *real, int version, cuuint64_t flags,
                            const void *caller)
{
    unsigned hook = gb_hook_of_api(name, version, flags);
    if (hook == GB_HOOK_COUNT || gb_lifecycle_off() || gb_is_in(caller, "libcuda.so"))
        return real;
    bool sure =
        version <= CUDA_VERSION &&
        (!(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) || gb_hook_is_per_thread(hook));
    if (!sure && real != gb_resolve_export(hook)) {
        GB_COUNT(gb_counters.lookup_unknown, 1);
        return real;
    }
    return gb_substitute(hook, real);
}

#define GB_BEFORE_graph_make(...)
#define GB_BEFORE_graph_change(...)
#define GB_BEFORE_graph_launch(...)
#define GB_BEFORE_owed(...)
#define GB_BEFORE_stream_end(...)
#define GB_BEFORE_free_bytes(...)
#define GB_BEFORE_elapsed(...)
#define GB_BEFORE_vmm_map(...)
#define GB_BEFORE_vmm_unmap(...)
#define GB_BEFORE_vmm_export(...)
#define GB_BEFORE_vmm_import(...)
#define GB_BEFORE_export_range(...)
#define GB_BEFORE_export_block(...)
#define GB_BEFORE_import_block(...)
#define GB_BEFORE_set_attribute(...)
#define GB_BEFORE_ctx_set(...)
#define GB_BEFORE_ctx_push(...)
#define GB_BEFORE_ctx_pop(...)
#define GB_BEFORE_ctx_gone(...)
#define GB_BEFORE_capture_begin(...)
#define GB_BEFORE_capture_end(...)
#define GB_BEFORE_device_name(...)
#define GB_BEFORE_lookup(...)
#define GB_BEFORE_lookup_v2(...)

#define HOOK_DRIVER(symbol, api, since, variant, family, ledger, stream, copy, params, args)       \
    GB_BEFORE_##family(CUresult, symbol, stream, params, args) GB_EXPORT CUresult symbol params;   \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(&symbol), PFN_##api##_v##since##variant),          \
        #symbol " has another type in cudaTypedefs.h");                                            \
    CUresult symbol params                                                                         \
    {                                                                                              \
        GB_OWED_##ledger(stream);                                                                  \
        GB_WRAP_##family(CUresult, symbol, stream, copy, args)                                     \
    }
#define HOOK_RUNTIME(...)
#include "cuda/hooks.def"
