/* test_config_file.c: GPUBOOST_CONFIG, and GPUBOOST_SHOW_CONFIG whose output can be given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "config_said.h"

static char file_name[64];

static void write_file(const char *text, size_t length)
{
    snprintf(file_name, sizeof file_name, "/tmp/test_config_%d.conf", (int)getpid());
    int fd = open(file_name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, text, length), (ssize_t)length);
    close(fd);
}

static void file_is_below_the_environment(void **state)
{
    (void)state;
    static const char text[] = "# a comment\n\n  GPUBOOST_RING = 16M \r\nGPUBOOST_POLICY=observe\n"
                               "GPUBOOST_OUT=/tmp/a=b # not a comment\nGPUBOOST_LOG=";
    clear();
    write_file(text, sizeof text - 1);
    setenv("GPUBOOST_CONFIG", file_name, 1);
    setenv("GPUBOOST_POLICY", "max", 1);
    gb_config_load();
    assert_int_equal(gb_config.ring_bytes, 64u << 20); /* not before arm */
    assert_string_equal(report(), "");
    assert_int_equal(gb_config.ring_bytes, 16u << 20);
    assert_int_equal(gb_config.policy, GB_PROFILE_MAX);
    assert_string_equal(gb_config.out, "/tmp/a=b # not a comment");
    struct gb_config_entry entry;
    assert_true(gb_config_entry(GB_OPTION_INDEX_ring_bytes, &entry));
    assert_string_equal(entry.source, "file");
    assert_true(gb_config_entry(GB_OPTION_INDEX_policy, &entry));
    assert_string_equal(entry.source, "environment");
    unlink(file_name);
}

static void file_faults_have_line_numbers(void **state)
{
    (void)state;
    static const char text[] = "GPUBOOST_RING=1M\nnonsense\nGPUBOOST_DISABLE=1\nGPUBOOST_H2D=on\n"
                               "GPUBOOST_H2D=off\nGPUBOOST_POLCY=max\n";
    clear();
    write_file(text, sizeof text - 1);
    setenv("GPUBOOST_CONFIG", file_name, 1);
    gb_config_load();
    report();
    assert_non_null(strstr(said, ".conf:1: GPUBOOST_RING=1M is not a size"));
    assert_non_null(strstr(said, ".conf:2: \"nonsense\" is not NAME=value"));
    assert_non_null(strstr(said, ".conf:3: GPUBOOST_DISABLE works in the environment only"));
    assert_non_null(strstr(said, ".conf:5: GPUBOOST_H2D is set a second time"));
    assert_non_null(strstr(said, ".conf:6: GPUBOOST_POLCY is not an option; did you mean"));
    assert_false(gb_config.disable);
    assert_int_equal(gb_config.h2d, GB_SWITCH_ON);
    unlink(file_name);
}

static void unreadable_files_are_named(void **state)
{
    (void)state;
    static char big[20000];
    load_with("GPUBOOST_CONFIG", "/nonexistent/x");
    assert_non_null(
        strstr(report(), "GPUBOOST_CONFIG=/nonexistent/x cannot be read: No such file"));
    load_with("GPUBOOST_CONFIG", "/tmp");
    assert_non_null(strstr(report(), "cannot be read: not a regular file"));
    write_file("", 0);
    unlink(file_name);
    assert_int_equal(mkfifo(file_name, 0600), 0);
    load_with("GPUBOOST_CONFIG", file_name); /* must not wait for a writer */
    assert_non_null(strstr(report(), "not a regular file"));
    unlink(file_name);
    memset(big, '#', sizeof big);
    write_file(big, sizeof big);
    load_with("GPUBOOST_CONFIG", file_name);
    assert_non_null(strstr(report(), "longer than 16383 bytes"));
    unlink(file_name);
}

