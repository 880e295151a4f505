/* site.c: the bounded table of call sites. See site.h for the rules.
 *
 * An open-addressing index of 64-bit keys in front of the sites; a key is written last, so that a
 * reader that finds it finds the site complete.
 */
#include "stall/site.h"

#include "base/elf.h"
#include "base/lock.h"
#include "record/counters.h"
#include "stack/native_stack.h"

#include <string.h>

#define INDEX_SLOTS (GB_SITE_MAX * 2) /* power of two */

static struct gb_site sites[GB_SITE_MAX]; /* 0 is the overflow site */
static uint32_t site_count = 1;
static struct {
    uint64_t key; /* 0: free */
    uint32_t id;
} slots[INDEX_SLOTS];
static gb_lock lock;

uint32_t gb_site_count(void)
{
    return __atomic_load_n(&site_count, __ATOMIC_ACQUIRE);
}

struct gb_site *gb_site_at(uint32_t id)
{
    return id < GB_SITE_MAX ? &sites[id] : &sites[0];
}

/* Never 0. Two different places share a key with a probability of about 2^-40. */
static uint64_t key_of(unsigned hook, uint32_t stack_id, const void *caller)
{
    uint64_t place = stack_id ? stack_id : (uintptr_t)caller | UINT64_C(1) << 63;
    uint64_t h = (place ^ (uint64_t)hook << 48) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (h ^ h >> 29) | 1;
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t probe(uint64_t key)
{
    uint32_t i = (uint32_t)(key >> 20) & (INDEX_SLOTS - 1);
    for (;; i = (i + 1) & (INDEX_SLOTS - 1)) {
        uint64_t found = __atomic_load_n(&slots[i].key, __ATOMIC_ACQUIRE);
        if (found == key || !found)
            return i;
    }
}

GB_COLD static struct gb_site *add(uint64_t key, unsigned hook, uint32_t stack_id,
                                   const void *caller)
{
    struct gb_elf_module module;
    bool known = gb_elf_module_of(caller, &module); /* takes the loader's lock: before ours */
    struct gb_site *site = &sites[0];
    gb_lock_acquire(&lock);
    uint32_t i = probe(key), id = site_count;
    if (slots[i].key) {
        site = &sites[slots[i].id];
    } else if (id < GB_SITE_MAX) {
        site = &sites[id];
        site->id = id;
        site->stack_id = stack_id;
        site->hook = (uint16_t)hook;
        if (known) {
            size_t length = strnlen(module.name, sizeof site->module - 1);
            memcpy(site->module, module.name, length);
        }
        slots[i].id = id;
        __atomic_store_n(&site_count, id + 1, __ATOMIC_RELEASE);
        __atomic_store_n(&slots[i].key, key, __ATOMIC_RELEASE);
    } else {
        GB_COUNT(gb_counters.sites_full, 1);
    }
    gb_lock_release(&lock);
    return site;
}

struct gb_site *gb_site_find(unsigned hook, uint32_t stack_id, const void *caller)
{
    uint64_t key = key_of(hook, stack_id, caller);
    uint32_t i = probe(key);
    if (GB_LIKELY(__atomic_load_n(&slots[i].key, __ATOMIC_ACQUIRE) == key))
        return &sites[slots[i].id];
    return add(key, hook, stack_id, caller);
}

/* The count is written last; a second thread at the same site may write the same frames. */
void gb_site_native(struct gb_site *site)
{
    if (!site->id || site->stack_id || __atomic_load_n(&site->native_count, __ATOMIC_RELAXED))
        return;
    void *pcs[GB_ARRAY_LEN(site->native_pcs)];
    int count = gb_native_stack_capture(pcs, (int)GB_ARRAY_LEN(pcs));
    if (count <= 0)
        return;
    memcpy(site->native_pcs, pcs, (size_t)count * sizeof *pcs);
    __atomic_store_n(&site->native_count, (uint8_t)count, __ATOMIC_RELEASE);
}
