/* owe.h: when a call may return before the native one would, and owe the rest (debt.h).
 *
 * Thread rule: the application's thread, inside its call. Failure rule: not.
 */
#ifndef GB_OWE_H
#define GB_OWE_H

#include "stall/call.h"

/* Why the ends of a pageable copy are not ones that we may serve (a counter of the reason); NULL:
 * they are. Asks the driver; none of these questions waits or creates anything. */
gb_counter *gb_why_not_place(const struct gb_call *call, const struct gb_copy *copy);

/* May a copy that is on its stream return at once? Only an asynchronous form, while nothing that
 * the host may notice is outstanding, no capture is open, launches are not meant to block, and the
 * driver hooks are known to see the program's calls. Not where the thread waits right behind its
 * copies anyway; and not where several threads drive several GPUs: what one of them gives to its
 * GPU may be what the other's copy waits for (a collective), and must not be made to wait for that.
 */
bool gb_may_owe(const struct gb_call *call, const struct gb_copy *copy);
/* The same for a wait behind a copy. */
bool gb_may_owe_here(const struct gb_call *call);

#endif
