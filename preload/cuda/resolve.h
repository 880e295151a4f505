/* resolve.h: what the wrappers of cuGetProcAddress and the life cycle ask of resolve.c.
 *
 * Thread rule: any thread. Failure rule: the real pointer is handed on as it is.
 */
#ifndef GB_RESOLVE_H
#define GB_RESOLVE_H

#include "base/gb.h"

/* The wrapper of `hook` when `real` is a function of the real CUDA library and may be called by
 * it, else `real`. */
void *gb_substitute(unsigned hook, void *real);
/* The function that the real library exports under the hook's name, or NULL. */
void *gb_resolve_export(unsigned hook);
/* What answers for an entry point that no library has. */
void *gb_absent(unsigned hook);
/* Does the address lie in a loaded object whose name begins so? */
bool gb_is_in(const void *address, const char *object);

#endif
