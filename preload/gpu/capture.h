/* capture.h: open stream captures. While one is open no policy acts (contract: never a call of ours
 * in a capture that it could invalidate). Any thread; the count is exact for captures that begin
 * and end through the hooks, and the driver is asked about the stream itself besides.
 */
#ifndef GB_CAPTURE_H
#define GB_CAPTURE_H

#include "gpu/inflight.h"

void gb_capture_begins(CUstream handle);
/* The stream waits for an event recorded inside a capture: it takes part until that ends. */
void gb_capture_joins(struct gb_stream *stream, struct gb_stream *of);
void gb_capture_ends(CUstream handle);
bool gb_capture_is_open(void);

#endif
