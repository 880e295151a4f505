/* per_thread.c: the _ptsz and _ptds twins that code built with per-thread default streams imports.
 *
 * Stream 0 means the calling thread's stream there; a synchronous copy waits for that stream only
 * (CUDA Runtime API, "Stream synchronization behavior").
 * Thread rule: none of its own. Failure rule: that of the plain call.
 */
#include "runtime.h"

static cudaStream_t own(cudaStream_t stream)
{
    return stream ? stream : cudaStreamPerThread;
}

static cudaError_t finish(cudaError_t queued)
{
    return queued == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : queued;
}

#define TWIN(name, parameters, call)                                                               \
    __attribute__((visibility("default"))) cudaError_t name parameters;                            \
    cudaError_t name parameters                                                                    \
    {                                                                                              \
        return call;                                                                               \
    }

TWIN(cudaMemcpyAsync_ptsz,
     (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
     cudaMemcpyAsync(dst, src, bytes, kind, own(stream)))
TWIN(cudaMemcpy2DAsync_ptsz,
     (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
      enum cudaMemcpyKind kind, cudaStream_t stream),
     cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, kind, own(stream)))
TWIN(cudaMemcpyBatchAsync_ptsz,
     (void **dsts, void **srcs, size_t *sizes, size_t count,
      struct cudaMemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
      size_t *fail_index, cudaStream_t stream),
     cudaMemcpyBatchAsync(dsts, srcs, sizes, count, attributes, indices, attribute_count,
                          fail_index, own(stream)))
TWIN(cudaMemcpy_ptds, (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind),
     finish(cudaMemcpyAsync(dst, src, bytes, kind, cudaStreamPerThread)))
TWIN(cudaMemcpy2D_ptds,
     (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
      enum cudaMemcpyKind kind),
     finish(cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, kind,
                              cudaStreamPerThread)))
TWIN(cudaMemset_ptds, (void *pointer, int value, size_t bytes),
     cudaMemsetAsync(pointer, value, bytes, cudaStreamPerThread))
TWIN(cudaMemsetAsync_ptsz, (void *pointer, int value, size_t bytes, cudaStream_t stream),
     cudaMemsetAsync(pointer, value, bytes, own(stream)))
TWIN(cudaMemset2D_ptds, (void *pointer, size_t pitch, int value, size_t width, size_t height),
     cudaMemset2DAsync(pointer, pitch, value, width, height, cudaStreamPerThread))
TWIN(cudaMemset2DAsync_ptsz,
     (void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
     cudaMemset2DAsync(pointer, pitch, value, width, height, own(stream)))
TWIN(cudaMallocAsync_ptsz, (void **pointer, size_t bytes, cudaStream_t stream),
     cudaMallocAsync(pointer, bytes, own(stream)))
TWIN(cudaFreeAsync_ptsz, (void *pointer, cudaStream_t stream), cudaFreeAsync(pointer, own(stream)))
TWIN(cudaStreamSynchronize_ptsz, (cudaStream_t stream), cudaStreamSynchronize(own(stream)))
TWIN(cudaStreamQuery_ptsz, (cudaStream_t stream), cudaStreamQuery(own(stream)))
TWIN(cudaStreamWaitEvent_ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
     cudaStreamWaitEvent(own(stream), event, flags))
TWIN(cudaStreamAddCallback_ptsz,
     (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned int flags),
     cudaStreamAddCallback(own(stream), function, data, flags))
TWIN(cudaStreamGetPriority_ptsz, (cudaStream_t stream, int *priority),
     cudaStreamGetPriority(own(stream), priority))
TWIN(cudaStreamGetFlags_ptsz, (cudaStream_t stream, unsigned int *flags),
     cudaStreamGetFlags(own(stream), flags))
TWIN(cudaStreamGetId_ptsz, (cudaStream_t stream, unsigned long long *id),
     cudaStreamGetId(own(stream), id))
TWIN(cudaStreamBeginCapture_ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
     cudaStreamBeginCapture(own(stream), mode))
TWIN(cudaStreamEndCapture_ptsz, (cudaStream_t stream, cudaGraph_t *graph),
     cudaStreamEndCapture(own(stream), graph))
TWIN(cudaStreamIsCapturing_ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
     cudaStreamIsCapturing(own(stream), status))
TWIN(cudaEventRecord_ptsz, (cudaEvent_t event, cudaStream_t stream),
     cudaEventRecord(event, own(stream)))
TWIN(cudaEventRecordWithFlags_ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
     cudaEventRecordWithFlags(event, own(stream), flags))
TWIN(cudaGraphLaunch_ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
     cudaGraphLaunch(exec, own(stream)))
TWIN(cudaLaunchHostFunc_ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data),
     cudaLaunchHostFunc(own(stream), function, data))
TWIN(cudaLaunchKernel_ptsz,
     (const void *host_function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
      cudaStream_t stream),
     cudaLaunchKernel(host_function, grid, block, arguments, shared_bytes, own(stream)))
TWIN(cudaLaunchCooperativeKernel_ptsz,
     (const void *host_function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
      cudaStream_t stream),
     cudaLaunchCooperativeKernel(host_function, grid, block, arguments, shared_bytes, own(stream)))
TWIN(cudaLaunchKernelExC_ptsz,
     (const cudaLaunchConfig_t *config, const void *host_function, void **arguments),
     cudaLaunchKernelExC(&(cudaLaunchConfig_t){.gridDim = config->gridDim,
                                               .blockDim = config->blockDim,
                                               .dynamicSmemBytes = config->dynamicSmemBytes,
                                               .stream = own(config->stream),
                                               .attrs = config->attrs,
                                               .numAttrs = config->numAttrs},
                         host_function, arguments))
TWIN(cudaGetDriverEntryPoint_ptsz,
     (const char *symbol, void **function, unsigned long long flags,
      enum cudaDriverEntryPointQueryResult *found),
     cudaGetDriverEntryPoint(symbol, function, flags ? flags : cudaEnablePerThreadDefaultStream,
                             found))
