/* record_files.c: what is written to the run directory and when. See record_files.h. */
#include "record/record_files.h"

#include "base/version.h"
#include "options/config.h"
#include "options/environment.h"
#include "record/rundir.h"
#include "record/writer.h"
#include "stack/native_stack.h"
#include "stack/pystack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES   (4u << 20) /* a snapshot of GB_SITE_MAX sites, 420 bytes each at most */
#define FILE_CAP_BYTES (64ull << 20)
#define SNAPSHOT_NS    1000000000u
#define DEVICES_MAX    32

static struct {
    struct gb_run_info run;
    struct gb_rundir dir;
    struct gb_writer lines, stalls;
    char *buffer;
    uint64_t last_snapshot_ns, last_hash;
    uint64_t stalls_not_listed;
    char python[160], native[160]; /* stack states as last written */
    uint8_t known[GB_SITE_MAX / 8];
    char problem[GB_RUNDIR_PATH_BYTES + 200];
} files;

enum device_state { DEVICE_EMPTY, DEVICE_BEING_NAMED, DEVICE_NAMED, DEVICE_WRITTEN };
static struct {
    char name[64];
    int state;
} devices[DEVICES_MAX];

const struct gb_run_info *gb_files_run(void)
{
    return &files.run;
}

const char *gb_files_path(void)
{
    return files.dir.path;
}

const char *gb_files_problem(void)
{
    return files.problem;
}

bool gb_files_renamed(void)
{
    return files.dir.renamed;
}

/* ---- lines ---- */

static void put(struct gb_writer *w, const char *text, size_t length)
{
    if (*files.problem || !length || gb_writer_line(w, text, length))
        return;
    snprintf(files.problem, sizeof files.problem, "%s/%s: %s", files.dir.path,
             w == &files.lines ? "record.jsonl" : "stalls.log", gb_errno_text(w->error));
}

static struct gb_json begin_line(void)
{
    struct gb_json j;
    gb_json_init(&j, files.buffer, BUFFER_BYTES);
    return j;
}

static void put_line(struct gb_json *j)
{
    put(&files.lines, files.buffer, gb_json_finish(j));
}

/* The interpreter may be proven only after the record was opened: written again when it changes. */
static void put_stacks(void)
{
    const char *python = gb_pystack_status(), *native = gb_native_stack_status();
    if (strncmp(python, files.python, sizeof files.python - 1) == 0 &&
        strncmp(native, files.native, sizeof files.native - 1) == 0)
        return;
    snprintf(files.python, sizeof files.python, "%s", python);
    snprintf(files.native, sizeof files.native, "%s", native);
    struct gb_json j = begin_line();
    gb_line_stacks(&j, files.python, files.native);
    put_line(&j);
}

static void put_devices(void)
{
    for (int i = 0; i < DEVICES_MAX; i++) {
        if (__atomic_load_n(&devices[i].state, __ATOMIC_ACQUIRE) != DEVICE_NAMED)
            continue;
        struct gb_json j = begin_line();
        gb_line_device(&j, i, devices[i].name);
        put_line(&j);
        __atomic_store_n(&devices[i].state, DEVICE_WRITTEN, __ATOMIC_RELEASE);
    }
}

static void put_new_sites(void)
{
    uint32_t count = gb_site_count();
    for (uint32_t id = 0; id < count && id < GB_SITE_MAX; id++) {
        struct gb_site *site = gb_site_at(id);
        uint8_t bit = (uint8_t)(1u << id % 8);
        if ((files.known[id / 8] & bit) ||
            !(GB_READ(site->calls) | GB_READ(site->bubbles) | GB_READ(site->elided)))
            continue;
        struct gb_json j = begin_line();
        gb_line_site(&j, site);
        put_line(&j);
        files.known[id / 8] |= bit;
    }
}

static uint64_t hash(const char *data, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)data[i]) * 0x100000001b3u;
    return h;
}

static void put_snapshot(uint64_t dropped, uint64_t now_ns, bool last)
{
    put_stacks();
    put_devices();
    put_new_sites();
    struct gb_json j = begin_line();
    uint64_t t_ns = now_ns - files.run.start_ns;
    size_t behind_time = gb_line_snapshot(&j, t_ns, dropped, files.known);
    uint64_t h = hash(files.buffer + behind_time, j.used - behind_time);
    if (h != files.last_hash || last)
        put_line(&j);
    files.last_hash = h;
    files.last_snapshot_ns = now_ns;
}

static bool snapshot_is_due(uint64_t now_ns)
{
    uint64_t since = now_ns - files.last_snapshot_ns;
    if (files.lines.bytes > FILE_CAP_BYTES)
        return since > (files.last_snapshot_ns - files.run.start_ns) / 4;
    return since >= SNAPSHOT_NS;
}

