/* execute.h: what a running program has, shared by the parts of the executor.
 *
 * Thread rule: one thread at a time has the turn and may touch this; host functions touch only
 * what their struct call names. Failure rule: see oracle.h.
 */
#ifndef ORACLE_EXECUTE_H
#define ORACLE_EXECUTE_H

#include "oracle.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

struct memory {
    CUdeviceptr address; /* of host memory too; 0: none */
    void *base;          /* what is given back */
    size_t bytes, base_bytes;
    uint8_t kind, device; /* device_memory or host_memory */
    CUmemGenericAllocationHandle physical;
};

/* What a host function works with. */
struct call {
    struct result *result;
    void *from, *to;
    size_t from_bytes, to_bytes;
    uint64_t value;
    uint64_t *turn; /* of its stream: host functions run in its order */
    volatile int let_go;
};

struct world {
    CUcontext contexts[2];
    CUstream streams[STREAMS];
    CUevent events[EVENTS];
    struct memory blocks[BLOCKS];
    CUgraphExec graphs[GRAPHS];
    size_t free_bytes[2]; /* at the program's start */
    uint64_t turns[STREAMS];
    volatile uint32_t *gate; /* page-locked: what a stream waits for */
    uint32_t gate_value;
    struct call *calls;
    struct result *results;
    void *kept[OPS_MOST]; /* sources that stay protected until the end */
    size_t kept_bytes[OPS_MOST];
    uint32_t kept_count;
};

extern struct world world;

/* The first failure of several calls is the result. */
static inline void note(struct result *result, int code)
{
    if (result->code == 0)
        result->code = code;
}

/* The host reads or writes its memory: tests/checker cannot see that in the log of calls. */
void fill_noted(void *at, size_t bytes, uint64_t value);
uint64_t hash_noted(uint64_t hash, const void *at, size_t bytes);
/* The stream's handle, for the functions with and without per-thread default streams. */
CUstream handle_of(const struct op *op);

/* execute_copy.c */
void run_copy(const struct op *op, struct result *result);
void run_wrong(const struct op *op, struct result *result);
/* execute_memory.c */
void run_device_alloc(const struct op *op, struct result *result);
void run_device_free(const struct op *op, struct result *result);
void run_host_memory(const struct op *op, struct result *result);
void run_question(const struct op *op, struct result *result);
void free_block(unsigned block, struct result *result);
/* execute_work.c */
void run_fill(const struct op *op, struct result *result);
void run_kernel(const struct op *op, struct result *result);
void run_host_call(const struct op *op, struct call *call, struct result *result);
void run_release(const struct op *hold, struct call *call);
void run_graph(const struct op *op, struct result *result);

#endif
