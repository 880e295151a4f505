/* test_record.c: what the record of a run holds, and when it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <time.h>

#include "record_run.h"

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
    fake_site(FAKE_FREE, 0, 0, 0);               /* never called: not in the record */
    fake_site(FAKE_SYNC, 1, 0, 0)->elided = 211; /* never made, but left out */
    fake_count("h2d.staged", 9);
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
    assert_int_equal(assert_lines_are_json(record), 8);
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
        "\"staged\":0,\"elided\":211}]}\n",
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
    fake_site(FAKE_SYNC, 0, 1, MS);
    use_gpu();
    gb_record_open();
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
    use_gpu();
    gb_record_open();
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

int main(void)
{
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
