/* test_budget.c: the pinned memory budget over made-up /proc and /sys/fs/cgroup trees. */
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
#include <unistd.h>

#include "transfer/budget.h"

#define MIB  (1ull << 20)
#define WANT (64 * MIB)

static char root[64], proc[80], cgroup[80];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/test_budget.XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(cgroup, sizeof cgroup, "%s/cgroup", root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes root/path, making the directories on the way. */
static void put_bytes(const char *path, const char *text, size_t length)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), (ssize_t)length);
    close(fd);
}

static void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

static void put_available(unsigned long long mib)
{
    char text[256];
    snprintf(text, sizeof text,
             "MemTotal:       99999999 kB\nMemFree:          102400 kB\nMemAvailable:  %llu kB\n",
             mib << 10);
    put("proc/meminfo", text);
}

static uint64_t budget(uint64_t want, const char **why)
{
    struct gb_budget b;
    gb_budget_read(proc, cgroup, want, &b);
    if (why)
        *why = b.limited_by;
    return b.bytes;
}

static void option_wins_when_memory_is_plenty(void **state)
{
    (void)state;
    const char *why;
    put_available(64000);
    assert_int_equal(budget(WANT, &why), WANT);
    assert_string_equal(why, "the option");
    assert_int_equal(budget(WANT + 5000, NULL), WANT); /* whole 64 KiB */
    assert_int_equal(budget(0, NULL), 0);
}

static void a_sixteenth_of_available_memory(void **state)
{
    (void)state;
    const char *why;
    put_available(512);
    assert_int_equal(budget(WANT, &why), 32 * MIB);
    assert_string_equal(why, "MemAvailable");
    put_available(0);
    assert_int_equal(budget(WANT, NULL), 0);
    put("proc/meminfo", "MemTotal: 1 kB\nMemFree:  163840 kB\n"); /* before Linux 3.14 */
    assert_int_equal(budget(WANT, NULL), 10 * MIB);
}

static void nothing_readable_gives_the_floor(void **state)
{
    (void)state;
    const char *why;
    assert_int_equal(budget(WANT, &why), 16 * MIB);
    assert_string_equal(why, "unreadable memory figures");
    put("proc/meminfo", "");
    put("proc/self/cgroup", "");
    assert_int_equal(budget(WANT, NULL), 16 * MIB);
    assert_int_equal(budget(8 * MIB, NULL), 8 * MIB);
}

static void v2_limit_with_the_page_cache_subtracted(void **state)
{
    (void)state;
    const char *why;
    put_available(64000);
    put("proc/self/cgroup", "0::/job/a\n");
    put("cgroup/job/a/memory.max", "1073741824\n");
    put("cgroup/job/a/memory.current", "1073741824\n"); /* full, but half of it is cache */
    put("cgroup/job/a/memory.stat",
        "anon 1\nfile 536870912\ninactive_file 268435456\nactive_file 268435456\n");
    assert_int_equal(budget(WANT, &why), 32 * MIB);
    assert_string_equal(why, "the cgroup's memory limit");
}

static void v2_nested_limits_take_the_least(void **state)
{
    (void)state;
    put_available(64000);
    put("proc/self/cgroup", "0::/pod/container/leaf\n");
    put("cgroup/pod/container/leaf/memory.max", "max\n");
    put("cgroup/pod/container/leaf/memory.current", "1048576\n");
    put("cgroup/pod/container/memory.max", "536870912\n");
    put("cgroup/pod/container/memory.current", "0\n");
    assert_int_equal(budget(WANT, NULL), 32 * MIB);
    put("cgroup/pod/memory.max", "268435456\n");
    put("cgroup/pod/memory.current", "0\n");
    assert_int_equal(budget(WANT, NULL), 16 * MIB);
    put("cgroup/pod/memory.high", "134217728\n"); /* throttles before memory.max kills */
    assert_int_equal(budget(WANT, NULL), 8 * MIB);
    put("cgroup/memory.max", "67108864\n"); /* the container's own root under a namespace */
    put("cgroup/memory.current", "0\n");
    assert_int_equal(budget(WANT, NULL), 4 * MIB);
}

static void v1_limit_and_its_host_path(void **state)
{
    (void)state;
    put_available(64000);
    put("proc/self/cgroup",
        "12:cpu,cpuacct:/docker/x\n7:memory:/docker/x\n1:name=systemd:/docker/x\n0::/docker/x\n");
    put("cgroup/memory/docker/x/memory.limit_in_bytes", "536870912\n");
    put("cgroup/memory/docker/x/memory.usage_in_bytes", "268435456\n");
    put("cgroup/memory/docker/x/memory.stat",
        "cache 1\ninactive_file 5\ntotal_inactive_file 134217728\ntotal_active_file 0\n");
    assert_int_equal(budget(WANT, NULL), 24 * MIB);
    /* Docker without a cgroup namespace: the path is the host's, the mount is the container. */
    put("proc/self/cgroup", "7:memory:/docker/not-mounted-here\n");
    put("cgroup/memory/memory.limit_in_bytes", "268435456\n");
    put("cgroup/memory/memory.usage_in_bytes", "0\n");
    assert_int_equal(budget(WANT, NULL), 16 * MIB);
    put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* "unlimited" */
    assert_int_equal(budget(WANT, NULL), WANT);
}

