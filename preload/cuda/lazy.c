/* lazy.c: the table of real functions, and what each slot holds before its first use.
 *
 * A function of its own per entry point looks the real one up and calls it, so that the wrappers
 * call through the table without a test. Thread rule and failure rule: hooks.h.
 */
#include "cuda/hooks.h"
#include "cuda/resolve.h"

#define HOOK_DRIVER(symbol, api, since, variant, family, ledger, stream, copy, params, args)       \
    static CUresult lazy_##symbol params                                                           \
    {                                                                                              \
        gb_resolve(GB_HOOK_##symbol);                                                              \
        return gb_real.f.symbol args;                                                              \
    }
#define HOOK_RUNTIME(name, variant, family, stream, copy, params, args)                            \
    static cudaError_t lazy_##name##variant params                                                 \
    {                                                                                              \
        gb_resolve(GB_HOOK_##name##variant);                                                       \
        return gb_real.f.name##variant args;                                                       \
    }
#include "cuda/hooks.def"

union gb_real_table gb_real = {.f = {
#define HOOK_DRIVER(symbol, ...)         lazy_##symbol,
#define HOOK_RUNTIME(name, variant, ...) lazy_##name##variant,
#include "cuda/hooks.def"
                               }};

void *const gb_lazy[GB_HOOK_COUNT] = {
#define HOOK_DRIVER(symbol, ...)         (void *)lazy_##symbol,
#define HOOK_RUNTIME(name, variant, ...) (void *)lazy_##name##variant,
#include "cuda/hooks.def"
};

/* A program can come here only through a symbol that its own libraries do not have either. */
static CUresult absent_driver(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

static cudaError_t absent_runtime(void)
{
    return cudaErrorSymbolNotFound;
}

void *gb_absent(unsigned hook)
{
    return gb_hook_is_driver(hook) ? (void *)absent_driver : (void *)absent_runtime;
}
