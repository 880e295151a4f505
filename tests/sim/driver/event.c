/* event.c: events. An event refers to a mark in a stream; recording again moves it.
 *
 * Thread rule: sim_lock. Failure rule: as documented for cuEvent* in the CUDA Driver API; an event
 * that was last recorded in a capture may not be asked or waited for.
 */
#include "entry.h"

#include "../engine/shared.h"

#include <stdlib.h>

#define RESOLUTION_NS 500 /* "a resolution of around 0.5 microseconds", cuEventElapsedTime */

CUresult drv_cuEventCreate(CUevent *event, unsigned flags)
{
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    bool bad = (flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING);
    if (!event || (flags & ~known) || bad)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_event *made = sim_event_new(sim_current(), flags);
    *event = (CUevent)made;
    return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult drv_cuEventDestroy_v2(CUevent handle)
{
    struct sim_event *event = sim_event_of(handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_event_end(event);
    return CUDA_SUCCESS;
}

static void forget_capture(struct sim_event *event)
{
    free(event->capture_nodes);
    event->capture_nodes = NULL;
    event->capture = NULL;
}

CUresult drv_cuEventRecordWithFlags(CUevent event_handle, CUstream stream_handle, unsigned flags)
{
    struct sim_stream *stream = sim_stream_of(stream_handle);
    struct sim_event *event = sim_event_of(event_handle);
    if (!stream || !event || stream->context != event->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return sim_capture_record(stream, event, flags & CU_EVENT_RECORD_EXTERNAL);
    struct sim_op *mark;
    struct sim_op *op =
        event->mark ? sim_mark_record(event) : sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0);
    uint64_t records = event->mark ? op->write.value : 0;
    CUresult result = sim_enqueue(stream, op, &mark);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->mark)
        event->mark->recorded = records;
    if (event->op)
        sim_op_drop(event->op);
    event->op = mark;
    event->recorded = true;
    forget_capture(event);
    return CUDA_SUCCESS;
}

CUresult drv_cuEventRecord(CUevent event, CUstream stream)
{
    return drv_cuEventRecordWithFlags(event, stream, 0);
}

static CUresult may_look_at(const struct sim_event *event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    return event->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

CUresult drv_cuEventQuery(CUevent handle)
{
    struct sim_event *event = sim_event_of(handle);
    CUresult result = may_look_at(event);
    if (result != CUDA_SUCCESS)
        return result;
    if (!event->op && event->mark)
        return sim_mark_done(event, event->mark->recorded) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    return sim_query_op(event->op) ? event->context->sticky : CUDA_ERROR_NOT_READY;
}

CUresult drv_cuEventSynchronize(CUevent handle)
{
    struct sim_event *event = sim_event_of(handle);
    CUresult result = may_look_at(event);
    if (result != CUDA_SUCCESS)
        return result;
    struct sim_context *context = event->context;
    if (event->op)
        sim_wait_op(event->op);
    else if (event->mark)
        sim_event_wait_for_others(event);
    return context->sticky;
}

CUresult drv_cuEventElapsedTime_v2(float *ms, CUevent start_handle, CUevent end_handle)
{
    struct sim_event *start = sim_event_of(start_handle), *end = sim_event_of(end_handle);
    CUresult result = may_look_at(start);
    if (result == CUDA_SUCCESS)
        result = may_look_at(end);
    if (result != CUDA_SUCCESS)
        return result;
    if (!start->op || !end->op || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) ||
        start->context->device != end->context->device)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!sim_query_op(start->op) || !sim_query_op(end->op))
        return CUDA_ERROR_NOT_READY;
    int64_t ticks =
        (int64_t)(end->op->end_ns / RESOLUTION_NS) - (int64_t)(start->op->end_ns / RESOLUTION_NS);
    *ms = (float)((double)ticks * RESOLUTION_NS / 1e6);
    return CUDA_SUCCESS;
}

CUresult drv_cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    return drv_cuEventElapsedTime_v2(ms, start, end);
}
