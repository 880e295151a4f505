/* driver.c: the notes of the fake driver, and the functions whose answers matter: contexts,
 * pointers, allocation. See fake.h. */
#include "fake/fake.h"

#include <string.h>

#define CALLS_MAX 100000

static const char *calls[CALLS_MAX];
static int call_count;
static const char *fail_symbol;
static int fail_code, fail_all;

int fake_enter(const char *symbol)
{
    int i = __atomic_fetch_add(&call_count, 1, __ATOMIC_RELAXED);
    if (i < CALLS_MAX)
        __atomic_store_n(&calls[i], symbol, __ATOMIC_RELEASE);
    return fail_all || (fail_symbol && strcmp(fail_symbol, symbol) == 0) ? fail_code : 0;
}

__thread struct fake_args fake_args;

int fake_note(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f,
              uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k, uintptr_t l)
{
    fake_args = (struct fake_args){NULL, {a, b, c, d, e, f, g, h, i, j, k, l}};
    return 0;
}

int fake_call_count(void)
{
    int n = __atomic_load_n(&call_count, __ATOMIC_ACQUIRE);
    return n < CALLS_MAX ? n : CALLS_MAX;
}

const char *fake_call_at(int i)
{
    return calls[i];
}

int fake_calls_of(const char *symbol)
{
    int n = 0;
    for (int i = 0; i < fake_call_count(); i++)
        n += calls[i] && strcmp(calls[i], symbol) == 0;
    return n;
}

void fake_fail(const char *symbol, int code)
{
    fail_symbol = symbol;
    fail_code = code;
    fail_all = !symbol && code;
}

#define ENTER(symbol)                                                                              \
    do {                                                                                           \
        CUresult answer = (CUresult)fake_enter(symbol);                                            \
        if (answer)                                                                                \
            return answer;                                                                         \
    } while (0)

/* ---- contexts: one primary for each device, handles without anything behind them ---- */

static int retained[8];
static __thread CUcontext current;

static CUcontext primary_of(CUdevice device)
{
    return (CUcontext)(uintptr_t)(0x1000 + device);
}

CUresult cuInit(unsigned flags)
{
    ENTER("cuInit");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER("cuDeviceGetCount");
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER("cuDeviceGet");
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER("cuDevicePrimaryCtxRetain");
    retained[device]++;
    *context = primary_of(device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER("cuDevicePrimaryCtxRelease_v2");
    retained[device]--;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    ENTER("cuDevicePrimaryCtxGetState");
    *flags = 0;
    *active = retained[device] > 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    ENTER("cuCtxCreate_v2");
    *context = current = (CUcontext)(uintptr_t)(0x2000 + device);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER("cuCtxSetCurrent");
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER("cuCtxGetCurrent");
    *context = current;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER("cuCtxGetDevice");
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = (CUdevice)((uintptr_t)current & 0xfff);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    ENTER("cuDeviceGetAttribute");
    *value = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    ENTER("cuStreamGetCtx");
    *context = current;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    ENTER("cuStreamIsCapturing");
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    ENTER("cuThreadExchangeStreamCaptureMode");
    *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    static uintptr_t next = 0x3000;
    ENTER("cuEventCreate");
    *event = (CUevent)__atomic_add_fetch(&next, 16, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    ENTER("cuEventDestroy_v2");
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    static uint64_t next = FAKE_DEVICE_START;
    ENTER("cuMemAlloc_v2");
    if (pointer)
        *pointer = __atomic_fetch_add(&next, (bytes + 511) & ~511ull, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr pointer)
{
    ENTER("cuPointerGetAttributes");
    int is_device = pointer - FAKE_DEVICE_START < FAKE_DEVICE_BYTES;
    for (unsigned i = 0; i < count; i++)
        switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(int *)values[i] = is_device ? CU_MEMORYTYPE_DEVICE : 0;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(CUdeviceptr *)values[i] = is_device ? FAKE_DEVICE_START : 0;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)values[i] = is_device ? FAKE_DEVICE_BYTES : 0;
            break;
        default:
            *(char *)values[i] = 0;
        }
    return CUDA_SUCCESS;
}
