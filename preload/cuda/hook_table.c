/* hook_table.c: names, families and wrappers of the hooked entry points, from hooks.def.
 *
 * Look-ups by name are linear: they happen once per function that a library binds, beside a dlsym
 * that costs more. Thread rule: constant data. Failure rule: an unknown name is not hooked.
 */
#include "cuda/hooks.h"
#include "stall/site.h"

#include <string.h>

struct row {
    const char *symbol, *api; /* api: NULL in the runtime layer */
    const char *family;
    int since;
    bool per_thread;
};

#define IS_PER_THREAD(variant) (sizeof(#variant) > 1)

static const struct row rows[GB_HOOK_COUNT] = {
#define HOOK_DRIVER(symbol, api, since, variant, family, ...)                                      \
    {#symbol, #api, #family, since, IS_PER_THREAD(variant)},
#define HOOK_RUNTIME(name, variant, family, ...)                                                   \
    {#name #variant, NULL, #family, 0, IS_PER_THREAD(variant)},
#include "cuda/hooks.def"
};

/* Declared by their own names only: their types are checked where they are defined. */
#define HOOK_DRIVER(symbol, ...) extern char gb_wrapper_of_##symbol __asm__(#symbol);
#define HOOK_RUNTIME(name, variant, ...)                                                           \
    extern char gb_wrapper_of_##name##variant __asm__(#name #variant);
#include "cuda/hooks.def"

static void *const wrappers[GB_HOOK_COUNT] = {
#define HOOK_DRIVER(symbol, ...)         &gb_wrapper_of_##symbol,
#define HOOK_RUNTIME(name, variant, ...) &gb_wrapper_of_##name##variant,
#include "cuda/hooks.def"
};

bool gb_hook_is_driver(unsigned hook)
{
    return rows[hook].api != NULL;
}

bool gb_hook_is_per_thread(unsigned hook)
{
    return rows[hook].per_thread;
}

void *gb_hook_wrapper(unsigned hook)
{
    return wrappers[hook];
}

const char *gb_hook_name(unsigned hook)
{
    return hook < GB_HOOK_COUNT ? rows[hook].symbol : "";
}

/* sync_stream, sync_context and sync_event are one family to a reader of the record. */
const char *gb_hook_family(unsigned hook)
{
    if (hook >= GB_HOOK_COUNT)
        return "";
    return strncmp(rows[hook].family, "sync_", 5) == 0 ? "sync" : rows[hook].family;
}

unsigned gb_hook_of_symbol(const char *symbol)
{
    if (symbol[0] != 'c' || symbol[1] != 'u')
        return GB_HOOK_COUNT;
    for (unsigned hook = 0; hook < GB_HOOK_COUNT; hook++)
        if (strcmp(rows[hook].symbol, symbol) == 0)
            return hook;
    return GB_HOOK_COUNT;
}

/* The driver answers with the newest variant that is not newer than the version asked for (CUDA
 * driver API, cuGetProcAddress); the per-thread variant only where the flag asks for it. */
unsigned gb_hook_of_api(const char *name, int cuda_version, uint64_t flags)
{
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    unsigned best = GB_HOOK_COUNT, plain = GB_HOOK_COUNT;
    for (unsigned hook = 0; hook < GB_HOOK_COUNT; hook++) {
        const struct row *row = &rows[hook];
        if (!row->api || row->since > cuda_version || strcmp(row->api, name) != 0)
            continue;
        unsigned *slot = row->per_thread ? &best : &plain;
        if (row->per_thread == per_thread || !row->per_thread)
            if (*slot == GB_HOOK_COUNT || rows[*slot].since <= row->since)
                *slot = hook;
    }
    return best != GB_HOOK_COUNT ? best : plain;
}
