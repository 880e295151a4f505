/* hooks.h: the hooked entry points as an enum, a table of real functions, and how to find both.
 *
 * Everything here is an expansion of hooks.def. A slot of gb_real is never NULL: before its first
 * use it holds a function that looks the real one up, so that no hook tests a pointer.
 * Thread rule: a slot changes once, from that function to the real one; any thread may do it.
 * Failure rule: an entry point that no loaded library defines answers "not found".
 */
#ifndef GB_HOOKS_H
#define GB_HOOKS_H

#include "base/gb.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

/* cuda.h renames this one to _v2, and both are hooked. */
#undef cuGetProcAddress

enum gb_hook {
#define HOOK_DRIVER(symbol, ...)         GB_HOOK_##symbol,
#define HOOK_RUNTIME(name, variant, ...) GB_HOOK_##name##variant,
#include "cuda/hooks.def"
    GB_HOOK_COUNT
};

union gb_real_table {
    struct {
#define HOOK_DRIVER(symbol, api, since, variant, ...) PFN_##api##_v##since##variant symbol;
#define HOOK_RUNTIME(name, variant, ...)              __typeof__(&name) name##variant;
#include "cuda/hooks.def"
    } f;
    void *slot[GB_HOOK_COUNT];
};
extern union gb_real_table gb_real;

/* hook_table.c */
bool gb_hook_is_driver(unsigned hook);
bool gb_hook_is_per_thread(unsigned hook);
/* The wrapper that this library exports for a hook. */
void *gb_hook_wrapper(unsigned hook);
/* The hook of an exported symbol, or of what cuGetProcAddress means by (name, version, flags);
 * GB_HOOK_COUNT when it is not hooked. */
unsigned gb_hook_of_symbol(const char *symbol);
unsigned gb_hook_of_api(const char *name, int cuda_version, uint64_t flags);

/* resolve.c: puts the real function into its slot (wrap_driver.c and wrap_runtime.c call it at the
 * first use of a slot), or what a look-up of the program gave; false when the slot already holds
 * another one, which then must not be replaced. */
void gb_resolve(unsigned hook);
bool gb_resolve_to(unsigned hook, void *real);
/* What a slot holds before its first use; and for an entry point that does not exist. */
extern void *const gb_lazy[GB_HOOK_COUNT];

#endif
