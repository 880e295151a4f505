/* native_stack.c: native frames by libunwind, opened at the first capture. See native_stack.h.
 *
 * libunwind's unw_backtrace costs 0.1-0.5 us once warm and 0.4 ms the first time; glibc's
 * backtrace() costs 2-9 us each time, and CPython and torch keep no frame pointers. It takes the
 * loader's lock for a return address it has not seen. Thread rule: any thread; one opens libunwind,
 * the others get 0 frames meanwhile. Failure rule: without libunwind 0 frames, and the status says
 * so.
 */
#include "stack/native_stack.h"

#include "base/elf.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define LIBUNWIND "libunwind.so.8"

enum phase { PHASE_NEW, PHASE_BUSY, PHASE_ON, PHASE_OFF };

static uint32_t phase;
static int (*unwind)(void **pcs, int max);
static struct gb_elf_module own;
static char status_text[128];

/* dlopen moved from libdl.so.2 to libc.so.6 in glibc 2.34. Never the first one in load order: that
 * may be another preloaded library's. */
static void *find_loader(const char *symbol)
{
    void *found = gb_elf_find("libc.so", symbol);
    return found ? found : gb_elf_find("libdl.so", symbol);
}

/* The directory this library was loaded from, with a final slash. */
static int own_directory(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    const char *path = info->dlpi_name, *slash = path ? strrchr(path, '/') : NULL;
    if (info->dlpi_addr != own.base)
        return 0;
    /* A relative path would be resolved against whatever the working directory is by now. */
    if (slash && path[0] == '/' && slash - path < 3000)
        snprintf(out, 3072, "%.*s", (int)(slash - path + 1), path);
    return 1;
}

static const char *open_libunwind(void)
{
    void *(*open)(const char *, int);
    char path[3072 + sizeof LIBUNWIND] = "";
    void *handle = NULL;
    *(void **)&open = find_loader("dlopen");
    if (!open)
        return "off: no dlopen in this process";
    if (gb_elf_module_of((const void *)&open_libunwind, &own))
        dl_iterate_phdr(own_directory, path);
    if (path[0]) {
        strcat(path, LIBUNWIND);
        handle = open(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle)
        handle = open(LIBUNWIND, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return "off: no " LIBUNWIND;
    *(void **)&unwind = gb_elf_find(LIBUNWIND, "unw_backtrace");
    return unwind ? NULL : "off: " LIBUNWIND " has no unw_backtrace";
}

static GB_COLD bool set_up(void)
{
    uint32_t now = PHASE_NEW;
    if (!__atomic_compare_exchange_n(&phase, &now, PHASE_BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE))
        return now == PHASE_ON;
    const char *wrong = open_libunwind();
    snprintf(status_text, sizeof status_text, "%s", wrong ? wrong : "on: " LIBUNWIND);
    __atomic_store_n(&phase, wrong ? PHASE_OFF : PHASE_ON, __ATOMIC_RELEASE);
    return !wrong;
}

static bool is_own(const void *pc)
{
    return (uintptr_t)pc - own.start < own.end - own.start;
}

int gb_native_stack_capture(void **pcs, int max)
{
    void *found[80];
    int kept = 0, skip = 0;
    if (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) != PHASE_ON && !set_up())
        return 0;
    int n = unwind(found, GB_ARRAY_LEN(found));
    while (skip < n && is_own(found[skip])) /* our own frames say nothing about the program */
        skip++;
    while (skip + kept < n && kept < max) {
        pcs[kept] = found[skip + kept];
        kept++;
    }
    return kept;
}

const char *gb_native_stack_status(void)
{
    uint32_t now = __atomic_load_n(&phase, __ATOMIC_ACQUIRE);
    return now == PHASE_ON || now == PHASE_OFF ? status_text : "not used yet";
}

void gb_native_frame_name(const void *pc, char *buf, size_t size)
{
    struct gb_elf_module m;
    Dl_info info;
    int (*address_info)(const void *, Dl_info *);
    /* A return address may be the first byte after its function: look at the call itself. */
    const char *call = (const char *)pc - 1;
    if (!gb_elf_module_of(call, &m)) {
        snprintf(buf, size, "%p", pc);
        return;
    }
    size_t offset = (uintptr_t)pc - m.base;
    *(void **)&address_info = find_loader("dladdr");
    if (address_info && address_info(call, &info) && info.dli_sname)
        snprintf(buf, size, "%s+0x%zx (%s)", m.name, offset, info.dli_sname);
    else
        snprintf(buf, size, "%s+0x%zx", m.name, offset);
}
