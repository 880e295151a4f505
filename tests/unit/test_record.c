/* test_record.c: what the record holds, and what it does when it cannot be written.
 *
 * The record lives once per process, so each run happens in a forked child; the parent reads the
 * files it left. What the child says on stderr is read too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "record_fakes.h"

#define MS 1000000ull

static char root[64], out_dir[128];
static char record[4 << 20], stalls[4 << 20], said[1 << 16];

/* ---- a JSON reader that only says yes or no ---- */

static const char *skip_value(const char *s);

static const char *skip_string(const char *s)
{
    if (*s++ != '"')
        return NULL;
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20)
            return NULL;
        s += *s == '\\';
    }
    return s + 1;
}

static const char *skip_members(const char *s, char close, bool keys)
{
    if (*s == close)
        return s + 1;
    for (;; s++) {
        if (keys && (!(s = skip_string(s)) || *s++ != ':'))
            return NULL;
        if (!(s = skip_value(s)) || *s == close)
            return s ? s + 1 : NULL;
        if (*s != ',')
            return NULL;
    }
}

static const char *skip_value(const char *s)
{
    if (*s == '{' || *s == '[')
        return skip_members(s + 1, *s == '{' ? '}' : ']', *s == '{');
    if (*s == '"')
        return skip_string(s);
    if (strncmp(s, "null", 4) == 0)
        return s + 4;
    size_t n = strspn(s + (*s == '-'), "0123456789");
    return n ? s + (*s == '-') + n : NULL;
}

/* Counts the whole lines; each must be one JSON object. */
static int assert_lines_are_json(const char *text)
{
    int lines = 0;
    for (const char *newline; (newline = strchr(text, '\n')) != NULL; text = newline + 1, lines++) {
        assert_int_equal(*text, '{');
        assert_ptr_equal(skip_value(text), newline);
    }
    return lines;
}

