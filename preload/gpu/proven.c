/* proven.c: reads what `gpuboost prove` left. See proven.h. */
#include "gpu/proven.h"

#include "base/file.h"
#include "cuda/driver_api.h"
#include "options/environment.h"
#include "record/rundir.h"

#include <string.h>

#define FIRST_LINE "proven 1\n"

static bool read_file(void)
{
    char name[96] = "", path[1024], text[64] = "";
    struct gb_text t;
    int version = 0;
    CUdevice device;
    if (!gb_driver.cuDriverGetVersion || gb_driver.cuDriverGetVersion(&version) != CUDA_SUCCESS ||
        gb_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        gb_real.f.cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS)
        return false;
    for (char *c = name; *c; c++)
        if (!((*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z')))
            *c = '_';
    gb_text_init(&t, path, sizeof path);
    if (!gb_rundir_add_base(&t, gb_environment.state_home, gb_environment.home))
        return false;
    gb_text_add(&t, "proven/%d-%s", version, name);
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