static void put_stall(const struct gb_stall_event *event)
{
    static char line[8192];
    struct gb_text t;
    if (event->blocked_ns < gb_config.stall_ns && event->idle_ns < gb_config.stall_ns)
        return;
    if (files.stalls.bytes > FILE_CAP_BYTES) {
        files.stalls_not_listed++;
        return;
    }
    gb_text_init(&t, line, sizeof line);
    gb_line_stall(&t, event, files.run.start_ns);
    line[t.used - 1] = '\n'; /* even when a name filled the line */
    put(&files.stalls, line, t.used);
}

static void drain(struct gb_ring *ring)
{
    struct gb_stall_event event;
    for (uint32_t i = 0; i < GB_RING_CELLS && gb_ring_pop(ring, &event); i++)
        put_stall(&event);
}

void gb_files_tick(struct gb_ring *ring, uint64_t now_ns)
{
    drain(ring);
    if (snapshot_is_due(now_ns))
        put_snapshot(gb_ring_dropped(ring, false), now_ns, false);
}

static void put_stall_tail(uint64_t dropped)
{
    char line[128];
    struct gb_text t;
    if (!files.stalls_not_listed && !dropped)
        return;
    gb_text_init(&t, line, sizeof line);
    gb_text_add(&t, "# %llu further stalls are not listed, %llu were dropped\n",
                (unsigned long long)files.stalls_not_listed, (unsigned long long)dropped);
    put(&files.stalls, line, t.used);
}

void gb_files_finish(struct gb_ring *ring, uint64_t now_ns)
{
    drain(ring);
    uint64_t dropped = gb_ring_dropped(ring, true);
    put_stall_tail(dropped);
    put_snapshot(dropped, now_ns, true);
    struct gb_json j = begin_line();
    gb_line_end(&j, now_ns - files.run.start_ns, "exit");
    put_line(&j);
}

void gb_files_close(void)
{
    gb_writer_close(&files.lines);
    gb_writer_close(&files.stalls);
}

/* ---- opening ---- */

void gb_files_describe_run(void)
{
    struct utsname host;
    struct timespec now;
    struct gb_run_info *run = &files.run;
    clock_gettime(CLOCK_REALTIME, &now);
    run->start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    run->start_ns = files.last_snapshot_ns = gb_now_ns();
    run->program = program_invocation_short_name;
    run->rank = gb_environment.rank;
    run->job = gb_environment.job;
    run->pid = (long)getpid();
    snprintf(run->host, sizeof run->host, "%s", uname(&host) == 0 ? host.nodename : "");
}

static bool make_dir(void)
{
    const struct gb_rundir_names names = {
        .out = gb_config.out,
        .state_home = gb_environment.state_home,
        .home = gb_environment.home,
        .program = files.run.program,
        .host = files.run.host,
        .rank = files.run.rank,
        .job = files.run.job,
        .pid = files.run.pid,
        .unix_seconds = files.run.start_unix_ns / 1000000000u,
    };
    if (gb_rundir_make(&names, &files.dir))
        return true;
    snprintf(files.problem, sizeof files.problem, "%s: %s",
             *files.dir.path ? files.dir.path : "run directory", files.dir.error);
    files.dir.path[0] = 0;
    return false;
}

static bool make_buffer(void)
{
    void *memory =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    files.buffer = memory == MAP_FAILED ? NULL : memory;
    if (!files.buffer)
        snprintf(files.problem, sizeof files.problem, "%s", gb_errno_text(errno));
    return files.buffer != NULL;
}

static void put_heads(void)
{
    static char line[512];
    struct gb_text t;
    struct gb_json j = begin_line();
    gb_line_run(&j, &files.run);
    put_line(&j);
    gb_text_init(&t, line, sizeof line);
    gb_text_add(&t, "# gpuboost %s: stalls of ", GB_VERSION);
    gb_text_add_clean(&t, files.run.program);
    gb_text_add(&t, " (pid %ld), listed from ", files.run.pid);
    gb_text_add_duration(&t, gb_config.stall_ns);
    gb_text_add(&t, "; time is since the first CUDA call\n");
    put(&files.stalls, line, t.used);
}

bool gb_files_open(void)
{
    if (!make_buffer() || !make_dir())
        return false;
    gb_writer_open(&files.lines, files.dir.record_fd);
    gb_writer_open(&files.stalls, files.dir.stalls_fd);
    put_heads();
    return !*files.problem;
}

/* ---- devices ---- */

void gb_record_device(int ordinal, const char *name)
{
    int empty = DEVICE_EMPTY;
    if (ordinal < 0 || ordinal >= DEVICES_MAX ||
        !__atomic_compare_exchange_n(&devices[ordinal].state, &empty, DEVICE_BEING_NAMED, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    snprintf(devices[ordinal].name, sizeof devices[ordinal].name, "%s", name);
    __atomic_store_n(&devices[ordinal].state, DEVICE_NAMED, __ATOMIC_RELEASE);
}

const char *gb_files_device(int ordinal)
{
    int state = __atomic_load_n(&devices[ordinal].state, __ATOMIC_ACQUIRE);
    return state >= DEVICE_NAMED ? devices[ordinal].name : "";
}
