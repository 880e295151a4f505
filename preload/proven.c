/* proven.c: reads what `gpuboost prove` left. See proven.h. */
#include "proven.h"

#include "driver_api.h"
#include "environment.h"
#include "file.h"

#include <stdio.h>
#include <string.h>

#define FIRST_LINE "proven 1\n"

static bool read_file(void)
{
    char name[96] = "", path[1024], text[64] = "";
    int version = 0;
    CUdevice device;
    if (!gb_driver.cuDriverGetVersion || gb_driver.cuDriverGetVersion(&version) != CUDA_SUCCESS ||
        gb_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        gb_real.f.cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS)
        return false;
    for (char *c = name; *c; c++)
        if (!((*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z')))
            *c = '_';
    const struct gb_environment *e = &gb_environment;
    int length =
        *e->state_home
            ? snprintf(path, sizeof path, "%s/gpuboost/proven/%d-%s", e->state_home, version, name)
            : snprintf(path, sizeof path, "%s/.local/state/gpuboost/proven/%d-%s", e->home, version,
                       name);
    if (length < 0 || (size_t)length >= sizeof path || (!*e->state_home && !*e->home))
        return false;
    gb_file_read(path, text, sizeof text);
    return strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) == 0;
}

bool gb_is_proven(void)
{
    enum { UNKNOWN, NO, YES };
    static uint32_t answer;
    uint32_t known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known == UNKNOWN) {
        known = read_file() ? YES : NO;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known == YES;
}
