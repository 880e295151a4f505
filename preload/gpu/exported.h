/* exported.h: device memory that agents may read which no stream orders: another process, a network
 * card, a file system. Whoever exports once may signal through a pipe ever after, so that nothing
 * may be owed for such memory, for good: copies into it are left to the driver.
 *
 * Thread rule: any thread, one short lock. Failure rule: what cannot be noted makes all device
 * memory exported.
 */
#ifndef GB_EXPORTED_H
#define GB_EXPORTED_H

#include "cuda/hooks.h"

/* Memory was exported: a range; the allocation that holds an address; all that is or will be mapped
 * from a handle. Imported memory is the same. `caller`: the instruction. */
void gb_exported_add(CUdeviceptr start, size_t bytes, const void *caller);
void gb_exported_block(CUdeviceptr address, const void *caller);
void gb_exported_handle(CUmemGenericAllocationHandle handle, const void *caller);
/* A handle was mapped; a range is about to be unmapped, or what begins at `start` freed (0 bytes).
 */
void gb_exported_map(CUmemGenericAllocationHandle handle, CUdeviceptr start, size_t bytes);
void gb_exported_forget(CUdeviceptr start, size_t bytes);

/* Is there any that NCCL has not exported for itself? Then no wait may be owed at all: what a
 * kernel wrote there before the copy is natively there for everybody when the copy returns. NCCL's
 * buffers are read by NCCL, on its own signals. */
bool gb_exported_any(void);
bool gb_exported_touch(CUdeviceptr start, size_t bytes);

#endif
