/* native_stack.h: native frames of the calling thread, for threads that have no Python frames.
 *
 * Uses libunwind's unw_backtrace, opened lazily at the first capture from beside this library or
 * from the system. Without libunwind a capture returns 0 frames and the status says so. Only
 * called after a stall over the threshold: never on the hot path.
 */
#ifndef GB_NATIVE_STACK_H
#define GB_NATIVE_STACK_H

#include "base/gb.h"

int gb_native_stack_capture(void **pcs, int max);
const char *gb_native_stack_status(void);
/* "libtorch_cuda.so+0x1234" into buf; the symbol's name where the object exports one near it. */
void gb_native_frame_name(const void *pc, char *buf, size_t size);

#endif
