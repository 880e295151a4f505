/* null_runtime.c: a libcudart.so.12 that only calls the driver, as the real one does: a program's
 * call passes the runtime's hook and, inside it, the driver's. */
#include "null_cuda.h"

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    (void)kind;
    return cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
}

int cudaStreamSynchronize(void *stream)
{
    return cuStreamSynchronize(stream);
}
