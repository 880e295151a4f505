/* driver_api.c: looks up the functions of driver_api.def. See driver_api.h for the rules. */
#include "cuda/driver_api.h"

#include "base/elf.h"

struct gb_driver_api gb_driver;
static bool complete;

void gb_driver_load(void)
{
    complete = true;
#define GB_DRIVER_API_MORE(symbol, type)                                                           \
    gb_driver.symbol = (type)gb_elf_find("libcuda.so", #symbol);
#define GB_DRIVER_API(symbol, type)                                                                \
    GB_DRIVER_API_MORE(symbol, type)                                                               \
    complete = complete && gb_driver.symbol;
#include "cuda/driver_api.def"
}

bool gb_driver_ready(void)
{
    return complete;
}

bool gb_has_staging(void)
{
    return gb_driver.cuStreamCreate && gb_driver.cuMemAddressReserve && gb_driver.cuMemSetAccess &&
           gb_driver.cuMemGetAllocationGranularity;
}

bool gb_has_graphs(void)
{
    return gb_driver.cuGraphGetNodes && gb_driver.cuGraphNodeGetType &&
           gb_driver.cuGraphMemcpyNodeGetParams && gb_driver.cuGraphMemsetNodeGetParams &&
           gb_driver.cuGraphChildGraphNodeGetGraph;
}
