/* stream.c: streams and host functions.
 *
 * Waiting for or asking about a capturing stream is illegal and breaks its capture (CUDA
 * Programming Guide, "Prohibited and unhandled operations").
 * Thread rule: sim_lock. Failure rule: an unknown handle answers INVALID_HANDLE.
 */
#include "entry.h"

#include "../engine/shared.h"

CUresult drv_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    if (!stream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    int clamped = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    struct sim_stream *made = sim_stream_new(sim_current(), flags, clamped);
    *stream = (CUstream)made;
    return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult drv_cuStreamCreate(CUstream *stream, unsigned flags)
{
    return drv_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult drv_cuStreamDestroy_v2(CUstream handle)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream || (uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD ||
        stream == stream->context->legacy)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_stream_end(stream);
    return CUDA_SUCCESS;
}

/* --- what a stream is --- */

CUresult drv_cuStreamGetPriority(CUstream handle, int *priority)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamGetId(CUstream handle, unsigned long long *id)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *context = (CUcontext)stream->context;
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *device = stream->context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamGetAttribute(CUstream handle, CUstreamAttrID name, CUstreamAttrValue_v1 *value)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *value = (CUstreamAttrValue_v1){0};
    if (name == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = stream->priority;
    return CUDA_SUCCESS;
}

/* Kept without effect: nothing modelled depends on an attribute. */
CUresult drv_cuStreamSetAttribute(CUstream handle, CUstreamAttrID name,
                                  const CUstreamAttrValue_v1 *value)
{
    (void)name, (void)value;
    return sim_stream_of(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* --- waiting and asking --- */

static CUresult may_look_at(struct sim_stream *stream)
{
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        sim_capture_fail(stream->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return sim_capture_allows_stream(stream);
}

CUresult drv_cuStreamQuery(CUstream handle)
{
    struct sim_stream *stream = sim_stream_of(handle);
    CUresult result = may_look_at(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sim_query_op(sim_stream_pending(stream)))
        return CUDA_ERROR_NOT_READY;
    return stream->context->sticky;
}

CUresult drv_cuStreamSynchronize(CUstream handle)
{
    struct sim_stream *stream = sim_stream_of(handle);
    CUresult result = may_look_at(stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct sim_context *context = stream->context;
    sim_wait_stream(stream);
    return context->sticky;
}

CUresult drv_cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags)
{
    struct sim_stream *stream = sim_stream_of(handle);
    struct sim_event *event = sim_event_of(event_handle);
    if (!stream || !event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_WAIT_EXTERNAL && stream->capture)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (stream->capture || event->capture)
        return sim_capture_wait(stream, event);
    if (!event->op && event->mark)
        return sim_enqueue(stream, sim_mark_wait(event), NULL);
    if (!event->op || event->op->state == SIM_DONE)
        return sim_capture_allows_stream(stream);
    struct sim_op *wait = sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0);
    sim_op_after(wait, event->op);
    return sim_enqueue(stream, wait, NULL);
}

/* --- host functions --- */

CUresult drv_cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_op *op = sim_op_new(SIM_OP_HOST, SIM_NO_UNIT, 0);
    op->host.function = function;
    op->host.data = data;
    return sim_enqueue(stream, op, NULL);
}

CUresult drv_cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data,
                                 unsigned flags)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return may_look_at(stream); /* not part of a capture */
    struct sim_op *op = sim_op_new(SIM_OP_HOST, SIM_NO_UNIT, 0);
    op->host.callback = callback;
    op->host.stream = handle;
    op->host.data = data;
    return sim_enqueue(stream, op, NULL);
}

CUresult drv_cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes,
                                    unsigned flags)
{
    (void)bytes, (void)flags;
    struct sim_range range;
    if (!sim_stream_of(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_memory_find(address, &range) && range.kind == SIM_MANAGED ? CUDA_SUCCESS
                                                                         : CUDA_ERROR_INVALID_VALUE;
}
