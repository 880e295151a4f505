/* fork.c: children of a process whose other threads are inside our hooks. Fake driver.
 *
 * A child may look up, call, fork, execute and exit; whatever it calls is forwarded as it was
 * called, since the pinned memory is its parent's. */
#include "check.h"
#include "fake/fake.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPY_BYTES (1 << 20)
#define CHILDREN   60

static CUdeviceptr device;
static int stop;

static void start(void)
{
    CUcontext context;
    CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
          cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(cuMemAlloc_v2(&device, COPY_BYTES) == CUDA_SUCCESS);
}

/* Was the copy handed to the driver with its own source? */
static bool is_forwarded(const char *source)
{
    fake_args.called = NULL;
    CHECK(cuMemcpyHtoDAsync_v2(device, source, COPY_BYTES, NULL) == CUDA_SUCCESS);
    return fake_args.called && strcmp(fake_args.called, "cuMemcpyHtoDAsync_v2") == 0 &&
           fake_args.slot[0] == device && fake_args.slot[1] == (uintptr_t)source;
}

static void *copy_on(void *arg)
{
    static char source[COPY_BYTES];
    start();
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        cuMemcpyHtoDAsync_v2(device, source, COPY_BYTES, NULL);
    return arg;
}

static void child(int way, const char *source)
{
    alarm(30); /* a lock that a thread of the parent had */
    for (int i = 0; i < 20; i++)
        CHECK(is_forwarded(source));
    CHECK(cuStreamSynchronize(NULL) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") && cuMemFree_v2(device) == CUDA_SUCCESS);
    int status = -1;
    switch (way % 4) {
    case 0:
        exit(0);
    case 1:
        _exit(0);
    case 2:
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    default:
        if (fork() == 0)
            exit(!is_forwarded(source));
        exit(wait(&status) < 0 || status);
    }
}

static void in_flight(void)
{
    static char source[COPY_BYTES];
    pthread_t threads[2];
    start();
    for (int i = 0; i < 100; i++)
        is_forwarded(source);
    CHECK(!is_forwarded(source), "nothing is staged: this shows nothing");
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, copy_on, NULL) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            child(i, source);
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child %d: %x", i, status);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* CUDA begins in the child, as in a launcher that forks its workers. */
static void before_cuda(void)
{
    int status = -1;
    if (fork() == 0) {
        start();
        CHECK(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        exit(0);
    }
    CHECK(wait(&status) > 0 && status == 0, "%x", status);
}

CHECK_MAIN({"in_flight", in_flight}, {"before_cuda", before_cuda})
