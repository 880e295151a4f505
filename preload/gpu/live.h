/* live.h: do the calls of this process reach the driver hooks? Nothing may be owed unless they do.
 *
 * The runtime gets its driver functions by ways that an interposer may miss. An event recorded
 * through each loaded libcudart must be noticed by our driver hook; asked again when libraries were
 * loaded since. Only inside a call of the runtime: elsewhere the probe might be what starts it,
 * with a context that the program never asked for. Thread rule: the application's thread, inside
 * its call, no capture open. Failure rule: no.
 */
#ifndef GB_LIVE_H
#define GB_LIVE_H

#include "stall/call.h"

bool gb_live(const struct gb_call *call);

#endif
