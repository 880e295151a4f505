/* copier.h: copies memory with the help of one thread, for staging on a link that is faster than
 * one processor's memcpy.
 *
 * The bytes are split into blocks that the caller and the helper take in turn; the caller takes all
 * of them where the helper sleeps, and waits at most for the block that the helper has in hand. The
 * helper touches no memory of a copy that has returned.
 * Thread rule: any thread; the helper serves one copy at a time, others are plain memcpy. Failure
 * rule: no helper, plain memcpy.
 */
#ifndef GB_COPIER_H
#define GB_COPIER_H

#include "base/gb.h"

/* Starts the helper, once; not where the calling thread may use one processor only. */
void gb_copier_start(void);
void gb_copier_copy(void *dst, const void *src, size_t bytes);

#endif
