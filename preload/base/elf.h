/* elf.h: symbols and modules of the running process, found by reading loaded ELF objects.
 *
 * Used instead of dlsym for everything that lived outside libc.so.6 before glibc 2.34 (dlsym
 * itself, dlopen, pthread_create) and for CPython's symbols. Takes only the loader's
 * dl_iterate_phdr lock, and one of its own around it; never call it while holding another.
 */
#ifndef GB_ELF_H
#define GB_ELF_H

#include "base/gb.h"

/* Address of a defined function or object symbol, or NULL. `object` is a prefix of the basename
 * of the object to search ("libc.so", "libpython3."), "" for the executable itself, or NULL for
 * every loaded object in load order, this library left out. */
void *gb_elf_find(const char *object, const char *symbol);

struct gb_elf_module {
    char name[96];   /* basename, "" if unknown; the executable gives its own basename */
    uintptr_t base;  /* load bias */
    uintptr_t start; /* first byte of its mapped segments */
    uintptr_t end;   /* one past the last */
};

/* The loaded object that contains addr; false if none does. */
bool gb_elf_module_of(const void *addr, struct gb_elf_module *out);

/* Around fork: no thread of ours is inside the loader then. */
void gb_elf_before_fork(void);
void gb_elf_after_fork(void);

/* Is an object loaded whose basename begins so? */
bool gb_elf_is_loaded(const char *object);
/* How many objects have ever been loaded, looked at once a second: changes when there is a new one.
 */
uint64_t gb_elf_loads(void);

#endif
