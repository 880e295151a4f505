/* lookup.c: cuGetProcAddress of the fake driver: variants by version and flag, as cudaTypedefs.h
 * has them, and some that the library does not know. See fake.h.
 *
 * Version 1 answers NOT_FOUND and leaves *p alone; version 2 answers SUCCESS, NULL and a status.
 * FAKE_NO_V2 makes a driver of CUDA 11, which has no cuGetProcAddress_v2.
 */
#include "fake/fake.h"

#include <dlfcn.h>
#include <string.h>

/* Variants that are not hooked: older ones, per-thread ones, and of a version yet to come. */
#define NOT_HOOKED(F)                                                                              \
    F(cuMemAlloc, old_mem_alloc, "cuMemAlloc", 2000, )                                             \
    F(cuMemcpyHtoD, old_copy, "cuMemcpyHtoD", 2000, )                                              \
    F(cuMemcpyHtoAAsync, thread_to_array, "cuMemcpyHtoAAsync_v2_ptsz", 7000, _ptsz)                \
    F(cuMemcpyAtoHAsync, thread_from_array, "cuMemcpyAtoHAsync_v2_ptsz", 7000, _ptsz)              \
    F(cuCtxSynchronize, new_synchronize, "cuCtxSynchronize_v2", 13000, )                           \
    F(cuMemcpyHtoDAsync, new_copy, "cuMemcpyHtoDAsync_v3", 14000, )                                \
    F(cuMemcpyHtoDAsync, new_thread_copy, "cuMemcpyHtoDAsync_v3_ptsz", 14000, _ptsz)

#define DEFINE(api, function, symbol, since, variant)                                              \
    static CUresult function(void)                                                                 \
    {                                                                                              \
        return (CUresult)fake_enter(symbol);                                                       \
    }
NOT_HOOKED(DEFINE)

#define HOOK_DRIVER(symbol, api, since, variant, family, ledger, stream, copy, params, args)       \
    CUresult symbol params;
#define HOOK_RUNTIME(...)
#include "cuda/hooks.def"

struct row {
    const char *api, *symbol;
    int since, per_thread;
    void *function;
};

static const struct row rows[] = {
#define HOOK_DRIVER(symbol, api, since, variant, ...)                                              \
    {#api, #symbol, since, sizeof(#variant) > 1, (void *)symbol},
#define HOOK_RUNTIME(...)
#include "cuda/hooks.def"
#define ROW(api, function, symbol, since, variant)                                                 \
    {#api, symbol, since, sizeof(#variant) > 1, (void *)function},
    NOT_HOOKED(ROW){"cuInit", "cuInit", 2000, 0, (void *)cuInit},
    {"cuCtxGetCurrent", "cuCtxGetCurrent", 4000, 0, (void *)cuCtxGetCurrent},
};
#define ROWS (int)(sizeof rows / sizeof rows[0])

#ifdef FAKE_NO_V2
__asm__(".hidden cuGetProcAddress_v2");
static const char missing[] = "cuGetProcAddress_v2";
#else
static const char missing[] = "";
#endif

/* The newest that is not newer than the version; a per-thread one where the flag asks for it and
 * there is one. */
static const struct row *find(const char *api, int version, cuuint64_t flags)
{
    int per_thread = !!(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    const struct row *best = NULL;
    for (int i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        if (strcmp(r->api, api) != 0 || r->since > version || strcmp(r->symbol, missing) == 0 ||
            (r->per_thread && !per_thread))
            continue;
        if (!best || r->per_thread > best->per_thread ||
            (r->per_thread == best->per_thread && r->since >= best->since))
            best = r;
    }
    return best;
}

CUresult cuGetProcAddress(const char *api, void **function, int version, cuuint64_t flags)
{
    int answer = fake_enter("cuGetProcAddress");
    const struct row *r = answer || !api ? NULL : find(api, version, flags);
    if (!r)
        return answer ? (CUresult)answer : CUDA_ERROR_NOT_FOUND;
    if (function)
        *function = r->function;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *api, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    int answer = fake_enter("cuGetProcAddress_v2");
    if (answer)
        return (CUresult)answer;
    const struct row *r = api ? find(api, version, flags) : NULL;
    if (function)
        *function = r ? r->function : NULL;
    if (status)
        *status = r ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

const char *fake_symbol_of(const char *api, int version, cuuint64_t flags)
{
    const struct row *r = find(api, version, flags);
    return r ? r->symbol : NULL;
}

void *fake_own(const char *symbol)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].symbol, symbol) == 0)
            return rows[i].function;
    return NULL;
}

void *fake_self_dlsym(const char *symbol)
{
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *found = dlsym(self, symbol);
    dlclose(self);
    return found;
}

int fake_self_lookup(const char *api, void **function)
{
    CUresult (*lookup)(const char *, void **, int, cuuint64_t) =
        fake_self_dlsym("cuGetProcAddress");
    return lookup(api, function, 12000, 0);
}