/* Random mixtures of names, signs and bytes: no crash, nothing out of range in force. */
static void random_files_do_no_harm(void **state)
{
    (void)state;
    static const char *const parts[] = {"GPUBOOST_RING",
                                        "GPUBOOST_H2D",
                                        "GPUBOOST_OUT",
                                        "=",
                                        "64M",
                                        "on",
                                        "\n",
                                        "\n",
                                        " ",
                                        "#",
                                        "\xff",
                                        "=",
                                        "12x",
                                        "GPUBOOST_STALL=2ms\n",
                                        "GPUBOOST_",
                                        "\t",
                                        "\r\n",
                                        "1",
                                        "\"",
                                        "GPUBOOST_CONFIG=/x\n"};
    char text[2048];
    bool ring_changed = false;
    srand(2);
    for (int i = 0; i < 200000; i++) {
        size_t used = 0;
        for (int n = rand() % 24; n > 0; n--) {
            const char *part = parts[(size_t)rand() % GB_ARRAY_LEN(parts)];
            memcpy(text + used, part, strlen(part));
            used += strlen(part);
            if (rand() % 16 == 0)
                text[used++] = (char)rand();
        }
        clear();
        gb_config_load();
        gb_config_apply_file(text, used);
        assert_true(gb_config.ring_bytes >= 8u << 20 && gb_config.ring_bytes <= 1u << 30);
        assert_true(gb_config.h2d >= 0 && gb_config.h2d <= 2);
        assert_true(strlen(gb_config.out) < GB_CONFIG_TEXT_BYTES);
        assert_false(gb_config.disable);
        assert_string_equal(gb_config.config_file, "");
        ring_changed |= gb_config_sources[GB_OPTION_INDEX_stall_ns] == GB_SOURCE_FILE;
    }
    assert_true(ring_changed);
}

/* ---- SHOW_CONFIG ---- */

static void shown_values_give_the_same_configuration(void **state)
{
    (void)state;
    clear();
    setenv("GPUBOOST_SHOW_CONFIG", "yes", 1);
    setenv("GPUBOOST_RING", "12345678", 1);
    setenv("GPUBOOST_STALL", "1500us", 1);
    setenv("GPUBOOST_H2D", "1", 1);
    setenv("GPUBOOST_ONLY", "a,b (c)", 1);
    gb_config_load();
    struct gb_config before = gb_config;
    report();
    assert_non_null(strstr(said, "gpuboost: options in force (gpuboost 0.1.0):\n"));
    assert_non_null(strstr(said, "gpuboost:   GPUBOOST_RING=12345678 (environment)\n"));
    assert_non_null(strstr(said, "gpuboost:   GPUBOOST_POLICY=safe (default)\n"));
    clear();
    int values = 0;
    for (char *line = strstr(said, "\ngpuboost:   "); line; line = strstr(line, "\ngpuboost:   ")) {
        line += strlen("\ngpuboost:   ");
        char *end = strchr(line, '\n'), *equals = strchr(line, '=');
        *end = 0;
        *strrchr(line, '(') = 0;
        line[strlen(line) - 1] = 0;
        *equals = 0;
        setenv(line, equals + 1, 1);
        line = end;
        *end = '\n';
        values++;
    }
    assert_int_equal(values, GB_OPTION_COUNT);
    gb_config_load();
    assert_int_equal(gb_config.ring_bytes, before.ring_bytes);
    assert_int_equal(gb_config.chunk_bytes, before.chunk_bytes);
    assert_int_equal(gb_config.stall_ns, 1500000);
    assert_int_equal(gb_config.h2d, GB_SWITCH_ON);
    assert_int_equal(gb_config.policy, before.policy);
    assert_int_equal(gb_config.log, before.log);
    assert_string_equal(gb_config.only, "a,b (c)");
    assert_int_equal(gb_complaint_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_is_below_the_environment),
        cmocka_unit_test(file_faults_have_line_numbers),
        cmocka_unit_test(unreadable_files_are_named),
        cmocka_unit_test(random_files_do_no_harm),
        cmocka_unit_test(shown_values_give_the_same_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
