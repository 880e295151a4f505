/* driver_api.c: looks up the functions of driver_api.def. See driver_api.h for the rules. */
#include "driver_api.h"

#include "elf.h"

struct gb_driver_api gb_driver;
static bool complete;

void gb_driver_load(void)
{
    complete = true;
#define GB_DRIVER_API(symbol, type)                                                                \
    gb_driver.symbol = (type)gb_elf_find("libcuda.so", #symbol);                                   \
    complete = complete && gb_driver.symbol;
#include "driver_api.def"
}

bool gb_driver_ready(void)
{
    return complete;
}
