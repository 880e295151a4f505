/* elf.c: symbol and module search over the loaded ELF objects. See elf.h for the interface.
 *
 * Reads only what the loader itself mapped and relocated: PT_DYNAMIC, DT_GNU_HASH or DT_HASH,
 * DT_SYMTAB, DT_VERSYM (ELF gABI ch. 5, LSB 5.0 "Symbol Versioning"; the GNU hash format is
 * described in binutils' bfd/elflink.c). Thread rule: any thread; dl_iterate_phdr keeps objects
 * mapped while the callback runs. Failure rule: a malformed object is treated as having no symbols.
 */
#include "base/elf.h"

#include "base/lock.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#define VERSYM_HIDDEN 0x8000u /* not the default version: foo@V rather than foo@@V */
#define OBJECT_ANY    NULL
#define LOOK_EVERY_NS 1000000000u

struct symbols {
    uintptr_t base;
    const ElfW(Sym) * table;
    const char *names;
    const uint16_t *versions;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
};

struct search {
    const char *object;
    const char *name;
    uint32_t gnu_hash, sysv_hash;
    unsigned index;  /* position of the object in load order; 0 is the executable */
    void *found;     /* a default or unversioned definition: ends the search */
    void *old_found; /* a hidden version, used when nothing better exists */
};

/* A child that is forked while another thread is inside dl_iterate_phdr finds the loader's lock
 * held for ever (glibc does not set it up anew), and hangs in its own next call of it. So a fork
 * waits until none of our threads is inside. */
static gb_lock inside;

void gb_elf_before_fork(void)
{
    gb_lock_acquire(&inside);
}

void gb_elf_after_fork(void)
{
    gb_lock_release(&inside);
}

static int iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
    gb_lock_acquire(&inside);
    int result = dl_iterate_phdr(visit, data);
    gb_lock_release(&inside);
    return result;
}

static uint32_t hash_gnu(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

static uint32_t hash_sysv(const char *name)
{
    uint32_t h = 0;
    for (; *name; name++) {
        h = (h << 4) + (unsigned char)*name;
        h ^= (h >> 24) & 0xf0;
        h &= 0x0fffffff;
    }
    return h;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

static bool contains(const struct dl_phdr_info *info, uintptr_t addr)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD && addr - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
            return true;
    }
    return false;
}

/* glibc relocates the pointers of a writable dynamic section in place, other loaders do not. */
static const void *dynamic_pointer(uintptr_t base, const ElfW(Dyn) * entry)
{
    uintptr_t p = entry->d_un.d_ptr;
    return (const void *)(p < base ? p + base : p);
}

static bool read_symbols(const struct dl_phdr_info *info, struct symbols *out)
{
    const ElfW(Dyn) *dyn = NULL;
    memset(out, 0, sizeof *out);
    out->base = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const ElfW(Dyn) *)(out->base + info->dlpi_phdr[i].p_vaddr);
    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        const void *p = dynamic_pointer(out->base, dyn);
        if (dyn->d_tag == DT_SYMTAB)
            out->table = p;
        else if (dyn->d_tag == DT_STRTAB)
            out->names = p;
        else if (dyn->d_tag == DT_VERSYM)
            out->versions = p;
        else if (dyn->d_tag == DT_GNU_HASH)
            out->gnu_hash = p;
        else if (dyn->d_tag == DT_HASH)
            out->sysv_hash = p;
    }
    return out->table && out->names && (out->gnu_hash || out->sysv_hash);
}

/* Takes symbol number i if it is a definition of the name; true ends the search of this object.
 * An IFUNC is left out: its value is the address of a resolver, not of the function. */
static bool take(struct search *s, const struct symbols *o, uint32_t i)
{
    const ElfW(Sym) *sym = &o->table[i];
    unsigned type = ELF64_ST_TYPE(sym->st_info), binding = ELF64_ST_BIND(sym->st_info);
    if ((type != STT_FUNC && type != STT_OBJECT) || binding == STB_LOCAL || !sym->st_value ||
        sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS ||
        strcmp(o->names + sym->st_name, s->name) != 0)
        return false;
    void *addr = (void *)(o->base + sym->st_value);
    if (o->versions && (o->versions[i] & VERSYM_HIDDEN)) {
        if (!s->old_found)
            s->old_found = addr;
        return false;
    }
    s->found = addr;
    return true;
}

