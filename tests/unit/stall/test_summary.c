/* test_summary.c: the text at exit, whole (tests/golden/summary_*.txt) and in its decisions.
 *
 * GOLDEN_WRITE=1 writes the golden texts anew; look at the difference before committing it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "options/config.h"
#include "record_fakes.h"
#include "stall/summary.h"

#define MS 1000000ull
#define S  1000000000ull

static char text[16384];

static struct gb_summary usual(void)
{
    return (struct gb_summary){.program = "python3",
                               .rank = "",
                               .device = "SIMULATED H100",
                               .pid = 4242,
                               .wall_ns = 62400 * MS,
                               .now_ns = 100 * S,
                               .record_path = "/home/ann/.local/state/gpuboost/python3-x-4242",
                               .record_problem = ""};
}

static const char *write_summary(struct gb_summary s)
{
    struct gb_text t;
    gb_text_init(&t, text, sizeof text);
    gb_summary_write(&t, &s);
    return text;
}

static void assert_golden(const char *name)
{
    static char expected[16384];
    char path[512];
    const char *source = getenv("GOLDEN_DIR");
    snprintf(path, sizeof path, "%s/%s", source ? source : "tests/golden", name);
    if (getenv("GOLDEN_WRITE")) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(text, out);
        fclose(out);
    }
    FILE *in = fopen(path, "r");
    if (!in)
        fail_msg("%s is missing: run from the repository's root, or set GOLDEN_DIR", path);
    expected[fread(expected, 1, sizeof expected - 1, in)] = 0;
    fclose(in);
    assert_string_equal(text, expected);
}

static int lines(void)
{
    int n = 0;
    for (const char *s = text; *s; s++)
        n += *s == '\n';
    return n;
}

/* Every line must carry the prefix and no control character. */
static void assert_well_formed(void)
{
    assert_true(strlen(text) > 0 && text[strlen(text) - 1] == '\n');
    for (const char *s = text; *s; s = strchr(s, '\n') + 1)
        assert_int_equal(strncmp(s, "gpuboost: ", 10), 0);
    for (const char *s = text; *s; s++)
        assert_true(*s == '\n' || ((unsigned char)*s >= 0x20 && *s != 0x7f));
}

/* The usual bad case: a blocking .to() of pageable memory and an .item() in every step. */
static void fill_naive_run(void)
{
    fake_reset();
    fake_stack(1, 0, "/home/ann/projects/vision/experiments/train.py", 41, "train");
    fake_stack(1, 1, "/home/ann/projects/vision/experiments/train.py", 80, "<module>");
    fake_stack(2, 0, "/usr/lib/python3.11/site-packages/torch/cuda/__init__.py", 100, "sync");
    fake_stack(2, 1, "train.py", 52, "train");
    fake_stack(3, 0, "train.py", 60, "evaluate");
    struct gb_site *copy = fake_site(FAKE_COPY, 1, 5000, 6 * S);
    copy->bytes = 5000ull << 20;
    fake_site(FAKE_SYNC, 1, 5000, 9 * S);
    fake_site(FAKE_SYNC, 2, 500, 5 * S + 123456789);
    fake_site(FAKE_SYNC, 3, 10, 2 * S);
    fake_site(FAKE_FREE, 0, 3, 500 * MS);
    fake_site(FAKE_SYNC, 0, 1, 400 * MS);
    fake_site(FAKE_COPY, 0, 1, 300 * MS);
    fake_totals = (struct gb_totals){.first_enqueue_ns = 38 * S,
                                     .last_drain_ns = 99 * S + 200 * MS,
                                     .idle_ns = 23 * S + 323456789,
                                     .hook_ns = 120 * MS,
                                     .launches = 100000,
                                     .staged_copies = 5000,
                                     .staged_bytes = 5000ull << 20,
                                     .early_copies = 4990,
                                     .forwarded_copies = 12,
                                     .forwarded_bytes = 1 << 20,
                                     .ring_bytes = 64 << 20,
                                     .ring_limit_bytes = 64 << 20,
                                     .staging_bytes = 80 << 20};
    fake_count("h2d.declined.warming_up", 8);
    fake_count("h2d.declined.capture", 4);
    fake_count("early.declined.host_may_notice", 6);
    fake_count("elide.declined.place", 5);
    fake_count("elide.declined.library", 3);
    fake_count("elide.waits", 4500);
    fake_count("staging.copies", 4000);
    fake_count("debts.opened", 9000);
}

