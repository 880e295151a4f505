/* proven.h: has `gpuboost prove` shown, for this driver and GPU, what an elided wait stands on?
 *
 * It leaves a file "proven/<driver version>-<GPU name>" in gpuboost's state directory
 * (XDG_STATE_HOME/gpuboost), with every character of the name that is not a letter or a digit as an
 * underscore. The first line of a file that counts is "proven 1".
 * Thread rule: the application's thread; asked once. Failure rule: not proven.
 */
#ifndef GB_PROVEN_H
#define GB_PROVEN_H

#include "base/gb.h"

bool gb_is_proven(void);

#endif
