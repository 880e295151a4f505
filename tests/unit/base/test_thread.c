/* test_thread.c: a helper runs detached, named, with synchronous signals open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"

struct seen {
    sem_t done;
    char name[17];
    sigset_t mask;
    int detached;
    size_t stack_bytes;
    cpu_set_t cpus;
};

static void look_around(void *arg)
{
    struct seen *s = arg;
    pthread_attr_t attr;
    prctl(PR_GET_NAME, s->name, 0, 0, 0);
    pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
    sched_getaffinity(0, sizeof s->cpus, &s->cpus);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getdetachstate(&attr, &s->detached);
    pthread_attr_getstacksize(&attr, &s->stack_bytes);
    pthread_attr_destroy(&attr);
    sem_post(&s->done);
}

static void run_helper(struct seen *s, const char *name)
{
    memset(s, 0, sizeof *s);
    sem_init(&s->done, 0, 0);
    assert_true(gb_thread_start(look_around, s, name));
    while (sem_wait(&s->done) != 0)
        ;
}

static void helper_is_named_small_and_detached(void **state)
{
    (void)state;
    struct seen s;
    run_helper(&s, "gb-copy-0123456789");
    assert_string_equal(s.name, "gb-copy-0123456"); /* 15 characters, as prctl(2) has it */
    assert_int_equal(s.detached, PTHREAD_CREATE_DETACHED);
    assert_in_range(s.stack_bytes, 128u << 10, 512u << 10);
    run_helper(&s, NULL);
}

static void helper_leaves_synchronous_signals_open(void **state)
{
    (void)state;
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    static const int blocked[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE, SIGPROF};
    struct seen s;
    run_helper(&s, "gb-test");
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_int_equal(sigismember(&s.mask, open[i]), 0);
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
        assert_int_equal(sigismember(&s.mask, blocked[i]), 1);
    assert_int_equal(sigismember(&s.mask, SIGRTMAX), 1);
}

static void callers_mask_and_affinity_are_kept(void **state)
{
    (void)state;
    sigset_t before, after;
    cpu_set_t cpus;
    struct seen s;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    run_helper(&s, "gb-test");
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int sig = 1; sig < 32; sig++)
        assert_int_equal(sigismember(&after, sig), sig == SIGUSR2);
    sigemptyset(&before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sched_getaffinity(0, sizeof cpus, &cpus);
    assert_true(CPU_EQUAL(&cpus, &s.cpus));
}

static void nothing(void *arg)
{
    (void)arg;
}

/* In a child, since the limit cannot be raised again. Root is not bound by RLIMIT_NPROC, so the
 * refusal comes from the address space. */
static void no_room_means_false_and_no_harm(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {1, 1};
        setrlimit(RLIMIT_AS, &none);
        _exit(gb_thread_start(nothing, NULL, "gb-test") ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void many_helpers_start_and_end(void **state)
{
    (void)state;
    struct seen s;
    for (int i = 0; i < 500; i++)
        run_helper(&s, "gb-many");
    assert_string_equal(s.name, "gb-many");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helper_is_named_small_and_detached),
        cmocka_unit_test(helper_leaves_synchronous_signals_open),
        cmocka_unit_test(callers_mask_and_affinity_are_kept),
        cmocka_unit_test(no_room_means_false_and_no_harm),
        cmocka_unit_test(many_helpers_start_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
