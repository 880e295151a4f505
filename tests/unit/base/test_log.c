/* test_log.c: lines on a stderr that is closed, full, broken or flooded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "options/config.h"

static char got[1 << 20];

/* Runs `body` with fd 2 replaced; the runner's own stderr comes back afterwards. */
static void with_stderr(int fd, void (*body)(void))
{
    int kept = dup(2);
    if (fd >= 0)
        dup2(fd, 2);
    else
        close(2);
    body();
    dup2(kept, 2);
    close(kept);
}

static size_t take(int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    ssize_t n = read(fd, got, sizeof got - 1);
    got[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

static void say_one(void)
{
    errno = ENOTTY;
    gb_log(GB_LOG_WARN, "%s %d", "hello", 5);
    assert_int_equal(errno, ENOTTY);
}

static void one_line_with_the_prefix(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    with_stderr(p[1], say_one);
    take(p[0]);
    assert_string_equal(got, "gpuboost: hello 5\n");
    gb_config.log = GB_LOG_QUIET;
    with_stderr(p[1], say_one);
    gb_config.log = GB_LOG_WARN;
    assert_int_equal(take(p[0]), 0);
    close(p[0]);
    close(p[1]);
}

static void say_hostile(void)
{
    static char huge[100000];
    memset(huge, 'y', sizeof huge - 1);
    gb_log(GB_LOG_WARN, "a\nb\x1b[2J%s", "\xe2\x80\xae");
    gb_log(GB_LOG_WARN, "%s", huge);
}

static void lines_are_clean_and_bounded(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    with_stderr(p[1], say_hostile);
    size_t n = take(p[0]);
    static const char first[] = "gpuboost: a\\x0ab\\x1b[2J\\xe2\\x80\\xae\ngpuboost: yyyy";
    assert_int_equal(strncmp(got, first, sizeof first - 1), 0);
    assert_true(n < 1200 && got[n - 1] == '\n');
    close(p[0]);
    close(p[1]);
}

static void closed_stderr_is_survived(void **state)
{
    (void)state;
    with_stderr(-1, say_one);
}

/* Default action of SIGPIPE: the child would die of it. A SIGPIPE that was pending stays. */
static void broken_pipe_raises_nothing(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        int p[2];
        sigset_t set, pending;
        if (pipe(p) != 0)
            _exit(1);
        close(p[0]);
        signal(SIGPIPE, SIG_DFL);
        dup2(p[1], 2);
        gb_log_raw("x\n", 2);
        sigpending(&pending);
        if (sigismember(&pending, SIGPIPE))
            _exit(2);
        sigemptyset(&set);
        sigaddset(&set, SIGPIPE);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGPIPE);
        gb_log_raw("x\n", 2);
        sigpending(&pending);
        if (!sigismember(&pending, SIGPIPE))
            _exit(3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void flood(void)
{
    static char text[256 << 10];
    memset(text, 'z', sizeof text);
    for (int i = 0; i < 20; i++)
        gb_log_raw(text, sizeof text);
}

static void assert_still_blocking(int fd)
{
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

/* Nobody reads: the first text waits a while, later ones not at all. The alarm kills a hang. */
static void full_pipe_does_not_hang(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    alarm(60);
    with_stderr(p[1], flood);
    alarm(0);
    assert_still_blocking(p[1]); /* shared with other processes: not ours to change */
    assert_true(take(p[0]) >= 4096);
    with_stderr(p[1], say_one); /* there is room again */
    take(p[0]);
    assert_non_null(strstr(got, "gpuboost: hello 5\n"));
    close(p[0]);
    close(p[1]);
}

static void full_socket_does_not_hang(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
    alarm(60);
    with_stderr(p[1], flood);
    alarm(0);
    assert_still_blocking(p[1]);
    assert_true(take(p[0]) > 0);
    close(p[0]);
    close(p[1]);
}

static void full_terminal_does_not_hang(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        print_message("no pseudo terminals here\n");
        skip();
    }
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    alarm(60);
    with_stderr(terminal, flood);
    alarm(0);
    assert_still_blocking(terminal);
    assert_true(take(master) > 0);
    close(terminal);
    close(master);
}

static volatile sig_atomic_t interrupts;
static void on_alarm(int sig)
{
    (void)sig;
    interrupts++;
}

static void interrupted_writer(void)
{
    static char text[512 << 10];
    memset(text, 'q', sizeof text);
    gb_log_raw(text, sizeof text);
}

/* A slow reader and a signal every millisecond: everything arrives, in one piece. */
static void interrupts_and_short_writes_lose_nothing(void **state)
{
    (void)state;
    int p[2], status;
    assert_int_equal(pipe(p), 0);
    pid_t reader = fork();
    if (reader == 0) {
        size_t n = 0;
        close(p[1]);
        for (ssize_t k; (k = read(p[0], got, 3001)) > 0; n += (size_t)k)
            for (ssize_t i = 0; i < k; i++)
                if (got[i] != 'q')
                    _exit(2);
        _exit(n == 512 << 10 ? 0 : 1);
    }
    close(p[0]);
    struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    with_stderr(p[1], interrupted_writer);
    setitimer(ITIMER_REAL, &off, NULL);
    signal(SIGALRM, SIG_DFL);
    close(p[1]);
    while (waitpid(reader, &status, 0) < 0 && errno == EINTR)
        ;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void say_many(void)
{
    for (int i = 0; i < 1000; i++)
        gb_log(GB_LOG_WARN, "line %d", i);
}

static void floods_are_cut(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    with_stderr(p[1], say_many);
    take(p[0]);
    int lines = 0;
    for (const char *s = got; (s = strchr(s, '\n')) != NULL; s++)
        lines++;
    assert_in_range(lines, 10, 60);
    close(p[0]);
    close(p[1]);
}

int main(void)
{
    gb_config.log = GB_LOG_WARN;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_with_the_prefix),
        cmocka_unit_test(lines_are_clean_and_bounded),
        cmocka_unit_test(closed_stderr_is_survived),
        cmocka_unit_test(broken_pipe_raises_nothing),
        cmocka_unit_test(full_pipe_does_not_hang),
        cmocka_unit_test(full_socket_does_not_hang),
        cmocka_unit_test(full_terminal_does_not_hang),
        cmocka_unit_test(interrupts_and_short_writes_lose_nothing),
        cmocka_unit_test(floods_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
