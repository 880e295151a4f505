/* record.c: events in, files out. See record.h for the rules.
 *
 * One helper thread wakes every 250 ms and does the periodic work of record_files.h. The files
 * belong to whoever holds `io`; at exit the destructor takes it for a limited time only, since the
 * helper may hang in a write to a dead file system. Nothing is said on stderr while holding it.
 */
#include "record/record.h"

#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "options/config.h"
#include "record/record_files.h"
#include "stall/summary.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS      250000000u
#define EXIT_WAIT_NS 2000000000u

enum state { IDLE, OPEN, OFF, CLOSED, FORKED };

static int state_now;
static uint32_t stop; /* futex: the helper sleeps on it, 1 wakes it for good */
static gb_lock io;    /* guards the files */
static struct gb_ring ring;

static enum state get_state(void)
{
    return (enum state)__atomic_load_n(&state_now, __ATOMIC_ACQUIRE);
}

static void set_state(enum state state)
{
    __atomic_store_n(&state_now, state, __ATOMIC_RELEASE);
}

/* After any work on the files: a failure ends the record, once and with one line. */
static void release_io(void)
{
    bool failed = get_state() == OPEN && *gb_files_problem();
    if (failed) {
        set_state(OFF);
        gb_files_close();
    }
    gb_lock_release(&io);
    if (failed)
        gb_log(GB_LOG_WARN, "the record is off: %s", gb_files_problem());
}

static void sleep_tick(void)
{
    struct timespec tick = {0, TICK_NS};
    syscall(SYS_futex, &stop, FUTEX_WAIT_PRIVATE, 0, &tick, NULL, 0);
}

static void helper(void *unused)
{
    (void)unused;
    while (get_state() == OPEN) {
        sleep_tick();
        gb_lock_acquire(&io);
        if (get_state() == OPEN)
            gb_files_tick(&ring, gb_now_ns());
        release_io();
    }
}

void gb_record_open(void)
{
    if (get_state() != IDLE)
        return;
    gb_files_describe_run();
    if (strcmp(gb_config.out, "none") == 0) {
        set_state(OFF);
        return;
    }
    gb_ring_init(&ring);
    gb_lock_acquire(&io);
    gb_files_open();
    set_state(OPEN);
    release_io();
    if (get_state() != OPEN)
        return;
    if (gb_files_renamed())
        gb_log(GB_LOG_WARN, "GPUBOOST_OUT holds an earlier run; this one is in %s",
               gb_files_path());
    if (!gb_thread_start(helper, NULL, "gpuboost-record"))
        gb_log(GB_LOG_INFO, "no helper thread: the record is written at exit only");
}

void gb_record_stall(const struct gb_stall_event *event)
{
    if (get_state() == OPEN)
        gb_ring_push(&ring, event);
}

static void close_files(uint64_t now_ns)
{
    if (!gb_lock_acquire_for(&io, EXIT_WAIT_NS)) {
        gb_log(GB_LOG_WARN, "the end of the record in %s was not written: the file system hangs",
               gb_files_path());
        return;
    }
    if (get_state() == OPEN)
        gb_files_finish(&ring, now_ns);
    release_io();
}

static void say_summary(uint64_t now_ns)
{
    static char text[8192];
    const struct gb_run_info *run = gb_files_run();
    const struct gb_summary s = {
        .program = run->program,
        .rank = run->rank,
        .device = gb_files_device(0),
        .pid = run->pid,
        .wall_ns = now_ns - run->start_ns,
        .now_ns = now_ns,
        .dropped = gb_ring_dropped(&ring, true),
        .record_path = gb_files_path(),
        .record_problem = gb_files_problem(),
    };
    struct gb_text t;
    gb_text_init(&t, text, sizeof text);
    gb_summary_write(&t, &s);
    gb_log_raw(text, t.used);
}

void gb_record_close(void)
{
    enum state state = get_state();
    if (state != OPEN && state != OFF)
        return;
    uint64_t now = gb_now_ns();
    if (state == OPEN)
        close_files(now);
    set_state(CLOSED);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (gb_config.summary)
        say_summary(now);
}

const char *gb_record_path(void)
{
    return gb_files_path();
}

void gb_record_after_fork(void)
{
    /* A parent that never used CUDA has nothing to protect: its child may open a record. */
    if (get_state() == IDLE)
        return;
    set_state(FORKED);
    io.state = 0;
    gb_files_close();
}
