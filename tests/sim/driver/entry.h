/* entry.h: how an entry point of the driver is made.
 *
 * entry.def lists them; entry.c makes the exported functions, which check what holds for all (life,
 * context, sticky error, faults, capture), log the call and hold sim_lock around the drv_ function
 * that does the work.
 * Thread rule: a drv_ function runs with sim_lock. Failure rule: an error code.
 */
#ifndef SIM_ENTRY_H
#define SIM_ENTRY_H

#include "../engine/engine.h"

#include <cudaTypedefs.h>

#undef cuGetProcAddress /* cuda.h makes it mean the second version; both are exported here */

enum sim_need { SIM_NEED_PURE, SIM_NEED_START, SIM_NEED_INIT, SIM_NEED_CTX, SIM_NEED_UNSAFE };

enum sim_entry {
#define ENTRY(symbol, name, version, twin, need, params, args) SIM_ENTRY_##symbol,
#include "entry.def"
#undef ENTRY
    SIM_ENTRY_COUNT
};

#define ENTRY(symbol, name, version, twin, need, params, args) CUresult drv_##symbol params;
#include "entry.def"
#undef ENTRY

/* A row of what cuGetProcAddress knows: the twin is NULL where there is none. */
struct sim_symbol {
    const char *name;
    int version;
    void *function, *twin;
};

extern const struct sim_symbol sim_symbols[SIM_ENTRY_COUNT];

/* driver/error.c */
bool sim_error_of_name(const char *name, CUresult *error);

/* driver/fault.c */
bool sim_fault_for(unsigned entry, CUresult *error);

/* driver/copy.c: a box from anywhere to anywhere, by the rules for its kinds of memory. */
CUresult sim_copy_box(const struct sim_copy *box, struct sim_stream *stream, bool synchronous);
bool sim_always_waits(const struct sim_stream *stream, uint64_t address);
uint64_t sim_transfer_ns(double bytes, double gigabytes_per_s);

/* driver/copy_pitched.c */
CUresult sim_copy_box_of(const CUDA_MEMCPY3D *from, struct sim_copy *box);

/* driver/memset.c */
struct sim_op *sim_fill_operation(const struct sim_fill *fill);

/* driver/memory.c */
CUresult sim_memory_alloc_or_wait(struct sim_context *context, size_t bytes,
                                  enum sim_memory_kind kind, CUdeviceptr *address);
bool sim_free_pending(const struct sim_device *device);
void sim_drain(void);

/* driver/ipc.c */
void sim_event_wait_for_others(struct sim_event *event);

/* driver/pool.c */
CUmemoryPool sim_pool_of_device(int device);

/* driver/module.c */
const char *sim_function_name(CUfunction function);

/* driver/launch.c */
struct sim_op *sim_kernel_operation(CUfunction function, void **params, uint64_t blocks,
                                    uint64_t threads);

/* Checks a device ordinal. */
struct sim_device *sim_device_of(CUdevice device);

#endif
