/* allocator.c: an allocator to be preloaded. Like jemalloc and tcmalloc it looks symbols up inside
 * its first allocation, with its lock held, before any constructor has run; whoever allocates in
 * there would wait for ever. Nothing is ever freed. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES (64u << 20)

static char arena[ARENA_BYTES] __attribute__((aligned(4096)));
static size_t used;
static int is_set_up;
static __thread bool is_locked __attribute__((tls_model("initial-exec")));

static void end(const char *why)
{
    if (write(2, why, strlen(why)) >= 0)
        _exit(99);
    _exit(98);
}

/* dlsym has nothing to allocate for what it finds; for what it does not, it has its message. */
static void set_up(void)
{
    is_locked = true;
    if (!dlsym(RTLD_NEXT, "malloc") || !dlsym(RTLD_DEFAULT, "pthread_mutex_lock"))
        end("allocator: a look-up failed\n");
    is_locked = false;
    dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    dlsym(RTLD_DEFAULT, "cuMemAllocTypo");
}

static void *take(size_t bytes, size_t alignment)
{
    if (is_locked)
        end("allocator: entered again from a look-up\n");
    if (!__atomic_exchange_n(&is_set_up, 1, __ATOMIC_ACQ_REL))
        set_up();
    bytes = (bytes + 16 + alignment + 15) & ~(size_t)15;
    size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
    if (at + bytes > ARENA_BYTES)
        end("allocator: empty\n");
    size_t start = ((size_t)(arena + at) + 16 + alignment - 1) & ~(alignment - 1);
    ((size_t *)start)[-1] = bytes;
    return (void *)start;
}

void *malloc(size_t bytes)
{
    return take(bytes, 16);
}

void free(void *p)
{
    (void)p;
}

void *calloc(size_t count, size_t bytes)
{
    return take(count * bytes, 16); /* of an arena that was never used before: zero */
}

void *realloc(void *old, size_t bytes)
{
    void *p = take(bytes, 16);
    size_t had = old ? ((size_t *)old)[-1] : 0;
    return old ? memcpy(p, old, had < bytes ? had : bytes) : p;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return take(bytes, alignment < 16 ? 16 : alignment);
}

void *memalign(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

int posix_memalign(void **p, size_t alignment, size_t bytes)
{
    *p = aligned_alloc(alignment, bytes);
    return 0;
}
