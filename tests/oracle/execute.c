/* execute.c: runs a program: its threads take turns, and everything that was seen is hashed.
 *
 * Thread 0 is the caller; the others live as long as the process. At the end every memory is read
 * back, hashed and freed, and every handle destroyed.
 * Thread rule: a baton (one mutex); whoever has it runs. Failure rule: see oracle.h.
 */
#include "execute.h"

#include "gpusim.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct world world;

static const struct program *program;
static bool tracing;
static _Thread_local int device_now = -1;

/* --- one operation --- */

CUstream handle_of(const struct op *op)
{
    bool other_name = op->value & 1;
    if (op->stream <= LEGACY_1)
        return other_name ? CU_STREAM_LEGACY : NULL;
    if (op->stream < FIRST_MADE)
        return op->twin && other_name ? NULL : CU_STREAM_PER_THREAD;
    return world.streams[op->stream];
}

static unsigned device_of(const struct op *op)
{
    static const uint8_t by_device[] = {STREAM_CREATE, EVENT_CREATE, CONTEXT_SYNC, DEVICE_ALLOC,
                                        MEMORY_INFO};
    for (size_t i = 0; i < sizeof(by_device); i++)
        if (op->kind == by_device[i])
            return op->device;
    return op->stream_device;
}

static void use_device(unsigned device)
{
    if (device_now != (int)device && cudaSetDevice((int)device) != cudaSuccess)
        give_up("no device %u", device);
    device_now = (int)device;
}

