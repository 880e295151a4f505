/* broken.c: a library with the faults that the oracle is there to find. BROKEN=early: a pageable
 * copy returns before its stream's earlier work and its own bytes are done. BROKEN=late: its source
 * is read when the stream gets there, though the program may have changed it by then.
 *
 * Preloaded by test_oracle.py; never a part of the product.
 * Thread rule: any thread. Failure rule: what is not a large pageable copy is left alone.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct late {
    void *pinned;
    const void *source;
    size_t bytes;
};

static void CUDA_CB read_late(void *data)
{
    struct late *late = data;
    memcpy(late->pinned, late->source, late->bytes);
    free(late);
}

static bool is_ours(const void *source, size_t bytes, CUstream stream)
{
    unsigned type;
    CUstreamCaptureStatus status;
    return bytes > 65536 && cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE &&
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)source) !=
               CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    static CUresult (*real)(CUdeviceptr, const void *, size_t, CUstream);
    const char *how = getenv("BROKEN");
    void *pinned;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "cuMemcpyHtoDAsync_v2");
    if (!how || !is_ours(from, bytes, stream) || cuMemHostAlloc(&pinned, bytes, 0) != CUDA_SUCCESS)
        return real(to, from, bytes, stream);
    if (strcmp(how, "early") == 0) {
        memcpy(pinned, from, bytes);
    } else {
        struct late *late = malloc(sizeof(*late));
        *late = (struct late){pinned, from, bytes};
        cuLaunchHostFunc(stream, read_late, late);
    }
    return real(to, pinned, bytes, stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    static cudaError_t (*real)(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "cudaMemcpyAsync");
    if (kind != cudaMemcpyHostToDevice)
        return real(to, from, bytes, kind, stream);
    return (cudaError_t)cuMemcpyHtoDAsync((CUdeviceptr)to, from, bytes, stream);
}