static void search_gnu(struct search *s, const struct symbols *o)
{
    uint32_t nbuckets = o->gnu_hash[0], first = o->gnu_hash[1], nbloom = o->gnu_hash[2];
    unsigned shift = o->gnu_hash[3], bits = 8 * sizeof(ElfW(Addr));
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(o->gnu_hash + 4);
    const uint32_t *buckets = (const uint32_t *)(bloom + nbloom), *chain = buckets + nbuckets;
    uint32_t h = s->gnu_hash;
    if (!nbuckets || !nbloom)
        return;
    ElfW(Addr) word = bloom[(h / bits) % nbloom];
    if (!((word >> (h % bits)) & (word >> ((h >> shift) % bits)) & 1))
        return;
    uint32_t i = buckets[h % nbuckets];
    if (i < first)
        return;
    for (;; i++) {
        uint32_t entry = chain[i - first];
        if ((entry | 1) == (h | 1) && take(s, o, i))
            return;
        if (entry & 1)
            return;
    }
}

static void search_sysv(struct search *s, const struct symbols *o)
{
    uint32_t nbuckets = o->sysv_hash[0], nchain = o->sysv_hash[1];
    const uint32_t *buckets = o->sysv_hash + 2, *chain = buckets + nbuckets;
    if (!nbuckets)
        return;
    uint32_t i = buckets[s->sysv_hash % nbuckets];
    for (uint32_t steps = 0; i && i < nchain && steps < nchain; i = chain[i], steps++)
        if (take(s, o, i))
            return;
}

static bool wanted(const struct search *s, const struct dl_phdr_info *info)
{
    const char *name = base_name(info->dlpi_name);
    if (s->object == OBJECT_ANY) /* the vDSO's symbols are not meant to be called past libc */
        return strncmp(name, "linux-vdso", 10) != 0 && !contains(info, (uintptr_t)&gb_elf_find);
    if (!s->object[0])
        return s->index == 0;
    return strncmp(name, s->object, strlen(s->object)) == 0;
}

static int search_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct search *s = arg;
    struct symbols o;
    if (wanted(s, info) && read_symbols(info, &o)) {
        if (o.gnu_hash)
            search_gnu(s, &o);
        else
            search_sysv(s, &o);
    }
    s->index++;
    return s->found != NULL;
}

void *gb_elf_find(const char *object, const char *symbol)
{
    struct search s = {.object = object,
                       .name = symbol,
                       .gnu_hash = hash_gnu(symbol),
                       .sysv_hash = hash_sysv(symbol)};
    iterate(search_object, &s);
    return s.found ? s.found : s.old_found;
}

struct module_search {
    uintptr_t addr;
    unsigned index;
    struct gb_elf_module *out;
};

static void copy_name(char *out, size_t size, const char *path)
{
    const char *name = base_name(path);
    size_t n = strnlen(name, size - 1);
    memcpy(out, name, n);
    out[n] = 0;
}

/* dl_iterate_phdr gives the executable an empty name. */
static void executable_name(char *out, size_t size)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    copy_name(out, size, path);
}

static int search_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct module_search *s = arg;
    struct gb_elf_module *m = s->out;
    unsigned index = s->index++;
    if (!contains(info, s->addr))
        return 0;
    if (index == 0)
        executable_name(m->name, sizeof m->name);
    else
        copy_name(m->name, sizeof m->name, info->dlpi_name);
    m->base = info->dlpi_addr;
    m->start = UINTPTR_MAX;
    m->end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type != PT_LOAD)
            continue;
        m->start = from < m->start ? from : m->start;
        m->end = from + ph->p_memsz > m->end ? from + ph->p_memsz : m->end;
    }
    return 1;
}

bool gb_elf_module_of(const void *addr, struct gb_elf_module *out)
{
    struct module_search s = {.addr = (uintptr_t)addr, .out = out};
    return iterate(search_module, &s) != 0;
}

static int match_name(struct dl_phdr_info *info, size_t size, void *prefix)
{
    (void)size;
    return strncmp(base_name(info->dlpi_name), prefix, strlen(prefix)) == 0;
}

bool gb_elf_is_loaded(const char *object)
{
    return iterate(match_name, (void *)(uintptr_t)object) != 0;
}

static int read_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(uint64_t *)loads = info->dlpi_adds;
    return 1;
}

uint64_t gb_elf_loads(void)
{
    static uint64_t looked_ns, known;
    uint64_t now_ns = gb_now_ns(), loads = 0;
    if (now_ns - __atomic_load_n(&looked_ns, __ATOMIC_RELAXED) < LOOK_EVERY_NS)
        return __atomic_load_n(&known, __ATOMIC_RELAXED);
    iterate(read_loads, &loads);
    __atomic_store_n(&known, loads, __ATOMIC_RELAXED);
    __atomic_store_n(&looked_ns, now_ns, __ATOMIC_RELAXED);
    return loads;
}
