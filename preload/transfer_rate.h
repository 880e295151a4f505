/* transfer_rate.h: how long the driver takes for a pageable copy of a size, learned from copies
 * that had nothing to wait for. Needed to split the time of the others. Any thread; an estimate is
 * refused until there is something to go by.
 */
#ifndef GB_TRANSFER_RATE_H
#define GB_TRANSFER_RATE_H

#include "call.h"

void gb_rate_learn(enum gb_direction direction, uint64_t bytes, uint64_t ns);
bool gb_rate_estimate(enum gb_direction direction, uint64_t bytes, uint64_t *out_ns);

#endif
