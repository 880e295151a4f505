/* thread_copies.c: four threads copy to the GPU at once, in the form and on the stream that the
 * first argument names; every source is overwritten and freed as soon as the call returns. The
 * target is filled on the same stream just before, so that a copy that overtakes is seen too. */
#include "check.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>

#define THREADS    4
#define COPIES     60
#define MOST_BYTES (4u << 20)

extern cudaError_t cudaMemcpyAsync_ptsz(void *, const void *, size_t, enum cudaMemcpyKind,
                                        cudaStream_t);
extern cudaError_t cudaMemcpy_ptds(void *, const void *, size_t, enum cudaMemcpyKind);

typedef cudaError_t copy_fn(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);

static cudaError_t copy_sync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                             cudaStream_t stream)
{
    return cudaMemcpy(to, from, bytes, kind);
}

static cudaError_t copy_sync_thread(void *to, const void *from, size_t bytes,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return cudaMemcpy_ptds(to, from, bytes, kind);
}

enum stream { LEGACY, OF_THREAD, BLOCKING, NON_BLOCKING };

static const struct form {
    const char *name;
    copy_fn *copy;
    enum stream stream;
    enum cudaMemcpyKind up, down;
} forms[] = {
    {"sync", copy_sync, LEGACY, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost},
    {"sync_default_kind", copy_sync, LEGACY, cudaMemcpyDefault, cudaMemcpyDefault},
    {"sync_of_thread", copy_sync_thread, OF_THREAD, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost},
    {"async_legacy", cudaMemcpyAsync, LEGACY, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost},
    {"async_stream", cudaMemcpyAsync, BLOCKING, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost},
    {"async_non_blocking", cudaMemcpyAsync, NON_BLOCKING, cudaMemcpyHostToDevice,
     cudaMemcpyDeviceToHost},
    {"async_default_kind", cudaMemcpyAsync, NON_BLOCKING, cudaMemcpyDefault, cudaMemcpyDefault},
    {"async_of_thread", cudaMemcpyAsync, OF_THREAD, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost},
    {"async_variant", cudaMemcpyAsync_ptsz, OF_THREAD, cudaMemcpyHostToDevice,
     cudaMemcpyDeviceToHost},
};

static const struct form *form;

static uint32_t next_random(uint32_t *state)
{
    return *state = *state * 1664525 + 1013904223;
}

static void fill(uint32_t *words, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes / 4 + 1; i++)
        words[i] = next_random(&seed);
}

static cudaStream_t make_stream(void)
{
    cudaStream_t stream = NULL;
    if (form->stream == OF_THREAD)
        return cudaStreamPerThread;
    if (form->stream != LEGACY)
        CHECK(cudaStreamCreateWithFlags(&stream, form->stream == BLOCKING
                                                     ? cudaStreamDefault
                                                     : cudaStreamNonBlocking) == cudaSuccess);
    return stream;
}

static bool arrives(void *target, void *expected, void *back, size_t bytes, uint32_t seed,
                    cudaStream_t stream)
{
    void *source = malloc(bytes + 4);
    fill(source, bytes, seed);
    fill(expected, bytes, seed);
    CHECK(cudaMemsetAsync(target, 0xee, bytes, stream) == cudaSuccess);
    CHECK(form->copy(target, source, bytes, form->up, stream) == cudaSuccess);
    memset(source, 0x55, bytes);
    free(source);
    CHECK(form->copy(back, target, bytes, form->down, stream) == cudaSuccess);
    return memcmp(back, expected, bytes) == 0;
}

static void *copies(void *arg)
{
    uint32_t state = (uint32_t)(uintptr_t)arg;
    void *target, *expected = malloc(MOST_BYTES + 4), *back = malloc(MOST_BYTES);
    uintptr_t wrong = 0;
    CHECK(cudaMalloc(&target, MOST_BYTES) == cudaSuccess);
    cudaStream_t stream = make_stream();
    for (int i = 0; i < COPIES; i++) {
        double share = next_random(&state) / 4294967296.0;
        size_t bytes = (size_t)exp(share * log(MOST_BYTES));
        wrong += !arrives(target, expected, back, bytes, state, stream);
    }
    CHECK(cudaFree(target) == cudaSuccess);
    free(expected);
    free(back);
    return (void *)wrong;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uintptr_t wrong = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (argc > 2 && strcmp(forms[i].name, argv[1]) == 0)
            form = &forms[i];
    CHECK(form, "no such form: %s", argc > 1 ? argv[1] : "(none)");
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, copies, (void *)(i + 1000 * atoi(argv[2]))) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (uintptr_t)result;
    }
    printf("%d copies, %d wrong\n", THREADS * COPIES, (int)wrong);
    return 0;
}
