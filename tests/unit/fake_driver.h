/* fake_driver.h: a driver in this process behind gb_real and gb_driver, for the staging tests.
 *
 * It is as lazy as the documentation lets it be: a copy out of pinned memory reads its source when
 * an event or stream wait forces it, and the host writes that a stream has queued land then too. So
 * a chunk that is refilled too early, or a source that is read too early, gives wrong bytes. Every
 * call is logged, and the n-th one can be made to fail. One thread at a time; included once. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <stdlib.h>
#include <string.h>

#include "cuda/driver_api.h"

#define FAKE_STREAM ((CUstream)0x5150)
#define FAKE_OPS    32768
#define FAKE_RANGES 64

enum fake_call {
    FAKE_CURRENT,
    FAKE_DEVICE,
    FAKE_ATTRIBUTE,
    FAKE_PRIMARY_STATE,
    FAKE_RETAIN,
    FAKE_RELEASE,
    FAKE_STREAM_CTX,
    FAKE_CAPTURING,
    FAKE_POINTER,
    FAKE_EXCHANGE,
    FAKE_EVENT_CREATE,
    FAKE_EVENT_DESTROY,
    FAKE_EVENT_RECORD,
    FAKE_EVENT_SYNC,
    FAKE_EVENT_QUERY,
    FAKE_STREAM_SYNC,
    FAKE_REGISTER,
    FAKE_UNREGISTER,
    FAKE_SEND,    /* an asynchronous copy out of pinned memory */
    FAKE_READ,    /* an asynchronous copy to the host */
    FAKE_FORWARD, /* ... out of any other memory: the program's own call */
    FAKE_HOST_ALLOC,
    FAKE_CALLS
};

struct fake_op {
    CUstream stream;
    void *dst; /* NULL: the record of `event` */
    const void *src;
    size_t bytes;
    CUevent event;
    bool done, owned; /* owned: src is ours to free */
};

struct fake_range {
    const uint8_t *start, *end;
};

struct fake_log {
    enum fake_call call;
    CUstreamCaptureMode mode;
    const void *address;
    size_t bytes;
};

static struct {
    /* how it answers */
    CUcontext context, primary, stream_context;
    int coherent, managed, sync_memops, ordinal;
    CUstreamCaptureStatus capturing;
    struct fake_range device;     /* what it calls device memory */
    struct fake_range registered; /* ... and host memory it knows, beside the ring */
    int fail_nth;                 /* the n-th call from fake_begin on fails, 0: none */
    enum fake_call fail_call;     /* FAKE_CALLS: any; else the n-th of this kind */
    bool sticky;                  /* ... and so does every later call */
    CUresult error;
    int corrupt_send;      /* the n-th send arrives with a wrong byte, 0: none */
    void (*on_send)(void); /* called inside the next send, once */
    /* what happened */
    CUstreamCaptureMode mode;
    int calls, count[FAKE_CALLS];
    enum fake_call failed; /* which call it was; FAKE_CALLS: none yet */
    struct fake_log log[FAKE_OPS];
    int logged;
    struct fake_op ops[FAKE_OPS];
    int op_count;
    struct fake_range pinned[FAKE_RANGES];
    int events_made, events_alive;
} fake;

static bool fake_is_in(const struct fake_range *ranges, int count, const void *p)
{
    for (int i = 0; i < count; i++)
        if (ranges[i].start && (const uint8_t *)p >= ranges[i].start &&
            (const uint8_t *)p < ranges[i].end)
            return true;
    return false;
}

static bool fake_is_pinned(const void *p)
{
    return fake_is_in(fake.pinned, FAKE_RANGES, p);
}

__attribute__((unused)) static int fake_pinned_count(void)
{
    int count = 0;
    for (int i = 0; i < FAKE_RANGES; i++)
        count += fake.pinned[i].start != NULL;
    return count;
}

/* Every call comes by here; true when it must fail. */
static bool fake_fails(enum fake_call call, const void *address, size_t bytes)
{
    fake.calls++;
    fake.count[call]++;
    if (fake.logged < FAKE_OPS)
        fake.log[fake.logged++] = (struct fake_log){call, fake.mode, address, bytes};
    if (fake.sticky && fake.failed != FAKE_CALLS)
        return true;
    int nth = fake.fail_call == FAKE_CALLS ? fake.calls : fake.count[call];
    bool chosen = fake.fail_call == FAKE_CALLS || fake.fail_call == call;
    if (!chosen || nth != fake.fail_nth)
        return false;
    fake.failed = call;
    return true;
}
#define FAKE_ENTER(call, address, bytes)                                                           \
    do {                                                                                           \
        if (fake_fails(call, (const void *)(uintptr_t)(address), bytes))                           \
            return fake.error;                                                                     \
    } while (0)

/* ---- what is queued ---- */

static void fake_run(struct fake_op *op)
{
    if (!op->done && op->dst)
        memcpy(op->dst, op->src, op->bytes);
    if (!op->done && op->owned)
        free((void *)(uintptr_t)op->src);
    op->done = true;
}

