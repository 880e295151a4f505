/* ranges.h: host memory that the program pinned or registered, as our hooks saw it.
 *
 * For accounting, and as a second opinion: whether memory may be staged is decided by the driver's
 * answer. Sorted array; writers take a lock, readers none (a sequence number, few attempts).
 * Failure rule: a reader that cannot get a steady view, and every reader once the table has
 * overflowed, is told "unknown", which nobody may act on.
 */
#ifndef GB_RANGES_H
#define GB_RANGES_H

#include "base/gb.h"

enum gb_range { GB_RANGE_NONE, GB_RANGE_PINNED, GB_RANGE_UNKNOWN };

void gb_ranges_add(const void *start, size_t bytes);
void gb_ranges_remove(const void *start);
/* Does [start, start + bytes) touch pinned memory? */
enum gb_range gb_ranges_touch(const void *start, size_t bytes);

#endif
