/* stream.c: streams, events, host functions and capture, one to one onto the driver.
 *
 * Runtime streams, events and graphs are the driver's handles; NULL is the legacy stream, since
 * PyTorch is built without per-thread default streams.
 * Thread rule: none of its own. Failure rule: the driver's error.
 */
#include "runtime.h"

#include <stdlib.h>

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamCreate");
    RT_FORWARD(cuStreamCreate, stream, CU_STREAM_DEFAULT);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamCreateWithFlags(flags=%u)", flags);
    RT_FORWARD(cuStreamCreate, stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamCreateWithPriority(flags=%u, priority=%d)", flags,
             priority);
    RT_FORWARD(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamDestroy(%p)", (void *)stream);
    RT_FORWARD(cuStreamDestroy, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamSynchronize(%p)", (void *)stream);
    RT_FORWARD(cuStreamSynchronize, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamQuery(%p)", (void *)stream);
    RT_FORWARD(cuStreamQuery, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamWaitEvent(%p, %p)", (void *)stream, (void *)event);
    RT_FORWARD(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamGetPriority(%p)", (void *)stream);
    RT_FORWARD(cuStreamGetPriority, stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamGetFlags(%p)", (void *)stream);
    RT_FORWARD(cuStreamGetFlags, stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamGetId(%p)", (void *)stream);
    RT_FORWARD(cuStreamGetId, stream, id);
}

/* --- host functions --- */

struct callback {
    cudaStreamCallback_t function;
    void *data;
};

static void run_callback(CUstream stream, CUresult status, void *data)
{
    struct callback call = *(struct callback *)data;
    free(data);
    call.function(stream, rt_translate(status), call.data);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data,
                                  unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamAddCallback(%p)", (void *)stream);
    struct callback *call = malloc(sizeof(*call));
    if (!call)
        RT_RETURN(cudaErrorMemoryAllocation);
    *call = (struct callback){function, data};
    cudaError_t error = RT_CALL(cuStreamAddCallback, stream, run_callback, call, flags);
    if (error != cudaSuccess)
        free(call);
    RT_RETURN(error);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaLaunchHostFunc(%p)", (void *)stream);
    RT_FORWARD(cuLaunchHostFunc, stream, function, data);
}

/* --- events --- */

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventCreate");
    RT_FORWARD(cuEventCreate, event, CU_EVENT_DEFAULT);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventCreateWithFlags(flags=%u)", flags);
    RT_FORWARD(cuEventCreate, event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventDestroy(%p)", (void *)event);
    RT_FORWARD(cuEventDestroy, event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventRecord(%p, %p)", (void *)event, (void *)stream);
    RT_FORWARD(cuEventRecord, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventRecordWithFlags(%p, %p, %u)", (void *)event,
             (void *)stream, flags);
    RT_FORWARD(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventQuery(%p)", (void *)event);
    RT_FORWARD(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventSynchronize(%p)", (void *)event);
    RT_FORWARD(cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaEventElapsedTime(%p, %p)", (void *)start, (void *)end);
    RT_FORWARD(cuEventElapsedTime, ms, start, end);
}

/* --- capture --- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamBeginCapture(%p, mode=%d)", (void *)stream, (int)mode);
    RT_FORWARD(cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamEndCapture(%p)", (void *)stream);
    RT_FORWARD(cuStreamEndCapture, stream, graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamIsCapturing(%p)", (void *)stream);
    RT_FORWARD(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)status);
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies, size_t *count)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamGetCaptureInfo_v2(%p)", (void *)stream);
    cuuint64_t sequence = 0;
    const CUgraphEdgeData *edges = NULL;
    cudaError_t error =
        RT_CALL(cuStreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)status, &sequence, graph,
                dependencies, dependencies ? &edges : NULL, count);
    if (id)
        *id = sequence;
    RT_RETURN(error);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                size_t count, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaStreamUpdateCaptureDependencies(%p)", (void *)stream);
    RT_FORWARD(cuStreamUpdateCaptureDependencies, stream, nodes, NULL, count, flags);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaThreadExchangeStreamCaptureMode(%d)", (int)*mode);
    RT_FORWARD(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}
