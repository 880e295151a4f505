/* place.h: where a site is, in words: "train.py:41 (train)", or the native module.
 *
 * The frame shown is the innermost one that is not in an installed package or the standard
 * library: the line its reader can edit. Any thread; slow path.
 */
#ifndef GB_PLACE_H
#define GB_PLACE_H

#include "base/text.h"
#include "stack/pystack.h"
#include "stall/site.h"

/* Index of the frame to show; 0 when all of them are library code. */
int gb_place_pick(const struct gb_pyframe *frames, int count);
/* `brief` shortens long paths to the file's name. */
void gb_place_add(struct gb_text *t, const struct gb_site *site, bool brief);

#endif
