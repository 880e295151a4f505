/* log.c: lines on stderr that can neither hang nor kill the program. See log.h.
 *
 * A blocking write to a full pipe or a stopped terminal would hang us, and O_NONBLOCK on fd 2
 * itself would change it for every process that shares it. So for these we open our own
 * description of the same pipe or terminal (/proc/self/fd/2, proc(5)), non-blocking, and give up
 * after a while; sockets take MSG_DONTWAIT. Any thread; no lock; errno is kept.
 */
#include "base/log.h"

#include "base/file.h"
#include "base/sigguard.h"
#include "base/text.h"
#include "options/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024
#define PATIENCE_NS    1000000000u  /* for a reader that does not read */
#define LONGEST_NS     5000000000u  /* for one that reads very slowly */
#define WINDOW_NS      10000000000u /* rate limit: at most so many lines ... */
#define WINDOW_LINES   48u          /* ... in this time */

static bool never;           /* descriptor 2 is not a stderr */
static bool reader_is_stuck; /* waited in vain once: later lines do not wait again */
static uint64_t window_start_ns;
static uint32_t window_lines;
static uint32_t left_out;

/* Where to write and how: fd 2 itself, or our own non-blocking description of it. */
struct sink {
    int fd;
    bool own, socket;
};

static struct sink sink_open(void)
{
    struct sink sink = {.fd = STDERR_FILENO};
    struct stat st;
    if (gb_file_stat(STDERR_FILENO, &st) != 0)
        return sink;
    sink.socket = S_ISSOCK(st.st_mode);
    if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0)
            sink = (struct sink){.fd = fd, .own = true};
    }
    return sink;
}

static ssize_t sink_write(const struct sink *sink, const char *text, size_t length)
{
    if (sink->socket)
        return send(sink->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* Where we have only fd 2: poll says "writable" when PIPE_BUF bytes fit (pipe(7)). */
    if (!sink->own && length > PIPE_BUF)
        length = PIPE_BUF;
    return write(sink->fd, text, length);
}

/* False when the reader did not take anything until the deadline, or fd 2 is gone. */
static bool wait_writable(int fd, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = gb_now_ns();
        int left_ms = now < deadline_ns ? (int)((deadline_ns - now) / 1000000) + 1 : 0;
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        int n = poll(&p, 1, left_ms);
        if (n > 0)
            return !(p.revents & POLLNVAL);
        if (n == 0 || errno != EINTR)
            return false;
    }
}

static void write_all(const struct sink *sink, const char *text, size_t length)
{
    uint64_t start = gb_now_ns();
    bool stuck = __atomic_load_n(&reader_is_stuck, __ATOMIC_RELAXED);
    uint64_t deadline = stuck ? start : start + PATIENCE_NS;
    while (length) {
        if (!wait_writable(sink->fd, deadline)) {
            __atomic_store_n(&reader_is_stuck, true, __ATOMIC_RELAXED);
            return;
        }
        ssize_t n = sink_write(sink, text, length);
        if (n < 0 && errno != EINTR && (errno != EAGAIN || gb_now_ns() >= deadline))
            return;
        if (n <= 0)
            continue;
        __atomic_store_n(&reader_is_stuck, false, __ATOMIC_RELAXED);
        uint64_t next = gb_now_ns() + PATIENCE_NS;
        deadline = next < start + LONGEST_NS ? next : start + LONGEST_NS;
        text += n;
        length -= (size_t)n;
    }
}

void gb_log_start(void)
{
    struct stat st;
    never = gb_file_stat(STDERR_FILENO, &st) != 0;
}

void gb_log_raw(const char *text, size_t length)
{
    if (never)
        return;
    int kept_errno = errno;
    struct gb_sigguard guard;
    gb_sigguard_enter(&guard);
    struct sink sink = sink_open();
    write_all(&sink, text, length);
    if (sink.own)
        close(sink.fd);
    gb_sigguard_leave(&guard);
    errno = kept_errno;
}

/* At most WINDOW_LINES lines in WINDOW_NS. Threads may race here and let a line more through. */
static bool admitted(uint64_t now_ns)
{
    uint64_t start = __atomic_load_n(&window_start_ns, __ATOMIC_RELAXED);
    if (start == 0 || now_ns - start > WINDOW_NS) {
        __atomic_store_n(&window_start_ns, now_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&window_lines, 0, __ATOMIC_RELAXED);
    }
    if (__atomic_fetch_add(&window_lines, 1, __ATOMIC_RELAXED) < WINDOW_LINES)
        return true;
    __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
    return false;
}

static void say(const char *text)
{
    char line[LINE_MAX_BYTES];
    struct gb_text t;
    gb_text_init(&t, line, sizeof line - 1);
    gb_text_add(&t, "gpuboost: ");
    gb_text_add_clean(&t, text);
    line[t.used] = '\n';
    gb_log_raw(line, t.used + 1);
}

void gb_log(enum gb_log_level level, const char *format, ...)
{
    if ((int)level > gb_config.log)
        return;
    int kept_errno = errno;
    char text[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n >= 0 && admitted(gb_now_ns())) {
        uint32_t missing = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
        if (missing) {
            char note[64];
            snprintf(note, sizeof note, "%u lines were left out here", missing);
            say(note);
        }
        say(text);
    }
    errno = kept_errno;
}
