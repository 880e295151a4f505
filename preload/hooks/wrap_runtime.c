/* wrap_runtime.c: the wrappers of the runtime layer: hooks.def by wrap.h.
 *
 * They never arm: before the first driver call there may be no context. See wrap.h for the rules.
 */
#include "hooks/wrap.h"

/* The driver call inside asks again. */
#define GB_ASK(real_call, pays) (real_call)
#define GB_MAY_STAMP()          (__atomic_load_n(&gb_state, __ATOMIC_RELAXED) == GB_STATE_ARMED)
/* Trying again is the driver layer's: here the first failure would stay as the last error. */
#define GB_CALL_PINNING(real_call) (real_call)
#define GB_CALL_ALLOC(real_call)   (real_call)

#define HOOK_DRIVER(...)
#define HOOK_RUNTIME(name, variant, family, stream, copy, params, args)                            \
    GB_BEFORE_##family(cudaError_t, name##variant, stream, params, args)                           \
        GB_EXPORT cudaError_t name##variant params;                                                \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name##variant), __typeof__(&name)),    \
                   #name " has another type in cuda_runtime_api.h");                               \
    cudaError_t name##variant params GB_WRAP_##family(cudaError_t, name##variant, stream, copy,    \
                                                      args)
#include "cuda/hooks.def"
