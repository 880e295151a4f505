/* captures.c: four threads copy from pageable memory while a fifth opens and closes stream captures
 * in all three modes, as many as the first argument says. No capture may fail, no byte be wrong.
 *
 * Every thread has allocated before the first capture begins: cudaMalloc is refused, and ends the
 * capture, while another thread holds a global one open (CUDA driver API,
 * cuThreadExchangeStreamCaptureMode). */
#include "check.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#define THREADS 4
#define BYTES   (200u << 10)

static pthread_barrier_t allocated;
static int stop;
static uint64_t copied;

static void *copies(void *arg)
{
    unsigned char *source = malloc(BYTES), *back = malloc(BYTES),
                  value = (unsigned char)(uintptr_t)arg;
    void *target;
    cudaStream_t stream;
    uintptr_t wrong = 0;
    CHECK(cudaMalloc(&target, BYTES) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    pthread_barrier_wait(&allocated);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        memset(source, value++, BYTES);
        CHECK(cudaMemcpyAsync(target, source, BYTES, cudaMemcpyHostToDevice, stream) ==
              cudaSuccess);
        memset(source, 0x55, BYTES);
        CHECK(cudaMemcpyAsync(back, target, BYTES, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
        wrong += back[0] != (unsigned char)(value - 1) || memcmp(back, back + 1, BYTES - 1) != 0;
        __atomic_fetch_add(&copied, 1, __ATOMIC_RELAXED);
    }
    return (void *)wrong;
}

static int captures(int count)
{
    static const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal,
                                                       cudaStreamCaptureModeThreadLocal,
                                                       cudaStreamCaptureModeRelaxed};
    cudaStream_t stream;
    void *memory;
    int failed = 0;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaMalloc(&memory, BYTES) == cudaSuccess);
    for (int i = 0; i < count; i++) {
        cudaGraph_t graph = NULL;
        bool ok = cudaStreamBeginCapture(stream, modes[i % 3]) == cudaSuccess &&
                  cudaMemsetAsync(memory, i, BYTES, stream) == cudaSuccess;
        failed += cudaStreamEndCapture(stream, &graph) != cudaSuccess || !ok || !graph;
        if (graph)
            CHECK(cudaGraphDestroy(graph) == cudaSuccess);
        usleep(300); /* most copies are made outside of captures, and some across their begin */
    }
    return failed;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uintptr_t wrong = 0;
    CHECK(argc == 2);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(pthread_barrier_init(&allocated, NULL, THREADS + 1) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, copies, (void *)(i * 50)) == 0);
    pthread_barrier_wait(&allocated);
    while (__atomic_load_n(&copied, __ATOMIC_RELAXED) < 10 * THREADS) {
    }
    int failed = captures(atoi(argv[1]));
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (uintptr_t)result;
    }
    printf("%d captures failed, %d copies wrong\n", failed, (int)wrong);
    return 0;
}
