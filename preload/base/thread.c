/* thread.c: detached helper threads without a link-time pthread_create. See thread.h for the rules.
 *
 * The pthread functions are looked up once per start (elf.h): before glibc 2.34 they live in
 * libpthread.so.0, which every process that uses CUDA has loaded. Thread rule: any thread may
 * start a helper. Failure rule: no pthread_create, no memory, no thread (seccomp, pids limit):
 * false, and the caller does without.
 */
#include "base/thread.h"

#include "base/elf.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES     (256u << 10)
#define KERNEL_SIG_SIZE 8 /* sizeof(sigset_t) of the kernel, rt_sigprocmask(2) */

struct pthread_calls {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*attr_init)(pthread_attr_t *);
    int (*attr_destroy)(pthread_attr_t *);
    int (*attr_detached)(pthread_attr_t *, int);
    int (*attr_stack)(pthread_attr_t *, size_t);
};

struct start {
    void (*run)(void *arg);
    void *arg;
    char name[16]; /* PR_SET_NAME: 16 bytes with the final zero */
};

static bool find_calls(struct pthread_calls *c)
{
    c->create = gb_elf_find(NULL, "pthread_create");
    c->attr_init = gb_elf_find(NULL, "pthread_attr_init");
    c->attr_destroy = gb_elf_find(NULL, "pthread_attr_destroy");
    c->attr_detached = gb_elf_find(NULL, "pthread_attr_setdetachstate");
    c->attr_stack = gb_elf_find(NULL, "pthread_attr_setstacksize");
    return c->create && c->attr_init && c->attr_destroy && c->attr_detached && c->attr_stack;
}

static void *trampoline(void *p)
{
    struct start start = *(struct start *)p;
    munmap(p, sizeof start);
    prctl(PR_SET_NAME, (unsigned long)start.name, 0, 0, 0);
    start.run(start.arg);
    return NULL;
}

static bool create(struct start *start)
{
    struct pthread_calls call;
    pthread_attr_t attr;
    pthread_t id;
    if (!find_calls(&call) || call.attr_init(&attr) != 0)
        return false;
    int err = call.attr_detached(&attr, PTHREAD_CREATE_DETACHED);
    if (!err)
        err = call.attr_stack(&attr, STACK_BYTES);
    if (!err)
        err = call.create(&id, &attr, trampoline, start);
    call.attr_destroy(&attr);
    if (!err || call.attr_init(&attr) != 0)
        return !err;
    /* glibc takes static TLS out of the stack: with large TLS 256 KiB is refused (EINVAL), so try
     * once more with the default size. */
    err = call.attr_detached(&attr, PTHREAD_CREATE_DETACHED);
    if (!err)
        err = call.create(&id, &attr, trampoline, start);
    call.attr_destroy(&attr);
    return !err;
}

/* A synchronous signal that is blocked kills the process without running its handler (SIGSYS is
 * what a seccomp filter raises), so these stay open; everything else is for the application. */
static uint64_t blocked_signals(void)
{
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    uint64_t mask = ~UINT64_C(0);
    for (size_t i = 0; i < GB_ARRAY_LEN(open); i++)
        mask &= ~(UINT64_C(1) << (open[i] - 1));
    return mask;
}

bool gb_thread_start(void (*run)(void *arg), void *arg, const char *name)
{
    struct start *start =
        mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return false;
    start->run = run;
    start->arg = arg;
    for (size_t i = 0; name && name[i] && i < sizeof start->name - 1; i++)
        start->name[i] = name[i];

    /* Set before the start, so that the helper never runs with the application's mask. */
    uint64_t mask = blocked_signals(), old;
    bool masked = syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, KERNEL_SIG_SIZE) == 0;
    bool started = masked && create(start);
    if (masked)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, KERNEL_SIG_SIZE);
    if (!started)
        munmap(start, sizeof *start);
    return started;
}