/* ---- one run in a child ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/test_record.XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(out_dir, sizeof out_dir, "%s/run", root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void read_text(const char *name, char *buf, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", out_dir, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : 0;
    buf[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static void read_files(void)
{
    read_text("record.jsonl", record, sizeof record);
    read_text("stalls.log", stalls, sizeof stalls);
}

static pid_t start(void (*body)(void), int *stderr_fd)
{
    int p[2];
    assert_int_equal(pipe(p), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        dup2(p[1], 2);
        close(p[0]);
        close(p[1]);
        gb_config_load();
        gb_config.out = out_dir;
        fake_reset();
        body();
        _exit(0);
    }
    close(p[1]);
    *stderr_fd = p[0];
    return child;
}

/* Its wait status; reads all it said and the files it left. */
static int finish(pid_t child, int stderr_fd)
{
    size_t used = 0;
    int status;
    for (ssize_t n; (n = read(stderr_fd, said + used, sizeof said - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = 0;
    close(stderr_fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    read_files();
    return status;
}

static int run(void (*body)(void))
{
    int fd;
    pid_t child = start(body, &fd);
    return finish(child, fd);
}

static void push(uint64_t blocked_ns, uint64_t idle_ns, uint32_t site)
{
    struct gb_stall_event e = {gb_now_ns(), blocked_ns, 2 * MS, UINT64_MAX, idle_ns, 4096, site, 7};
    gb_record_stall(&e);
}

static void use_gpu(void)
{
    fake_totals.first_enqueue_ns = gb_now_ns();
    fake_totals.launches++;
}

static void wait_until_written(const char *file, const char *text)
{
    char *buf = strcmp(file, "stalls.log") == 0 ? stalls : record;
    struct timespec step = {0, 20 * (long)MS};
    for (;;) { /* the alarm ends a wait in vain */
        read_text(file, buf, sizeof record);
        if (strstr(buf, text))
            return;
        nanosleep(&step, NULL);
    }
}

/* ---- an ordinary run ---- */

static void ordinary_run(void)
{
    gb_record_open();
    fake_stack(1, 0, "/x/train.py", 41, "train \"quoted\"");
    fake_stack(1, 1, "/x/train.py", -1, "<module>");
    struct gb_site *sync = fake_site(FAKE_SYNC, 1, 3, 5 * MS);
    sync->blocked_ns = 12 * MS;
    sync->queued_ns = 7 * MS;
    struct gb_site *copy = fake_site(FAKE_COPY, 0, 1, 0);
    copy->blocked_ns = copy->unsplit_ns = MS;
    copy->native_count = 1;
    copy->native_pcs[0] = (void *)0x12;
    fake_site(FAKE_FREE, 0, 0, 0); /* never called: not in the record */
    fake_counts[0] = (struct gb_named_count){"h2d.staged", 9};
    fake_count_count = 1;
    use_gpu();
    push(12 * MS, 5 * MS, 1);
    push(MS / 2, 0, 1); /* below the threshold */
    push(0, 3 * MS, 2);
    gb_record_device(0, "SIMULATED \x01");
    gb_record_device(0, "again");
    gb_record_device(-1, "x");
    gb_record_device(1 << 20, "x");
    gb_record_close();
    gb_record_close();
}

static void ordinary_run_is_recorded(void **state)
{
    (void)state;
    assert_int_equal(run(ordinary_run), 0);
    assert_int_equal(assert_lines_are_json(record), 7);
    static const char *const parts[] = {
        "{\"type\":\"run\",\"format\":1,\"version\":\"0.1.0\",\"pid\":",
        "\"rank\":null,\"job\":null,\"program\":\"test_record\"",
        "\"policy\":\"safe\",\"config\":{\"GPUBOOST_DISABLE\":{\"value\":\"off\",\"source\":"
        "\"default\"}",
        "{\"type\":\"stacks\",\"python\":\"on: CPython 3.11.7, fixed table\",\"native\":\"off: ",
        "{\"type\":\"device\",\"ordinal\":0,\"name\":\"SIMULATED \\u0001\"}\n",
        "{\"type\":\"site\",\"id\":1,\"call\":\"cudaStreamSynchronize\",\"family\":\"sync\","
        "\"module\":\"libtorch_cuda.so\",\"frames\":[{\"file\":\"/x/train.py\",\"line\":41,"
        "\"func\":\"train \\\"quoted\\\"\"},{\"file\":\"/x/train.py\",\"line\":null,",
        "\"native\":[\"libtorch_cuda.so+0x12\"]}\n",
        "\"counts\":{\"h2d.staged\":9},\"dropped_events\":0,\"sites\":[{\"id\":1,\"calls\":3,",
        "\"last_drain_ns\":null,\"idle_ns\":0,",
        "\"blocked_ns\":12000000,\"max_blocked_ns\":0,\"queued_ns\":7000000,\"transfer_ns\":0,",
        /* nothing of it could be split: n/a, not 0 */
        "\"blocked_ns\":1000000,\"max_blocked_ns\":0,\"queued_ns\":null,\"transfer_ns\":null,",
    };
    for (size_t i = 0; i < GB_ARRAY_LEN(parts); i++)
        if (!strstr(record, parts[i]))
            fail_msg("missing: %s\nin: %s", parts[i], record);
    assert_null(strstr(record, "cudaFree"));
    assert_null(strstr(record, "again"));
    const char *end = strstr(record, "{\"type\":\"end\",\"t_ns\":");
    assert_non_null(end);
    assert_string_equal(strstr(end, ",\"reason\""), ",\"reason\":\"exit\"}\n");
    assert_true(strstr(record, "\"type\":\"site\"") < strstr(record, "\"type\":\"snapshot\""));
}

static void stalls_are_readable_lines(void **state)
{
    (void)state;
    assert_int_equal(run(ordinary_run), 0);
    assert_non_null(strstr(stalls, "# gpuboost 0.1.0: stalls of test_record (pid "));
    assert_non_null(strstr(stalls, " s  blocked 12.0 ms (queued 2.0 ms, transfer n/a)  idle 5.0 ms"
                                   "  4.0 KiB  cudaStreamSynchronize  /x/train.py:41 (train "
                                   "\"quoted\")  tid 7\n"));
    assert_non_null(strstr(stalls, "blocked 0 ns"));
    int lines = 0;
    for (const char *s = stalls; *s; s++)
        lines += *s == '\n';
    assert_int_equal(lines, 3);
    assert_non_null(strstr(said, "gpuboost: record   "));
    const char *first = strstr(said, "verdict");
    assert_null(strstr(first + 1, "verdict")); /* the second close says nothing */
}

/* ---- what must not write ---- */

static void never_armed(void)
{
    push(5 * MS, 5 * MS, 0);
    gb_record_device(0, "x");
    gb_record_close();
}

static void a_process_that_never_armed_is_silent(void **state)
{
    (void)state;
    assert_int_equal(run(never_armed), 0);
    assert_string_equal(said, "");
    assert_int_equal(access(out_dir, F_OK), -1);
}

static void without_a_record(void)
{
    gb_config.out = "none";
    gb_record_open();
    use_gpu();
    push(5 * MS, 5 * MS, 0);
    gb_record_close();
}

static void none_means_summary_only(void **state)
{
    (void)state;
    assert_int_equal(run(without_a_record), 0);
    assert_non_null(strstr(said, "record   none (GPUBOOST_OUT=none)"));
    assert_int_equal(access(out_dir, F_OK), -1);
}

static void quiet_exit(void)
{
    gb_config.summary = false;
    gb_record_open();
    gb_record_close();
}

static void summary_can_be_switched_off(void **state)
{
    (void)state;
    assert_int_equal(run(quiet_exit), 0);
    assert_string_equal(said, "");
    assert_non_null(strstr(record, "\"type\":\"end\""));
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 3; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void fork_a_child(void)
{
    int status, before = open_descriptors();
    gb_record_open();
    if (open_descriptors() != before + 2)
        _exit(2);
    use_gpu();
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            gb_record_after_fork();
            push(9 * MS, 9 * MS, 0);
            gb_record_close();
            _exit(open_descriptors() != before);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            _exit(1);
    }
    gb_record_close();
}

static void forked_children_are_inert(void **state)
{
    (void)state;
    assert_int_equal(run(fork_a_child), 0);
    assert_null(strstr(stalls, "blocked 9.0 ms"));
    const char *end = strstr(record, "\"type\":\"end\"");
    assert_non_null(end);
    assert_null(strstr(end + 1, "\"type\":\"end\""));
}

static void fork_before_use(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        gb_record_after_fork();
        gb_record_open(); /* only the child uses the GPU */
        gb_record_close();
        _exit(*gb_record_path() ? 0 : 1);
    }
    waitpid(child, &status, 0);
    _exit(status);
}

static void a_child_of_an_unarmed_parent_records(void **state)
{
    (void)state;
    assert_int_equal(run(fork_before_use), 0);
    assert_non_null(strstr(record, "\"type\":\"end\""));
}

/* ---- while it runs ---- */

static void run_until_killed(void)
{
    gb_record_open();
    fake_site(FAKE_SYNC, 0, 1, MS);
    use_gpu();
    push(5 * MS, 0, 1);
    for (;;)
        pause();
}

static void killed_runs_keep_what_was_flushed(void **state)
{
    (void)state;
    int fd;
    pid_t child = start(run_until_killed, &fd);
    alarm(60);
    wait_until_written("stalls.log", "blocked 5.0 ms");
    wait_until_written("record.jsonl", "\"type\":\"snapshot\"");
    kill(child, SIGKILL);
    assert_true(WIFSIGNALED(finish(child, fd)));
    alarm(0);
    assert_true(assert_lines_are_json(record) >= 4);
    assert_null(strstr(record, "\"type\":\"end\""));
}

static void idle_for_three_seconds(void)
{
    struct timespec three = {3, 0};
    gb_record_open();
    use_gpu();
    nanosleep(&three, NULL);
    gb_record_close();
}

static void unchanged_figures_are_not_repeated(void **state)
{
    (void)state;
    assert_int_equal(run(idle_for_three_seconds), 0);
    int snapshots = 0;
    for (const char *s = record; (s = strstr(s, "\"snapshot\"")) != NULL; s++)
        snapshots++;
    assert_in_range(snapshots, 2, 3); /* when it changed, and at the end */
}

static void full_table(void)
{
    static char name[3000];
    gb_record_open();
    memset(name, 'n', sizeof name - 1);
    fake_stack(1, 0, name, 1, name);
    while (fake_site_count < GB_SITE_MAX) {
        struct gb_site *s = fake_site(FAKE_SYNC, 0, UINT64_MAX, UINT64_MAX);
        s->bytes = s->blocked_ns = s->max_blocked_ns = s->queued_ns = UINT64_MAX;
        s->transfer_ns = s->staged = s->bubbles = UINT64_MAX;
    }
    fake_sites[9].stack_id = 1;
    push(5 * MS, 5 * MS, 9);
    push(5 * MS, 5 * MS, 999999); /* no such site */
    gb_record_close();
}

static void a_full_table_fits_one_snapshot(void **state)
{
    (void)state;
    assert_int_equal(run(full_table), 0);
    assert_lines_are_json(record);
    assert_non_null(strstr(record, "{\"id\":4095,\"calls\":18446744073709551615,"));
    assert_non_null(strstr(stalls, "(places beyond the table"));
}

static void overflow_the_ring(void)
{
    gb_record_open();
    for (int i = 0; i < 200000; i++)
        push(5 * MS, 0, 0);
    gb_record_close();
}

static void lost_events_are_counted(void **state)
{
    (void)state;
    assert_int_equal(run(overflow_the_ring), 0);
    const char *last = record, *next;
    while ((next = strstr(last + 1, "\"dropped_events\":")) != NULL)
        last = next;
    unsigned long dropped = strtoul(last + strlen("\"dropped_events\":"), NULL, 10), listed = 0;
    for (const char *s = stalls; (s = strstr(s, "blocked 5.0 ms")) != NULL; s++)
        listed++;
    assert_true(dropped > 0);
    assert_int_equal(dropped + listed, 200000);
}

/* ---- failures: one line, and everything else goes on ---- */

static void assert_record_off(const char *reason)
{
    char line[256];
    snprintf(line, sizeof line, "gpuboost: the record is off: %s", reason);
    const char *at = strstr(said, "gpuboost: the record is off: ");
    assert_non_null(at);
    assert_non_null(strstr(at, reason));
    assert_null(strstr(at + 1, "gpuboost: the record is off: ")); /* once */
    assert_non_null(strstr(said, "verdict"));
    assert_non_null(strstr(said, "record   off: "));
}

static void limited_file_size(void)
{
    struct rlimit limit = {6000, 6000};
    setrlimit(RLIMIT_FSIZE, &limit);
    gb_record_open();
    use_gpu();
    for (int i = 0; i < 200; i++)
        push(5 * MS, 0, 0);
    gb_record_close();
    push(5 * MS, 0, 0);
}

static void file_size_limit_does_not_kill(void **state)
{
    (void)state;
    assert_int_equal(run(limited_file_size), 0);
    assert_record_off("stalls.log: File too large");
    /* The cut line is the last one, so that a reader can leave it out. */
    assert_int_equal(strlen(stalls), 6000);
    assert_lines_are_json(record);
}

static void zero_file_size(void)
{
    struct rlimit limit = {0, 0};
    setrlimit(RLIMIT_FSIZE, &limit);
    gb_record_open();
    use_gpu();
    gb_record_close();
}

static void file_size_zero_is_said_at_open(void **state)
{
    (void)state;
    assert_int_equal(run(zero_file_size), 0);
    assert_record_off("record.jsonl: File too large");
}

static void close_everything(void)
{
    gb_record_open();
    use_gpu();
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    /* The program's own files now get the numbers that were ours. */
    char path[256];
    snprintf(path, sizeof path, "%s/own", root);
    int own = open(path, O_RDWR | O_CREAT, 0600);
    for (int fd = 3; fd < 256; fd++)
        dup2(own, fd);
    push(5 * MS, 0, 0);
    gb_record_close();
    char byte;
    if (pread(own, &byte, 1, 0) != 0 || fcntl(200, F_GETFD) < 0)
        _exit(1);
}

static void closed_descriptors_are_not_written_to(void **state)
{
    (void)state;
    assert_int_equal(run(close_everything), 0);
    assert_record_off("Bad file descriptor");
}

static void no_descriptors(void)
{
    struct rlimit few = {3, 3};
    setrlimit(RLIMIT_NOFILE, &few);
    gb_record_open();
    use_gpu();
    gb_record_close();
}

static void no_free_descriptor_is_said(void **state)
{
    (void)state;
    assert_int_equal(run(no_descriptors), 0);
    assert_record_off("Too many open files");
}

static void no_place(void)
{
    gb_config.out = "/proc/nowhere/run";
    gb_record_open();
    use_gpu();
    gb_record_close();
}

static void unwritable_place_is_said(void **state)
{
    (void)state;
    assert_int_equal(run(no_place), 0);
    assert_record_off("/proc/nowhere/run: ");
}

static bool mount_small(unsigned long flags)
{
    if (mkdir(out_dir, 0700) != 0 || mount("tmpfs", out_dir, "tmpfs", flags, "size=8k,mode=700"))
        return false;
    return true;
}

static void fill_the_disk(void)
{
    gb_record_open();
    use_gpu();
    for (int i = 0; i < 1000; i++)
        push(5 * MS, 0, 0);
    gb_record_close();
}

static void full_disk_is_said(void **state)
{
    (void)state;
    if (!mount_small(0)) {
        print_message("cannot mount a small tmpfs here (%s)\n", strerror(errno));
        skip();
    }
    int status = run(fill_the_disk);
    umount(out_dir);
    assert_int_equal(status, 0);
    assert_record_off("No space left on device");
}

static void read_only_disk_is_said(void **state)
{
    (void)state;
    if (!mount_small(MS_RDONLY)) {
        print_message("cannot mount a small tmpfs here (%s)\n", strerror(errno));
        skip();
    }
    int status = run(fill_the_disk);
    umount(out_dir);
    assert_int_equal(status, 0);
    assert_record_off("Read-only file system");
}

static void no_threads(void)
{
    struct rlimit small = {1, 1}, old;
    getrlimit(RLIMIT_AS, &old);
    small.rlim_max = old.rlim_max;
    gb_record_open(); /* the buffer needs memory, the thread comes after it */
    setrlimit(RLIMIT_AS, &small);
    use_gpu();
    push(5 * MS, 0, 0);
    gb_record_close();
}

static void no_memory_left_is_survived(void **state)
{
    (void)state;
    assert_int_equal(run(no_threads), 0);
    assert_non_null(strstr(record, "\"type\":\"end\""));
    assert_non_null(strstr(stalls, "blocked 5.0 ms"));
}

int main(void)
{
#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TREE_TEST(ordinary_run_is_recorded),
        TREE_TEST(stalls_are_readable_lines),
        TREE_TEST(a_process_that_never_armed_is_silent),
        TREE_TEST(none_means_summary_only),
        TREE_TEST(summary_can_be_switched_off),
        TREE_TEST(forked_children_are_inert),
        TREE_TEST(a_child_of_an_unarmed_parent_records),
        TREE_TEST(killed_runs_keep_what_was_flushed),
        TREE_TEST(unchanged_figures_are_not_repeated),
        TREE_TEST(a_full_table_fits_one_snapshot),
        TREE_TEST(lost_events_are_counted),
        TREE_TEST(file_size_limit_does_not_kill),
        TREE_TEST(file_size_zero_is_said_at_open),
        TREE_TEST(closed_descriptors_are_not_written_to),
        TREE_TEST(no_free_descriptor_is_said),
        TREE_TEST(unwritable_place_is_said),
        TREE_TEST(full_disk_is_said),
        TREE_TEST(read_only_disk_is_said),
        TREE_TEST(no_memory_left_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
