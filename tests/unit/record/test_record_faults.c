/* test_record_faults.c: a record that cannot be written: one line, and everything else goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "record_run.h"

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
    const struct CMUnitTest tests[] = {
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
