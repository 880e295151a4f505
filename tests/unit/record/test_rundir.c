/* test_rundir.c: where the run directory lies, and that nothing planted there is ever touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/rundir.h"

static char root[64];
static struct gb_rundir dir;

static struct gb_rundir_names names_with(const char *out)
{
    return (struct gb_rundir_names){.out = out,
                                    .state_home = "/state",
                                    .home = "/home/ann",
                                    .program = "python3",
                                    .host = "node7",
                                    .rank = "3",
                                    .job = "job-1",
                                    .pid = 4242,
                                    .unix_seconds = 1796108581};
}

static const char *expand(struct gb_rundir_names names)
{
    return gb_rundir_expand(&names, &dir) ? dir.path : dir.error;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/test_rundir.XXXXXX");
    assert_non_null(mkdtemp(root));
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    if (chdir("/tmp") != 0)
        return 1;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static char *in_root(const char *name)
{
    static char paths[4][512];
    static int next;
    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", root, name);
    return paths[next];
}

static bool make(const char *out)
{
    struct gb_rundir_names names = names_with(out);
    bool made = gb_rundir_make(&names, &dir);
    if (made) {
        close(dir.record_fd);
        close(dir.stalls_fd);
    }
    return made;
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void assert_text(const char *path, const char *text)
{
    char buf[64] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, buf, sizeof buf - 1) >= 0);
    close(fd);
    assert_string_equal(buf, text);
}

static void assert_mode(const char *path, mode_t mode)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, mode);
}

/* ---- the path ---- */

static void default_path_names_program_time_and_pid(void **state)
{
    (void)state;
    struct gb_rundir_names names = names_with("");
    assert_string_equal(expand(names), "/state/gpuboost/python3-20261201T070301Z-4242");
    names.state_home = "relative"; /* to be ignored, says the XDG specification */
    assert_string_equal(expand(names),
                        "/home/ann/.local/state/gpuboost/python3-20261201T070301Z-4242");
    names.home = "";
    assert_non_null(strstr(expand(names), "neither HOME nor XDG_STATE_HOME"));
    assert_string_equal(dir.path, "");
}

static void dates_are_those_of_the_calendar(void **state)
{
    (void)state;
    static const struct {
        uint64_t seconds;
        const char *text;
    } days[] = {{0, "19700101T000000Z"},          {951782399, "20000228T235959Z"},
                {951782400, "20000229T000000Z"},  {1709164800, "20240229T000000Z"},
                {1735689599, "20241231T235959Z"}, {1735689600, "20250101T000000Z"},
                {4107542400, "21000301T000000Z"}};
    for (size_t i = 0; i < GB_ARRAY_LEN(days); i++) {
        struct gb_rundir_names names = names_with("");
        names.unix_seconds = days[i].seconds;
        assert_non_null(strstr(expand(names), days[i].text));
    }
}

static void patterns_are_expanded(void **state)
{
    (void)state;
    char expected[600], here[512];
    struct gb_rundir_names names = names_with("/r/%p-%h-%r-%j-100%%/");
    assert_string_equal(expand(names), "/r/4242-node7-3-job-1-100%");
    names.rank = names.job = "";
    assert_string_equal(expand(names), "/r/4242-node7-none-none-100%");
    assert_non_null(strstr(expand(names_with("/r/%x")), "GPUBOOST_OUT knows %p"));
    assert_non_null(strstr(expand(names_with("/r/%")), "GPUBOOST_OUT knows %p"));
    assert_string_equal(expand(names_with("/a/b/./")), "/a/b");
    assert_string_equal(expand(names_with("/")), "/");
    snprintf(expected, sizeof expected, "%s/runs/4242", getcwd(here, sizeof here));
    assert_string_equal(expand(names_with("runs/%p")), expected);
}

static void values_cannot_leave_their_component(void **state)
{
    (void)state;
    struct gb_rundir_names names = names_with("/r/%h/%j");
    names.host = "../../etc";
    names.job = "..";
    assert_string_equal(expand(names), "/r/_._.._etc/_.");
    names.host = "/a/b\nc\x1b[0m\xc3\xa9";
    names.job = ".";
    assert_string_equal(expand(names), "/r/_a_b_c__0m__/_");
    names.out = "";
    names.program = "../../../tmp/x";
    assert_string_equal(expand(names), "/state/gpuboost/_._.._.._tmp_x-20261201T070301Z-4242");
}

