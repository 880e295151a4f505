/* runtime.c: the fake libcudart.so.12: every hooked runtime function, from hooks.def: notes that it
 * was entered and answers what the fake driver was told to. See fake.h. */
#include "fake/fake.h"

#include <cuda_runtime_api.h>

#define HOOK_DRIVER(...)
#define HOOK_RUNTIME(name, variant, family, stream, copy, params, args)                            \
    cudaError_t name##variant params;                                                              \
    cudaError_t name##variant params                                                               \
    {                                                                                              \
        fake_note args;                                                                            \
        fake_args.called = #name #variant;                                                         \
        return (cudaError_t)fake_enter(#name #variant);                                            \
    }
#include "cuda/hooks.def"
