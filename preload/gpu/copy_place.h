/* copy_place.h: where the two ends of a copy lie, by the driver's answer.
 *
 * The rules a host-to-device copy must meet to be staged (source and destination tables of
 * contract C). Asked anew for every copy: an answer that is kept can be outlived by the memory.
 * Thread rule: any; what is kept per context is written once. Failure rule: in doubt it does not
 * fit.
 */
#ifndef GB_COPY_PLACE_H
#define GB_COPY_PLACE_H

#include "stall/call.h"

enum gb_place_answer {
    GB_PLACE_FITS,
    GB_PLACE_CONTEXT,  /* not the device's primary context, or the stream is of another one */
    GB_PLACE_COHERENT, /* the GPU reads pageable memory by the host's page tables: nothing to gain
                        */
    GB_PLACE_SOURCE,   /* the driver knows the source: registered, managed, or device memory */
    GB_PLACE_DESTINATION
};

enum gb_place_answer gb_copy_place(CUstream stream, CUcontext context, const struct gb_copy *copy);
/* Is it device memory that the host cannot see, of whatever device? */
bool gb_is_device_memory(CUdeviceptr address);
/* A context ends: its handle may be given out again. */
void gb_copy_place_forget(void);

#endif