static void naive_run_as_a_whole(void **state)
{
    (void)state;
    fill_naive_run();
    write_summary(usual());
    assert_well_formed();
    assert_in_range(lines(), 8, 13);
    assert_golden("summary_naive.txt");
}

static void run_without_anything_known(void **state)
{
    (void)state;
    fake_reset();
    fake_python = "off: this CPython is not known";
    fake_totals.first_enqueue_ns = 40 * S;
    fake_totals.idle_ns = 30 * S;
    fake_sites[0].calls = 10;
    fake_sites[0].idle_ns = 20 * S;
    fake_site(FAKE_SYNC, 0, 1, 10 * S)->native_count = 1;
    fake_sites[1].native_pcs[0] = (void *)0x1234;
    struct gb_summary s = usual();
    s.rank = "3";
    s.device = s.record_path = "";
    s.record_problem = "/full/record.jsonl: No space left on device";
    s.dropped = 17;
    write_summary(s);
    assert_well_formed();
    assert_golden("summary_unknown.txt");
}

static void nothing_enqueued_is_not_zero(void **state)
{
    (void)state;
    fake_reset();
    write_summary(usual());
    assert_non_null(strstr(text, "verdict  n/a: nothing was given to the GPU"));
    assert_int_equal(lines(), 3);
    assert_null(strstr(text, "0.0 %"));
}

static void healthy_run_has_nothing_to_do(void **state)
{
    (void)state;
    fill_naive_run();
    fake_totals.idle_ns = 500 * MS;
    for (uint32_t i = 0; i < fake_site_count; i++)
        fake_sites[i].idle_ns /= 50;
    write_summary(usual());
    assert_non_null(strstr(text, "verdict  HEALTHY: the GPU was idle 0.8 %"));
    assert_non_null(strstr(text, "next     nothing to do"));
}

/* Copies that an idle GPU has waited for, nobody knows how long. */
static void what_was_not_seen_is_not_called_healthy(void **state)
{
    (void)state;
    fill_naive_run();
    fake_totals.idle_ns = 500 * MS;
    fake_totals.unseen_copies = 1;
    write_summary(usual());
    assert_non_null(strstr(text, "verdict  HEALTHY: the GPU was idle at least 0.8 %"));
    fake_totals.unseen_copies = fake_totals.staged_copies;
    write_summary(usual());
    assert_null(strstr(text, "HEALTHY"));
}

static void impossible_figures_are_na(void **state)
{
    (void)state;
    fill_naive_run();
    fake_totals.idle_ns = 1000 * S; /* more than the run */
    write_summary(usual());
    assert_non_null(strstr(text, "verdict  n/a:"));
    fill_naive_run();
    fake_totals.hook_ns = 0;
    write_summary(usual());
    assert_non_null(strstr(text, "cost     n/a: not measured"));
}

static void a_drain_that_never_came_counts_to_now(void **state)
{
    (void)state;
    fill_naive_run();
    fake_totals.last_drain_ns = 0;
    write_summary(usual());
    assert_non_null(strstr(text, "of 62.0 s"));
}

static void advice_follows_the_place(void **state)
{
    (void)state;
    fill_naive_run();
    gb_config.policy = GB_PROFILE_OBSERVE;
    fake_totals.staged_copies = 0;
    write_summary(usual());
    assert_non_null(strstr(text, "next     run with GPUBOOST_POLICY=safe"));
    assert_non_null(strstr(text, "fixed    nothing: staging is off"));
    gb_config.policy = GB_PROFILE_SAFE;
    fake_sites[1].bytes = 5000 * 4; /* four bytes a call: .item() */
    write_summary(usual());
    assert_non_null(strstr(text, "next     read results less often there: .item()"));
    fake_sites[5].idle_ns = 40 * S;
    fake_totals.idle_ns = 50 * S;
    write_summary(usual());
    assert_non_null(strstr(text, "next     allocate once"));
}

