/* hook_cost.c: ns per call of five CUDA calls, against libraries that do nothing.
 *
 *   hook_cost CALLS BURSTS
 *
 * One line per call: its name and the fastest of BURSTS bursts of CALLS calls. The program knows
 * nothing of gpuboost: overhead.py runs it with and without the library. It has no Python frames,
 * so what a stack costs comes on top (stack_cost.py).
 */
#include "null_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static char context, events[1], streams[2], device[4096], host[4096];

static void launch(long i)
{
    (void)i;
    cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, &streams[0], 0, 0);
}

static void launch_alternating(long i)
{
    cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, &streams[i & 1], 0, 0);
}

static void event_record(long i)
{
    (void)i;
    cuEventRecord(&events[0], &streams[0]);
}

static void copy_4k(long i)
{
    (void)i;
    cudaMemcpyAsync(device, host, sizeof host, HOST_TO_DEVICE, &streams[0]);
}

static void sync_idle(long i)
{
    (void)i;
    cudaStreamSynchronize(&streams[0]);
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Inlined into each burst, so that no indirect call is timed. */
__attribute__((always_inline)) static inline void time_call(const char *name, void (*call)(long),
                                                            long calls, int bursts)
{
    double best_ns = 1e18;
    for (int burst = 0; burst < bursts; burst++) {
        double start_ns = now_ns();
        for (long i = 0; i < calls; i++)
            call(i);
        double took_ns = now_ns() - start_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    printf("%s %.4f\n", name, best_ns / (double)calls);
}

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 200000;
    int bursts = argc > 2 ? atoi(argv[2]) : 5;
    cuCtxSetCurrent(&context);
    launch(0); /* the library arms here */
    time_call("launch", launch, calls, bursts);
    time_call("launch_alternating", launch_alternating, calls, bursts);
    time_call("event_record", event_record, calls, bursts);
    time_call("copy_4k", copy_4k, calls, bursts);
    time_call("sync_idle", sync_idle, calls, bursts);
    return 0;
}