static void random_values_stay_inside(void **state)
{
    (void)state;
    char value[80];
    srand(5);
    for (int i = 0; i < 200000; i++) {
        size_t n = (size_t)rand() % (sizeof value - 1);
        for (size_t k = 0; k < n; k++)
            value[k] = rand() % 3 ? "./%~"[rand() % 4] : (char)(1 + rand() % 255);
        value[n] = 0;
        struct gb_rundir_names names = names_with("/base/%h%r/x-%j");
        names.host = names.rank = names.job = value;
        const char *path = expand(names);
        assert_int_equal(strncmp(path, "/base/", 6), 0);
        assert_null(strstr(path, "/../"));
        int slashes = 0;
        for (const char *s = path; *s; s++)
            slashes += *s == '/';
        assert_int_equal(slashes, 3);
    }
}

static void too_long_is_refused(void **state)
{
    (void)state;
    static char out[2 * GB_RUNDIR_PATH_BYTES];
    memset(out, 'a', sizeof out - 1);
    out[0] = '/';
    assert_non_null(strstr(expand(names_with(out)), "too long"));
    out[300] = 0; /* fits the path, but no file system takes the name */
    assert_false(make(out));
    assert_non_null(strstr(dir.error, "too long"));
}

/* ---- the directory ---- */

static void directory_and_files_are_private(void **state)
{
    (void)state;
    umask(0);
    assert_true(make(in_root("a/b/run")));
    umask(022);
    assert_mode(in_root("a"), 0700);
    assert_mode(in_root("a/b/run"), 0700);
    assert_mode(in_root("a/b/run/record.jsonl"), 0600);
    assert_mode(in_root("a/b/run/stalls.log"), 0600);
    assert_false(dir.renamed);
}

static void earlier_runs_are_left_alone(void **state)
{
    (void)state;
    assert_true(make(in_root("run")));
    write_text(in_root("run/record.jsonl"), "first");
    assert_true(make(in_root("run")));
    assert_true(dir.renamed);
    assert_string_equal(dir.path, in_root("run.1"));
    assert_true(make(in_root("run/")));
    assert_string_equal(dir.path, in_root("run.2"));
    assert_text(in_root("run/record.jsonl"), "first");
    /* An empty directory made by hand is taken as it is; half a record is not completed. */
    assert_int_equal(mkdir(in_root("mine"), 0755), 0);
    assert_true(make(in_root("mine")));
    assert_string_equal(dir.path, in_root("mine"));
    assert_int_equal(mkdir(in_root("half"), 0755), 0);
    write_text(in_root("half/stalls.log"), "old");
    assert_true(make(in_root("half")));
    assert_string_equal(dir.path, in_root("half.1"));
    assert_text(in_root("half/stalls.log"), "old");
    assert_int_equal(access(in_root("half/record.jsonl"), F_OK), -1);
}

static void siblings_end_somewhere(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(make(in_root("run")));
    assert_string_equal(dir.path, in_root("run.99"));
    assert_false(make(in_root("run")));
    assert_string_equal(dir.error, "File exists");
}

static void ranks_with_one_name_do_not_meet(void **state)
{
    (void)state;
    int status, failed = 0;
    for (int i = 0; i < 8; i++)
        if (fork() == 0)
            _exit(make(in_root("ranks")) ? 0 : 1);
    for (int i = 0; i < 8; i++) {
        assert_true(wait(&status) > 0);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
    assert_int_equal(access(in_root("ranks.7/record.jsonl"), F_OK), 0);
    assert_int_equal(access(in_root("ranks.8"), F_OK), -1);
}

static void planted_links_are_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_root("victim"), 0700), 0);
    assert_int_equal(symlink(in_root("victim"), in_root("run")), 0);
    assert_false(make(in_root("run")));
    assert_non_null(strstr(dir.error, "symbolic link"));
    assert_int_equal(rmdir(in_root("victim")), 0); /* still empty */
    /* A link to nowhere is not followed to make something there. */
    assert_false(make(in_root("run")));
    assert_int_equal(access(in_root("victim"), F_OK), -1);
    write_text(in_root("file"), "text");
    assert_false(make(in_root("file")));
    assert_text(in_root("file"), "text");
    assert_int_equal(mkfifo(in_root("fifo"), 0600), 0);
    assert_false(make(in_root("fifo")));
}