static void what_was_done_and_declined(void **state)
{
    (void)state;
    fill_naive_run();
    fake_totals.early_copies = fake_totals.staging_bytes = 0;
    fake_count_count = 0;
    fake_count("h2d.declined.warming_up", 8);
    write_summary(usual()); /* nothing that anybody could do something about */
    assert_non_null(strstr(text, "went through 64.0 MiB of pinned memory; 12 (1.0 MiB) left"));
    assert_null(strstr(text, "declined"));
    assert_null(strstr(text, "returned early"));
    assert_null(strstr(text, "gpuboost prove"));
    fake_count("elide.declined.not_proven", 4321);
    fake_totals.early_copies = 7;
    write_summary(usual());
    assert_non_null(strstr(text,
                           "\ngpuboost:          7 copies returned early, 4321 waits could be "
                           "left out: run `gpuboost prove` once on this GPU\n"));
    assert_null(strstr(text, "declined"));
    fake_count("early.declined.launch_blocking", 1);
    write_summary(usual());
    assert_non_null(strstr(text, "\ngpuboost: declined 1 early returns (launch blocking)\n"));
}

static void places_are_shown_where_the_reader_can_edit(void **state)
{
    (void)state;
    fill_naive_run();
    write_summary(usual());
    assert_non_null(strstr(text, "  train.py:41 (train)  ")); /* a long path: its name */
    assert_non_null(strstr(text, "  train.py:52 (train)  ")); /* not torch's own file */
    assert_null(strstr(text, "__init__.py"));
    fake_stack(1, 0, "/usr/lib/python3.11/threading.py", 7, "run");
    fake_stack(1, 1, "<frozen runpy>", 8, "run");
    write_summary(usual());
    assert_non_null(strstr(text, "  /usr/lib/python3.11/threading.py:7 (run)")); /* all library */
}

static void hostile_names_are_harmless(void **state)
{
    (void)state;
    fill_naive_run();
    fake_stack(1, 0, "a\x1b[2J\nb\xff.py", 1, "<script>\r\xe2\x80\xae");
    strcpy(fake_sites[5].module, "\x1b]0;x\x07");
    struct gb_summary s = usual();
    s.program = "py\x1b[31mthon\n";
    s.device = "gpu\x9b\n";
    s.record_path = "/tmp/\x1b[0m\n";
    write_summary(s);
    assert_well_formed();
    assert_non_null(strstr(text, "a\\x1b[2J\\x0ab\\xff.py:1 (<script>\\x0d\\xe2\\x80\\xae)"));
}

static void full_table_and_long_names_stay_bounded(void **state)
{
    (void)state;
    static char name[8000];
    fake_reset();
    memset(name, 'n', sizeof name - 1);
    for (int i = 0; i < 8; i++)
        fake_stack((uint32_t)i + 1, 0, name, i, name);
    while (fake_site_count < GB_SITE_MAX)
        fake_site(FAKE_SYNC, fake_site_count % 9, 1, MS + fake_site_count);
    fake_totals.first_enqueue_ns = 1;
    fake_totals.idle_ns = 4 * S;
    char small[700];
    struct gb_text t;
    struct gb_summary s = usual();
    gb_text_init(&t, small, sizeof small);
    gb_summary_write(&t, &s);
    assert_true(t.used < sizeof small && small[t.used] == 0);
}

static int plain_config(void **state)
{
    (void)state;
    gb_config_load();
    return 0;
}

int main(void)
{
#define CONFIG_TEST(test) cmocka_unit_test_setup(test, plain_config)
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(naive_run_as_a_whole),
        CONFIG_TEST(run_without_anything_known),
        CONFIG_TEST(nothing_enqueued_is_not_zero),
        CONFIG_TEST(healthy_run_has_nothing_to_do),
        CONFIG_TEST(what_was_not_seen_is_not_called_healthy),
        CONFIG_TEST(impossible_figures_are_na),
        CONFIG_TEST(a_drain_that_never_came_counts_to_now),
        CONFIG_TEST(advice_follows_the_place),
        CONFIG_TEST(what_was_done_and_declined),
        CONFIG_TEST(places_are_shown_where_the_reader_can_edit),
        CONFIG_TEST(hostile_names_are_harmless),
        CONFIG_TEST(full_table_and_long_names_stay_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
