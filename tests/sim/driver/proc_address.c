/* proc_address.c: cuGetProcAddress, versions 1 and 2, from the one list of entry points.
 *
 * Of a name's symbols the newest that is not newer than the version asked for is the answer.
 * Version 1 answers NOT_FOUND and leaves *pfn alone; version 2 answers SUCCESS with a status (as
 * measured on a real driver, lupine PR #839).
 * Thread rule: constant data. Failure rule: as documented.
 */
#include "entry.h"

#include <string.h>

static const struct sim_symbol *lookup(const char *name, int version,
                                       CUdriverProcAddressQueryResult *status)
{
    const struct sim_symbol *best = NULL;
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (int i = 0; i < SIM_ENTRY_COUNT; i++) {
        const struct sim_symbol *symbol = &sim_symbols[i];
        if (strcmp(symbol->name, name) != 0)
            continue;
        if (symbol->version <= version && (!best || symbol->version > best->version))
            best = symbol;
        else if (!best)
            *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    if (best)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return best;
}

static CUresult find(const char *name, int version, cuuint64_t flags, void **function,
                     CUdriverProcAddressQueryResult *status)
{
    cuuint64_t both =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!name || !*name || !function || (flags & ~both) || (flags & both) == both)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sim_symbol *symbol = lookup(name, version, status);
    if (!symbol)
        return CUDA_ERROR_NOT_FOUND;
    bool twin = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && symbol->twin;
    *function = twin ? symbol->twin : symbol->function;
    return CUDA_SUCCESS;
}

CUresult drv_cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    return find(name, version, flags, function, &status);
}

CUresult drv_cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult own;
    if (!status)
        status = &own;
    CUresult result = find(name, version, flags, function, status);
    if (result != CUDA_ERROR_NOT_FOUND)
        return result;
    *function = NULL;
    return CUDA_SUCCESS;
}

/* The hidden tables are not documented: this driver has none. */
CUresult drv_cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    if (!table)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
