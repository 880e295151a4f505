/* runtime.c: the fake libcudart.so.12: every hooked runtime function, from hooks.def, notes that it
 * was entered and answers what the fake driver was told to. See fake.h. */
#include "fake/fake.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

static int enter(const char *symbol)
{
    int (*note)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "fake_enter");
    return note ? note(symbol) : 0;
}

#define HOOK_DRIVER(...)
#define HOOK_RUNTIME(name, variant, family, ledger, stream, copy, params, args)                    \
    cudaError_t name##variant params;                                                              \
    cudaError_t name##variant params                                                               \
    {                                                                                              \
        return (cudaError_t)enter(#name #variant);                                                 \
    }
#include "hooks.def"
