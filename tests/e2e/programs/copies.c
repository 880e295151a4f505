/* copies.c: a CUDA program in C: 40 pageable copies there and back. */
#include "check.h"

#include <cuda_runtime_api.h>

#define BYTES (1 << 18)

int main(void)
{
    static unsigned char source[BYTES], back[BYTES];
    void *device;
    CHECK(cudaMalloc(&device, BYTES) == cudaSuccess);
    for (int i = 0; i < 40; i++) {
        memset(source, i, BYTES);
        CHECK(cudaMemcpy(device, source, BYTES, cudaMemcpyHostToDevice) == cudaSuccess);
        CHECK(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess);
        CHECK(memcmp(back, source, BYTES) == 0, "copy %d", i);
    }
    puts("copied 40");
    return 0;
}