static void hybrid_looks_at_both(void **state)
{
    (void)state;
    put_available(64000);
    put("proc/self/cgroup", "4:memory:/a\n0::/b\n");
    put("cgroup/memory/a/memory.limit_in_bytes", "1073741824\n");
    put("cgroup/memory/a/memory.usage_in_bytes", "0\n");
    put("cgroup/unified/b/memory.max", "536870912\n");
    put("cgroup/unified/b/memory.current", "0\n");
    assert_int_equal(budget(WANT, NULL), 32 * MIB);
}

static void doubtful_figures_never_raise_the_budget(void **state)
{
    (void)state;
    put_available(64000);
    put("proc/self/cgroup", "0::/a\n");
    put("cgroup/a/memory.max", "536870912\n"); /* usage unknown: half of the limit */
    assert_int_equal(budget(WANT, NULL), 16 * MIB);
    put("cgroup/a/memory.current", "12abc\n");
    assert_int_equal(budget(WANT, NULL), 16 * MIB);
    put("cgroup/a/memory.current", "999999999999\n"); /* over the limit */
    assert_int_equal(budget(WANT, NULL), 0);
    put("cgroup/a/memory.current", "1000\n"); /* more cache than usage */
    put("cgroup/a/memory.stat", "inactive_file 99999999\nactive_file 999999999999999999999\n");
    assert_int_equal(budget(WANT, NULL), 32 * MIB);
    put("cgroup/a/memory.max", "-5\n"); /* no limit that can be read: MemAvailable decides */
    assert_int_equal(budget(WANT, NULL), WANT);
}

static void paths_outside_the_mount_are_not_followed(void **state)
{
    (void)state;
    put_available(64000);
    put("memory.max", "1048576\n"); /* root/cgroup/.. */
    put("memory.current", "0\n");
    put("cgroup/memory.max", "536870912\n");
    put("cgroup/memory.current", "0\n");
    put("proc/self/cgroup", "0::/../..\n");
    assert_int_equal(budget(WANT, NULL), 32 * MIB);
}

static void memlock_is_a_note_not_a_limit(void **state)
{
    (void)state;
    struct gb_budget b;
    struct rlimit old, small = {0, 0};
    put_available(64000);
    getrlimit(RLIMIT_MEMLOCK, &old);
    small.rlim_max = old.rlim_max;
    static const rlim_t values[] = {0, 65536};
    for (size_t i = 0; i < 2; i++) {
        small.rlim_cur = values[i];
        assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &small), 0);
        gb_budget_read(proc, cgroup, WANT, &b);
        assert_int_equal(b.bytes, WANT);
        assert_int_equal(b.memlock_bytes, values[i]);
    }
    setrlimit(RLIMIT_MEMLOCK, &old);
}

static void this_machine_gives_something_sensible(void **state)
{
    (void)state;
    uint64_t bytes = gb_budget_pinned_bytes(WANT);
    assert_true(bytes <= WANT && bytes % 65536 == 0);
}

/* Random bytes in every file: no crash, never more than asked for or than memory allows. */
static void garbage_is_survived(void **state)
{
    (void)state;
    static const char *const files[] = {"proc/meminfo", "proc/self/cgroup", "cgroup/a/memory.max",
                                        "cgroup/a/memory.current", "cgroup/a/memory.stat"};
    static const char *const words[] = {"MemAvailable:",
                                        " ",
                                        "\n",
                                        "0::/a\n",
                                        "4:memory:/a\n",
                                        "max",
                                        "1024",
                                        "-",
                                        "::",
                                        "inactive_file ",
                                        "99999999999999999999",
                                        "kB\n",
                                        "/",
                                        ":",
                                        "0"};
    char text[9000];
    int below = 0;
    srand(3);
    for (int i = 0; i < 3000; i++) {
        for (size_t f = 0; f < GB_ARRAY_LEN(files); f++) {
            size_t used = 0;
            for (int n = rand() % (i % 50 ? 12 : 900); n > 0 && used < 8900; n--) {
                const char *word = words[(size_t)rand() % GB_ARRAY_LEN(words)];
                memcpy(text + used, word, strlen(word));
                used += strlen(word);
                if (rand() % 8 == 0)
                    text[used++] = (char)rand();
            }
            put_bytes(files[f], text, used);
        }
        uint64_t bytes = budget(WANT, NULL);
        assert_true(bytes <= WANT && bytes % 65536 == 0);
        below += bytes < WANT;
    }
    assert_true(below > 100);
}

int main(void)
{
#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TREE_TEST(option_wins_when_memory_is_plenty),
        TREE_TEST(a_sixteenth_of_available_memory),
        TREE_TEST(nothing_readable_gives_the_floor),
        TREE_TEST(v2_limit_with_the_page_cache_subtracted),
        TREE_TEST(v2_nested_limits_take_the_least),
        TREE_TEST(v1_limit_and_its_host_path),
        TREE_TEST(hybrid_looks_at_both),
        TREE_TEST(doubtful_figures_never_raise_the_budget),
        TREE_TEST(paths_outside_the_mount_are_not_followed),
        TREE_TEST(memlock_is_a_note_not_a_limit),
        TREE_TEST(this_machine_gives_something_sensible),
        TREE_TEST(garbage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