static void planted_files_are_not_opened(void **state)
{
    (void)state;
    write_text(in_root("victim"), "precious");
    assert_int_equal(mkdir(in_root("run"), 0700), 0);
    assert_int_equal(symlink(in_root("victim"), in_root("run/record.jsonl")), 0);
    assert_true(make(in_root("run")));
    assert_string_equal(dir.path, in_root("run.1"));
    assert_int_equal(mkdir(in_root("hard"), 0700), 0);
    assert_int_equal(link(in_root("victim"), in_root("hard/stalls.log")), 0);
    assert_int_equal(mkdir(in_root("hard.1"), 0700), 0);
    assert_int_equal(mkfifo(in_root("hard.1/record.jsonl"), 0600), 0);
    assert_true(make(in_root("hard")));
    assert_string_equal(dir.path, in_root("hard.2"));
    assert_text(in_root("victim"), "precious");
}

static void directories_of_others_are_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_root("open"), 0700), 0);
    assert_int_equal(chmod(in_root("open"), 01777), 0);
    assert_false(make(in_root("open")));
    assert_non_null(strstr(dir.error, "everybody may write"));
    if (geteuid() != 0) {
        print_message("not root: no directory of another user to try\n");
        return;
    }
    assert_int_equal(mkdir(in_root("theirs"), 0755), 0);
    assert_int_equal(chown(in_root("theirs"), 12345, 12345), 0);
    assert_false(make(in_root("theirs")));
    assert_non_null(strstr(dir.error, "belongs to another user"));
    /* sudo keeps HOME: the default place would leave root's directories in it. */
    struct gb_rundir_names names = names_with("");
    names.state_home = "";
    names.home = in_root("theirs");
    assert_false(gb_rundir_make(&names, &dir));
    assert_non_null(strstr(dir.error, "set GPUBOOST_OUT"));
    assert_int_equal(access(in_root("theirs/.local"), F_OK), -1);
}

static void reasons_are_those_of_the_system(void **state)
{
    (void)state;
    write_text(in_root("file"), "");
    assert_false(make(in_root("file/below/run")));
    assert_string_equal(dir.error, "Not a directory");
    assert_false(make("/proc/gpuboost/run"));
    assert_true(*dir.error != 0);
}

static void limited_descriptors_are_handled(void **state)
{
    (void)state;
    int status;
    for (rlim_t limit = 3; limit < 12; limit++) {
        pid_t child = fork();
        if (child == 0) {
            struct rlimit few = {limit, limit};
            setrlimit(RLIMIT_NOFILE, &few);
            bool made = make(in_root("few"));
            _exit(made ? dir.record_fd < 3 || dir.stalls_fd < 3 : *dir.error == 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void descriptors_avoid_the_standard_ones(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        close(0);
        close(1);
        struct gb_rundir_names names = names_with(in_root("low"));
        bool made = gb_rundir_make(&names, &dir);
        _exit(!made || dir.record_fd < 100 || dir.stalls_fd < 100 ||
              !(fcntl(dir.record_fd, F_GETFD) & FD_CLOEXEC) || open("/dev/null", O_RDONLY) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_path_names_program_time_and_pid),
        cmocka_unit_test(dates_are_those_of_the_calendar),
        cmocka_unit_test(patterns_are_expanded),
        cmocka_unit_test(values_cannot_leave_their_component),
        cmocka_unit_test(random_values_stay_inside),
        cmocka_unit_test(too_long_is_refused),
        TREE_TEST(directory_and_files_are_private),
        TREE_TEST(earlier_runs_are_left_alone),
        TREE_TEST(siblings_end_somewhere),
        TREE_TEST(ranks_with_one_name_do_not_meet),
        TREE_TEST(planted_links_are_refused),
        TREE_TEST(planted_files_are_not_opened),
        TREE_TEST(directories_of_others_are_refused),
        TREE_TEST(reasons_are_those_of_the_system),
        TREE_TEST(limited_descriptors_are_handled),
        TREE_TEST(descriptors_avoid_the_standard_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
