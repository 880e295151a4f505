/* transfer_rate.h: how long the driver takes for a pageable copy of a size. Needed to split the
 * time of copies that had to wait first.
 *
 * No copy takes less than its transfer, so that the fastest of a size bounds them all; it counts
 * once a copy was seen that had nothing to wait for. A busy machine makes single copies slower than
 * that: the estimate then errs to the side of less transfer and less idle time. Any thread; an
 * estimate is refused until there is something to go by.
 */
#ifndef GB_TRANSFER_RATE_H
#define GB_TRANSFER_RATE_H

#include "stall/call.h"

/* `waited`: earlier work of the stream may have run in this time as well. */
void gb_rate_learn(enum gb_direction direction, uint64_t bytes, uint64_t ns, bool waited);
bool gb_rate_estimate(enum gb_direction direction, uint64_t bytes, uint64_t *out_ns);

#endif
