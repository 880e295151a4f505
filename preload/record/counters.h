/* counters.h: the named counters of counters.def. Relaxed, any thread, no failure. */
#ifndef GB_COUNTERS_H
#define GB_COUNTERS_H

#include "base/gb.h"

struct gb_counters {
#define GB_COUNTER(field, name) gb_counter field;
#include "record/counters.def"
};
extern struct gb_counters gb_counters;

/* Counts why something is not done, and says so. */
static inline bool gb_declines(gb_counter *why)
{
    GB_COUNT(*why, 1);
    return false;
}

#endif