static void run_stream_op(const struct op *op, struct result *result)
{
    CUstream handle = handle_of(op), *slot = &world.streams[op->stream];
    switch (op->kind) {
    case STREAM_CREATE:
        note(result, cuStreamCreate(slot, op->mode ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        world.turns[op->stream] = 0;
        break;
    case STREAM_DESTROY:
        note(result, op->form ? (int)cudaStreamDestroy(handle) : (int)cuStreamDestroy(handle));
        *slot = NULL;
        break;
    case STREAM_SYNC:
        note(result,
             op->form ? (int)cudaStreamSynchronize(handle) : (int)cuStreamSynchronize(handle));
        break;
    case STREAM_QUERY:
        note(result,
             op->form && !op->loose ? (int)cudaStreamQuery(handle) : (int)cuStreamQuery(handle));
        break;
    default:
        note(result, op->form ? (int)cudaDeviceSynchronize() : (int)cuCtxSynchronize());
    }
}

static void run_event_op(const struct op *op, struct result *result)
{
    CUevent *event = &world.events[op->event];
    CUstream stream = handle_of(op);
    float ms;
    switch (op->kind) {
    case EVENT_CREATE:
        note(result, cuEventCreate(event, op->mode ? CU_EVENT_DISABLE_TIMING : 0));
        break;
    case EVENT_DESTROY:
        note(result, cuEventDestroy(*event));
        *event = NULL;
        break;
    case EVENT_RECORD:
        note(result,
             op->form ? (int)cudaEventRecord(*event, stream) : (int)cuEventRecord(*event, stream));
        break;
    case EVENT_WAIT:
        note(result, op->form ? (int)cudaStreamWaitEvent(stream, *event, 0)
                              : (int)cuStreamWaitEvent(stream, *event, 0));
        break;
    case EVENT_SYNC:
        note(result,
             op->form ? (int)cudaEventSynchronize(*event) : (int)cuEventSynchronize(*event));
        break;
    case EVENT_QUERY:
        note(result,
             op->form && !op->loose ? (int)cudaEventQuery(*event) : (int)cuEventQuery(*event));
        break;
    default:
        note(result, cuEventElapsedTime(&ms, *event, world.events[op->event2]));
    }
}

static void run_op(uint32_t index)
{
    const struct op *op = &program->ops[index];
    struct result *result = &world.results[index];
    use_device(device_of(op));
    if (op->kind <= CONTEXT_SYNC)
        run_stream_op(op, result);
    else if (op->kind <= EVENT_ELAPSED)
        run_event_op(op, result);
    else if (op->kind == DEVICE_ALLOC)
        run_device_alloc(op, result);
    else if (op->kind == DEVICE_FREE)
        run_device_free(op, result);
    else if (op->kind <= HOST_READ)
        run_host_memory(op, result);
    else if (op->kind <= DEVICE_COPY)
        run_copy(op, result);
    else if (op->kind == DEVICE_FILL)
        run_fill(op, result);
    else if (op->kind == KERNEL)
        run_kernel(op, result);
    else if (op->kind == HOST_CALL || op->kind == HOLD)
        run_host_call(op, &world.calls[index], result);
    else if (op->kind == WRITE_VALUE)
        note(result,
             cuStreamWriteValue32(handle_of(op), world.blocks[op->out[0]].address + op->host_offset,
                                  op->value, 0));
    else if (op->kind == RELEASE)
        run_release(&program->ops[op->partner], &world.calls[op->partner]);
    else if (op->kind <= GRAPH_DESTROY)
        run_graph(op, result);
    else if (op->kind == WRONG)
        run_wrong(op, result);
    else
        run_question(op, result);
}

/* --- the threads --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed[THREADS] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER,
                                         PTHREAD_COND_INITIALIZER};
static unsigned turn;
static uint32_t next_op;

/* Runs what is this thread's, then hands the baton on. */
static void run_my_ops(unsigned me)
{
    for (; next_op < program->count; next_op++) {
        if (program->ops[next_op].kind == NOTHING)
            continue;
        if (program->ops[next_op].thread != me)
            break;
        run_op(next_op);
    }
    turn = next_op < program->count ? program->ops[next_op].thread : 0;
    if (turn != me)
        pthread_cond_signal(&passed[turn]);
}

static void *thread_loop(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (turn != me)
            pthread_cond_wait(&passed[me], &lock);
        run_my_ops(me);
    }
    return NULL;
}

static void run_ops(void)
{
    pthread_mutex_lock(&lock);
    turn = 0;
    next_op = 0;
    do {
        run_my_ops(0);
        while (turn != 0)
            pthread_cond_wait(&passed[0], &lock);
    } while (next_op < program->count);
    pthread_mutex_unlock(&lock);
}

/* --- begin and end --- */

#define WARM_UP_COPIES 24
#define WARM_UP_BYTES  200000

/* What a library does at a process's first copies is over then. */
static void warm_up(unsigned device)
{
    static char source[WARM_UP_BYTES];
    CUdeviceptr to;
    use_device(device);
    int code = cuMemAlloc(&to, WARM_UP_BYTES);
    for (int i = 0; code == 0 && i < WARM_UP_COPIES; i++)
        code = i % 2 ? (int)cuMemcpyHtoDAsync(to, source, WARM_UP_BYTES, NULL)
                     : (int)cudaMemcpy((void *)to, source, WARM_UP_BYTES, cudaMemcpyHostToDevice);
    if (code == 0)
        code = cuMemFree(to);
    if (code)
        give_up("warming up: %d", code);
}

void execute_start(void)
{
    pthread_t thread;
    mallopt(M_MMAP_THRESHOLD, 64 << 20); /* fresh pages cost more than the copies */
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    for (unsigned device = 0; device < 2; device++) {
        use_device(device);
        if (cuCtxGetCurrent(&world.contexts[device]) != CUDA_SUCCESS)
            give_up("no context");
    }
    for (unsigned device = 0; device < 2; device++) {
        use_device(device);
        if (cuCtxEnablePeerAccess(world.contexts[1 - device], 0) != CUDA_SUCCESS)
            give_up("no peer access");
        warm_up(device);
    }
    if (cuMemHostAlloc((void **)&world.gate, sizeof(*world.gate), 0))
        give_up("no page-locked memory");
    *world.gate = 0;
    for (uintptr_t me = 1; me < THREADS; me++)
        if (pthread_create(&thread, NULL, thread_loop, (void *)me) != 0)
            give_up("no thread");
    world.calls = calloc(OPS_MOST, sizeof(*world.calls));
    world.results = calloc(OPS_MOST, sizeof(*world.results));
    if (!world.calls || !world.results)
        give_up("out of memory");
}

static void begin(uint64_t adversary)
{
    memset(world.results, 0, program->count * sizeof(*world.results));
    memset(world.turns, 0, sizeof(world.turns));
    for (unsigned device = 0; device < 2; device++) {
        size_t total;
        use_device(device);
        if (cuMemGetInfo(&world.free_bytes[device], &total) != CUDA_SUCCESS)
            give_up("no memory info");
    }
    gpusim_reseed(adversary);
}

static uint64_t hash_block(uint64_t hash, unsigned block, struct result *result)
{
    static char buffer[4 << 20];
    const struct memory *memory = &world.blocks[block];
    const void *at = (const void *)memory->address;
    if (is_device_block(block)) {
        note(result, cuMemcpyDtoH(buffer, memory->address, memory->bytes));
        at = buffer;
    }
    uint64_t own = hash_bytes(block, at, memory->bytes);
    if (tracing)
        printf("end  block %u: %016lx\n", block, (unsigned long)own);
    return scramble(hash ^ own);
}

static void destroy_handles(struct result *result)
{
    for (unsigned g = 0; g < GRAPHS; g++)
        if (world.graphs[g])
            note(result, cuGraphExecDestroy(world.graphs[g]));
    for (unsigned e = 0; e < EVENTS; e++)
        if (world.events[e])
            note(result, cuEventDestroy(world.events[e]));
    for (unsigned s = FIRST_MADE; s < STREAMS; s++)
        if (world.streams[s])
            note(result, cuStreamDestroy(world.streams[s]));
    memset(world.graphs, 0, sizeof(world.graphs));
    memset(world.events, 0, sizeof(world.events));
    memset(world.streams, 0, sizeof(world.streams));
}

static uint64_t hash_results(void)
{
    uint64_t hash = program->count;
    for (uint32_t i = 0; i < program->count; i++) {
        const struct op *op = &program->ops[i];
        const struct result *result = &world.results[i];
        if (op->kind == NOTHING)
            continue;
        if (tracing) {
            op_print(op, i);
            printf(op->loose ? " = (free)\n" : " = %d %016lx\n", result->code,
                   (unsigned long)result->value);
        }
        if (!op->loose)
            hash = scramble(hash ^ (uint64_t)result->code ^ result->value * 31);
    }
    return hash;
}

static uint64_t end(void)
{
    struct result result = {0};
    for (unsigned device = 0; device < 2; device++) {
        use_device(device);
        note(&result, cuCtxSynchronize());
    }
    uint64_t hash = hash_results();
    for (unsigned b = 0; b < BLOCKS; b++)
        if (world.blocks[b].address) {
            hash = hash_block(hash, b, &result);
            free_block(b, &result);
        }
    destroy_handles(&result);
    note(&result, (int)cudaGetLastError());
    for (uint32_t i = 0; i < world.kept_count; i++)
        munmap(world.kept[i], world.kept_bytes[i]);
    world.kept_count = 0;
    if (tracing)
        printf("end  = %d\n", result.code);
    return scramble(hash ^ (uint64_t)result.code);
}

uint64_t execute(const struct program *wanted, uint64_t adversary, bool trace)
{
    program = wanted;
    tracing = trace;
    begin(adversary);
    run_ops();
    return end();
}
