/* driver_generic.c: every hooked driver function, from hooks.def: notes that it was entered. What
 * needs more is defined in driver.c and lookup.c, hence weak. */
#include "fake/fake.h"

#define HOOK_DRIVER(symbol, api, since, variant, family, ledger, stream, copy, params, args)       \
    __attribute__((weak)) CUresult symbol params;                                                  \
    CUresult symbol params                                                                         \
    {                                                                                              \
        fake_note args;                                                                            \
        fake_args.called = #symbol;                                                                \
        return (CUresult)fake_enter(#symbol);                                                      \
    }
#define HOOK_RUNTIME(...)
#include "cuda/hooks.def"