static void fake_run_stream(CUstream stream, int up_to)
{
    for (int i = 0; i < up_to; i++)
        if (fake.ops[i].stream == stream)
            fake_run(&fake.ops[i]);
}

__attribute__((unused)) static int fake_pending(void)
{
    int pending = 0;
    for (int i = 0; i < fake.op_count; i++)
        pending += !fake.ops[i].done && fake.ops[i].dst;
    return pending;
}

static void fake_queue(struct fake_op op)
{
    if (fake.op_count == FAKE_OPS)
        abort();
    fake.ops[fake.op_count++] = op;
}

/* The stream writes these bytes into host memory when it gets there, as a host function does. */
__attribute__((unused)) static void fake_queue_write(CUstream stream, void *dst, const void *bytes,
                                                     size_t n)
{
    void *copy = malloc(n);
    memcpy(copy, bytes, n);
    fake_queue((struct fake_op){stream, dst, copy, n, NULL, false, true});
    cuLaunchHostFunc(stream, NULL, NULL);
}

/* ---- the entry points ---- */

struct gb_driver_api gb_driver;

void gb_driver_load(void)
{
}

bool gb_driver_ready(void)
{
    return true;
}

bool gb_has_staging(void)
{
    return false;
}

bool gb_has_graphs(void)
{
    return false;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *out)
{
    FAKE_ENTER(FAKE_CURRENT, 0, 0);
    *out = fake.context;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetDevice(CUdevice *out)
{
    FAKE_ENTER(FAKE_DEVICE, 0, 0);
    *out = 0;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetAttribute(int *out, CUdevice_attribute what, CUdevice device)
{
    (void)device;
    FAKE_ENTER(FAKE_ATTRIBUTE, 0, 0);
    *out = what == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES ? fake.coherent
                                                                                    : 0;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    (void)device;
    FAKE_ENTER(FAKE_PRIMARY_STATE, 0, 0);
    *flags = 0;
    *active = fake.primary != NULL;
    return CUDA_SUCCESS;
}

/* Of a primary context that is not there it would make one. */
static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    (void)device;
    FAKE_ENTER(FAKE_RETAIN, 0, 0);
    *out = fake.primary;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    FAKE_ENTER(FAKE_RELEASE, 0, 0);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamGetCtx(CUstream stream, CUcontext *out)
{
    (void)stream;
    FAKE_ENTER(FAKE_STREAM_CTX, 0, 0);
    *out = fake.stream_context;
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out)
{
    (void)stream;
    FAKE_ENTER(FAKE_CAPTURING, 0, 0);
    *out = fake.capturing;
    return CUDA_SUCCESS;
}

/* Unknown memory: success and defaults. */
static CUresult fake_cuPointerGetAttributes(unsigned n, CUpointer_attribute *what, void **out,
                                            CUdeviceptr pointer)
{
    const void *p = (const void *)(uintptr_t)pointer;
    FAKE_ENTER(FAKE_POINTER, p, 0);
    bool device = fake_is_in(&fake.device, 1, p),
         host = fake_is_pinned(p) || fake_is_in(&fake.registered, 1, p);
    for (unsigned i = 0; i < n; i++)
        switch (what[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned *)out[i] = device ? CU_MEMORYTYPE_DEVICE : host ? CU_MEMORYTYPE_HOST : 0;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *(unsigned char *)out[i] = device && fake.managed;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)out[i] = device ? fake.ordinal : -2;
            break;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            *(unsigned char *)out[i] = device && fake.sync_memops;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(const void **)out[i] = device ? fake.device.start : NULL;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)out[i] = device ? (size_t)(fake.device.end - fake.device.start) : 0;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    return CUDA_SUCCESS;
}

static CUresult fake_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    FAKE_ENTER(FAKE_EXCHANGE, 0, 0);
    CUstreamCaptureMode old = fake.mode;
    fake.mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    FAKE_ENTER(FAKE_EVENT_CREATE, 0, 0);
    *out = (CUevent)(uintptr_t)(0x10000 + 16 * ++fake.events_made);
    fake.events_alive++;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    FAKE_ENTER(FAKE_EVENT_DESTROY, event, 0);
    fake.events_alive--;
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    FAKE_ENTER(FAKE_EVENT_RECORD, event, 0);
    fake_queue((struct fake_op){stream, NULL, NULL, 0, event, false, false});
    return CUDA_SUCCESS;
}

/* "If cuEventRecord() has not been called, returns at once" (CUDA driver API). */
static CUresult fake_cuEventSynchronize(CUevent event)
{
    FAKE_ENTER(FAKE_EVENT_SYNC, event, 0);
    for (int i = fake.op_count - 1; i >= 0; i--)
        if (fake.ops[i].event == event) {
            fake_run_stream(fake.ops[i].stream, i);
            break;
        }
    return CUDA_SUCCESS;
}

/* As late as it may be: done only when something has waited for it. */
static CUresult fake_cuEventQuery(CUevent event)
{
    FAKE_ENTER(FAKE_EVENT_QUERY, event, 0);
    for (int i = fake.op_count - 1; i >= 0; i--)
        if (fake.ops[i].event == event)
            return fake.ops[i].done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    (void)stream, (void)function, (void)data;
    return CUDA_SUCCESS; /* what it writes is queued with fake_queue_write */
}

