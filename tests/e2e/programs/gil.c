/* gil.c: a library for Python: one thread is inside CUDA calls while another holds the GIL and
 * waits for it, as they do when the second one wants a lock that the first one has. Fake driver. */
#include "check.h"
#include "fake/fake.h"

#include <unistd.h>

static int is_held, is_done;

/* Called with the GIL released. */
void copies(int count);
void copies(int count)
{
    static char source[4096];
    CUdeviceptr device;
    CUcontext context;
    while (!__atomic_load_n(&is_held, __ATOMIC_ACQUIRE))
        usleep(100);
    CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
          cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(cuMemAlloc_v2(&device, sizeof source) == CUDA_SUCCESS);
    for (int i = 0; i < count; i++)
        CHECK(cuMemcpyHtoD_v2(device, source, sizeof source) == CUDA_SUCCESS);
    __atomic_store_n(&is_done, 1, __ATOMIC_RELEASE);
}

/* Called with the GIL held. */
void hold(void);
void hold(void)
{
    __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE))
        usleep(100);
}
