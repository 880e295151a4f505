/* verify.h: GPUBOOST_VERIFY=1/n: reads every n-th staged copy back and compares it with its source.
 *
 * A copy that is to be verified is waited for, so that nothing else has touched either side. One
 * difference switches staging and eliding off for the rest of the process, says so, and the real
 * call is made. Thread rule: the application's thread, the ring taken. Failure rule: what cannot be
 * read back counts as verified by nobody.
 */
#ifndef GB_VERIFY_H
#define GB_VERIFY_H

#include "stall/call.h"
#include "transfer/pinned.h"

/* Is it this copy's turn? */
bool gb_verify_wants(void);
/* Reads the copy back through the chunk; false when it differs. */
bool gb_verify_copy(struct gb_pinned_ring *ring, const struct gb_call *call,
                    const struct gb_copy *copy);
/* Has there been a difference? */
bool gb_verify_failed(void);

#endif