static CUresult fake_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                    unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                    CUstream stream, void **arguments, void **extra)
{
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)stream, (void)arguments, (void)extra;
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamSynchronize(CUstream stream)
{
    FAKE_ENTER(FAKE_STREAM_SYNC, stream, 0);
    fake_run_stream(stream, fake.op_count);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemHostRegister(void *p, size_t n, unsigned flags)
{
    (void)flags;
    FAKE_ENTER(FAKE_REGISTER, p, n);
    for (int i = 0; i < FAKE_RANGES; i++)
        if (!fake.pinned[i].start) {
            fake.pinned[i] = (struct fake_range){p, (uint8_t *)p + n};
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_cuMemHostUnregister(void *p)
{
    FAKE_ENTER(FAKE_UNREGISTER, p, 0);
    for (int i = 0; i < FAKE_RANGES; i++)
        if (fake.pinned[i].start == p) {
            fake.pinned[i].start = NULL;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t n, CUstream stream)
{
    bool pinned = fake_is_pinned(src);
    FAKE_ENTER(pinned ? FAKE_SEND : FAKE_FORWARD, src, n);
    if (pinned) {
        void (*act)(void) = fake.on_send;
        fake.on_send = NULL;
        fake_queue((struct fake_op){stream, (void *)(uintptr_t)dst, src, n, NULL, false, false});
        if (fake.count[FAKE_SEND] == fake.corrupt_send)
            *(uint8_t *)(uintptr_t)src ^= 1;
        if (act)
            act();
        return CUDA_SUCCESS;
    }
    fake_run_stream(stream, fake.op_count); /* pageable: the driver waits, stages and returns */
    memcpy((void *)(uintptr_t)dst, src, n);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t n)
{
    FAKE_ENTER(FAKE_FORWARD, src, n);
    fake_run_stream(NULL, fake.op_count);
    memcpy((void *)(uintptr_t)dst, src, n);
    return CUDA_SUCCESS;
}

/* Read when something waits for it, like the sends. */
static CUresult fake_cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t n, CUstream stream)
{
    FAKE_ENTER(FAKE_READ, src, n);
    fake_queue((struct fake_op){stream, dst, (const void *)(uintptr_t)src, n, NULL, false, false});
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemHostAlloc(void **p, size_t n, unsigned flags)
{
    (void)n, (void)flags;
    FAKE_ENTER(FAKE_HOST_ALLOC, 0, n);
    *p = (void *)0x7f0000001000;
    return CUDA_SUCCESS;
}

/* A driver that has just been loaded, with one primary context. */
static void fake_begin(CUcontext context)
{
    memset(&fake, 0, sizeof fake);
    fake.context = fake.primary = fake.stream_context = context;
    fake.fail_call = fake.failed = FAKE_CALLS;
    fake.error = CUDA_ERROR_UNKNOWN;
    fake.mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    gb_driver = (struct gb_driver_api){
        .cuCtxGetCurrent = fake_cuCtxGetCurrent,
        .cuCtxGetDevice = fake_cuCtxGetDevice,
        .cuDeviceGetAttribute = fake_cuDeviceGetAttribute,
        .cuDevicePrimaryCtxGetState = fake_cuDevicePrimaryCtxGetState,
        .cuDevicePrimaryCtxRetain = fake_cuDevicePrimaryCtxRetain,
        .cuEventCreate = fake_cuEventCreate,
        .cuEventDestroy_v2 = fake_cuEventDestroy,
        .cuPointerGetAttributes = fake_cuPointerGetAttributes,
        .cuStreamGetCtx = fake_cuStreamGetCtx,
        .cuStreamIsCapturing = fake_cuStreamIsCapturing,
        .cuThreadExchangeStreamCaptureMode = fake_cuThreadExchangeStreamCaptureMode,
    };
    gb_real.f.cuDevicePrimaryCtxRelease_v2 = fake_cuDevicePrimaryCtxRelease;
    gb_real.f.cuEventRecord = fake_cuEventRecord;
    gb_real.f.cuEventSynchronize = fake_cuEventSynchronize;
    gb_real.f.cuEventQuery = fake_cuEventQuery;
    gb_real.f.cuLaunchKernel = fake_cuLaunchKernel;
    gb_real.f.cuLaunchHostFunc = fake_cuLaunchHostFunc;
    gb_real.f.cuStreamSynchronize = fake_cuStreamSynchronize;
    gb_real.f.cuMemHostRegister_v2 = fake_cuMemHostRegister;
    gb_real.f.cuMemHostUnregister = fake_cuMemHostUnregister;
    gb_real.f.cuMemcpyHtoDAsync_v2 = fake_cuMemcpyHtoDAsync;
    gb_real.f.cuMemcpyDtoHAsync_v2 = fake_cuMemcpyDtoHAsync;
    gb_real.f.cuMemcpyHtoD_v2 = fake_cuMemcpyHtoD;
    gb_real.f.cuMemHostAlloc = fake_cuMemHostAlloc;
}

#endif
