/* null_cuda.h: the CUDA entry points that hook_cost.c times, by their ABI.
 *
 * Types as in NVIDIA's headers of CUDA 12, with every handle and device address as a pointer, so
 * that the benchmark needs no CUDA headers.
 */
#ifndef NULL_CUDA_H
#define NULL_CUDA_H

#include <stddef.h>

enum { HOST_TO_DEVICE = 1 }; /* cudaMemcpyHostToDevice */

int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void *stream, void **parameters, void **extra);
int cuEventRecord(void *event, void *stream);
int cuStreamSynchronize(void *stream);
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream);

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamSynchronize(void *stream);

#endif
