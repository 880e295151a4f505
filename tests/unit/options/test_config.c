/* test_config.c: option values, the environment, and what is said about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "config_said.h"
#include "options/environment.h"

#define UNTOUCHED 77u

/* ---- parsers ---- */

static void sizes_are_strict(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"1b", 1},
                {"64M", 64ull << 20},
                {"64m", 64ull << 20},
                {"1GiB", 1ull << 30},
                {"3kib", 3ull << 10},
                {"2T", 2ull << 40},
                {"18446744073709551615", UINT64_MAX},
                {"16777215T", 16777215ull << 40}};
    static const char *const bad[] = {"",          " ",
                                      "12abc",     "-1",
                                      "+1",        "1e9",
                                      " 1",        "1 ",
                                      "1 M",       "M",
                                      "1MB",       "1.5G",
                                      "0x10",      "1Mi",
                                      "1MiBB",     "1P",
                                      "1BM",       "18446744073709551616",
                                      "16777216T", "99999999999999999999999G",
                                      "1\n",       "\xff",
                                      "1,000"};
    uint64_t out;
    for (size_t i = 0; i < GB_ARRAY_LEN(good); i++) {
        assert_true(gb_config_parse_size(good[i].text, &out));
        assert_int_equal(out, good[i].bytes);
    }
    for (size_t i = 0; i < GB_ARRAY_LEN(bad); i++) {
        out = UNTOUCHED;
        assert_false(gb_config_parse_size(bad[i], &out));
        assert_int_equal(out, UNTOUCHED);
    }
}

static void times_need_a_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"80us", 80000}, {"2ms", 2000000}, {"1s", 1000000000},
                {"5ns", 5},      {"0s", 0},        {"3MS", 3000000}};
    static const char *const bad[] = {"",     "5",  "1.5ms", "-1s", "1 s",          "s",
                                      "1min", "1h", "1m",    "1ss", "18446744074s", "1us "};
    uint64_t out;
    for (size_t i = 0; i < GB_ARRAY_LEN(good); i++) {
        assert_true(gb_config_parse_time(good[i].text, &out));
        assert_int_equal(out, good[i].ns);
    }
    for (size_t i = 0; i < GB_ARRAY_LEN(bad); i++) {
        out = UNTOUCHED;
        assert_false(gb_config_parse_time(bad[i], &out));
        assert_int_equal(out, UNTOUCHED);
    }
}

static void bools_and_choices_are_words(void **state)
{
    (void)state;
    bool on = false;
    int choice = -1;
    assert_true(gb_config_parse_bool("1", &on) && on);
    assert_true(gb_config_parse_bool("Off", &on) && !on);
    assert_true(gb_config_parse_bool("YES", &on) && on);
    assert_true(gb_config_parse_bool("false", &on) && !on);
    assert_false(gb_config_parse_bool("", &on) || gb_config_parse_bool("2", &on) ||
                 gb_config_parse_bool("onn", &on) || gb_config_parse_bool("o", &on));
    assert_true(gb_config_parse_choice("auto,off,on", "AUTO", &choice) && choice == 0);
    assert_true(gb_config_parse_choice("auto,off,on", "1", &choice) && choice == 2);
    assert_true(gb_config_parse_choice("auto,off,on", "false", &choice) && choice == 1);
    choice = UNTOUCHED;
    assert_false(gb_config_parse_choice("observe,safe,max", "1", &choice));
    assert_false(gb_config_parse_choice("observe,safe,max", "observe,safe", &choice));
    assert_false(gb_config_parse_choice("observe,safe,max", "obs", &choice));
    assert_false(gb_config_parse_choice("observe,safe,max", "", &choice));
    assert_int_equal(choice, UNTOUCHED);
}

static void shares_are_one_in_n(void **state)
{
    (void)state;
    static const char *const bad[] = {"1/0",  "2/3",  "1/",  "/2", "1/2/3",
                                      "1/ 2", "1/-1", "0.5", "",   "5"};
    uint64_t every = 7;
    for (size_t i = 0; i < GB_ARRAY_LEN(bad); i++)
        assert_false(gb_config_parse_share(bad[i], &every));
    assert_int_equal(every, 7);
    assert_true(gb_config_parse_share("1/100", &every) && every == 100);
    assert_true(gb_config_parse_share("off", &every) && every == 0);
    assert_true(gb_config_parse_share("on", &every) && every == 1);
}

/* Random bytes never crash a parser, and what one accepts it prints so that it parses the same. */
static void random_texts_round_trip(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789kKmMgGtTiIbBusn. -+eE\xff\x01";
    char text[24], again[64];
    uint64_t value, second;
    int accepted = 0;
    srand(1);
    for (int i = 0; i < 1000000; i++) {
        size_t n = (size_t)rand() % (i % 2 ? 5 : sizeof text);
        for (size_t k = 0; k < n; k++)
            text[k] = alphabet[(size_t)rand() % (k ? sizeof alphabet - 1 : 10)];
        text[n] = 0;
        if (gb_config_parse_size(text, &value)) {
            gb_config_format_size(value, again, sizeof again);
            assert_true(gb_config_parse_size(again, &second) && second == value);
            accepted++;
        }
        if (gb_config_parse_time(text, &value)) {
            gb_config_format_time(value, again, sizeof again);
            assert_true(gb_config_parse_time(again, &second) && second == value);
            accepted++;
        }
    }
    assert_true(accepted > 10000);
}

/* ---- environment ---- */

static void defaults_are_those_of_the_list(void **state)
{
    (void)state;
    clear();
    gb_config_load();
    assert_false(gb_config.disable);
    assert_int_equal(gb_config.policy, GB_PROFILE_SAFE);
    assert_int_equal(gb_config.ring_bytes, 64u << 20);
    assert_int_equal(gb_config.stall_ns, 1000000);
    assert_string_equal(gb_config.out, "");
    assert_true(gb_config.summary);
    assert_string_equal(report(), "");
}

static void environment_sets_every_kind(void **state)
{
    (void)state;
    clear();
    setenv("GPUBOOST_DISABLE", "on", 1);
    setenv("GPUBOOST_POLICY", "max", 1);
    setenv("GPUBOOST_RING", "32M", 1);
    setenv("GPUBOOST_STALL", "80us", 1);
    setenv("GPUBOOST_OUT", "/tmp/x-%p", 1);
    gb_config_load();
    assert_true(gb_config.disable);
    assert_int_equal(gb_config.policy, GB_PROFILE_MAX);
    assert_int_equal(gb_config.ring_bytes, 32u << 20);
    assert_int_equal(gb_config.stall_ns, 80000);
    /* The text is a copy: programs overwrite the block the environment came in. */
    memset(getenv("GPUBOOST_OUT"), 'z', 3);
    assert_string_equal(gb_config.out, "/tmp/x-%p");
    assert_string_equal(report(), "");
}

static void empty_means_not_set(void **state)
{
    (void)state;
    load_with("GPUBOOST_RING", "");
    assert_int_equal(gb_config.ring_bytes, 64u << 20);
    assert_string_equal(report(), "");
}

static void bad_value_keeps_the_default_and_is_named_once(void **state)
{
    (void)state;
    load_with("GPUBOOST_RING", "12abc");
    assert_int_equal(gb_config.ring_bytes, 64u << 20);
    assert_string_equal(report(), "gpuboost: GPUBOOST_RING=12abc is not a size from 8M to 1G "
                                  "(bytes, or with K, M, G, T); 64M (default) stays in force\n");
    assert_string_equal(report(), "");
    load_with("GPUBOOST_RING", "2G"); /* out of range is not clamped */
    assert_int_equal(gb_config.ring_bytes, 64u << 20);
    assert_non_null(strstr(report(), "GPUBOOST_RING=2G is not a size from 8M to 1G"));
    load_with("GPUBOOST_POLICY", "fast");
    assert_non_null(strstr(report(), "GPUBOOST_POLICY=fast is not one of observe,safe,max; "
                                     "safe (default) stays in force"));
    load_with("GPUBOOST_STALL", "5");
    assert_non_null(strstr(report(), "is not a time from 1us to 60s (with ns, us, ms or s); 1ms"));
    load_with("GPUBOOST_SUMMARY", "maybe");
    assert_non_null(strstr(report(), "is not on or off; on (default)"));
}

static void hostile_values_are_made_harmless(void **state)
{
    (void)state;
    static char huge[1 << 20];
    load_with("GPUBOOST_POLICY", "\x1b[2J\r\nsafe\xe2\x80\xae\xff");
    assert_non_null(
        strstr(report(), "GPUBOOST_POLICY=\\x1b[2J\\x0d\\x0asafe\\xe2\\x80\\xae\\xff is not one"));
    memset(huge, 'x', sizeof huge - 1);
    load_with("GPUBOOST_OUT", huge);
    assert_string_equal(gb_config.out, "");
    assert_non_null(strstr(report(), "xxx... is not a text of at most 1023 bytes"));
    assert_true(strlen(said) < 400);
}

static void unknown_names_get_the_nearest(void **state)
{
    (void)state;
    load_with("GPUBOOST_RNIG", "1");
    assert_string_equal(report(),
                        "gpuboost: GPUBOOST_RNIG is not an option; did you mean GPUBOOST_RING?\n");
    assert_string_equal(gb_config_nearest("GPUBOOST_POLCY"), "GPUBOOST_POLICY");
    assert_string_equal(gb_config_nearest("GPUBOOST_SHOWCONFIG"), "GPUBOOST_SHOW_CONFIG");
    assert_string_equal(gb_config_nearest("GPUBOOST_LGO"), "GPUBOOST_LOG");
    assert_null(gb_config_nearest("GPUBOOST_ELEPHANT"));
    assert_null(gb_config_nearest("GPUBOOST_"));
    load_with("GPUBOOST_PYTHON", "/usr/bin/python3"); /* the build's own */
    assert_string_equal(report(), "");
}

static void many_complaints_are_bounded(void **state)
{
    (void)state;
    char name[32];
    clear();
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "GPUBOOST_ELEPHANT%d", i);
        setenv(name, "1", 1);
    }
    gb_config_load();
    report();
    int lines = 0;
    for (const char *s = said; (s = strchr(s, '\n')) != NULL; s++)
        lines++;
    assert_int_equal(lines, GB_COMPLAINTS_MAX + 1);
    assert_non_null(strstr(said, "24 further faulty options are not listed"));
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "GPUBOOST_ELEPHANT%d", i);
        unsetenv(name);
    }
}

static void quiet_says_nothing(void **state)
{
    (void)state;
    clear();
    setenv("GPUBOOST_LOG", "quiet", 1);
    setenv("GPUBOOST_RING", "x", 1);
    gb_config_load();
    assert_string_equal(report(), "");
}

static void policies_follow_switch_and_profile(void **state)
{
    (void)state;
    load_with("GPUBOOST_POLICY", "safe");
    assert_true(gb_config_policy_on(GB_SWITCH_AUTO, GB_PROFILE_SAFE));
    assert_false(gb_config_policy_on(GB_SWITCH_AUTO, GB_PROFILE_MAX));
    assert_true(gb_config_policy_on(GB_SWITCH_ON, GB_PROFILE_MAX));
    assert_false(gb_config_policy_on(GB_SWITCH_OFF, GB_PROFILE_SAFE));
    load_with("GPUBOOST_POLICY", "observe");
    assert_false(gb_config_policy_on(GB_SWITCH_AUTO, GB_PROFILE_SAFE));
    load_with("GPUBOOST_DISABLE", "1");
    assert_false(gb_config_policy_on(GB_SWITCH_ON, GB_PROFILE_SAFE));
}

/* ---- foreign variables ---- */

static void rank_and_job_come_from_the_launchers(void **state)
{
    (void)state;
    static const char *const names[] = {"RANK",     "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"};
    for (size_t i = 0; i < GB_ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    clear();
    gb_config_load();
    assert_string_equal(gb_environment.rank, "");
    setenv("RANK", "../3", 1); /* no number: the next name counts */
    setenv("OMPI_COMM_WORLD_RANK", "7", 1);
    setenv("TORCHELASTIC_RUN_ID", "abc", 1);
    gb_config_load();
    assert_string_equal(gb_environment.rank, "7");
    assert_string_equal(gb_environment.job, "abc");
    setenv("RANK", "2", 1);
    gb_config_load();
    assert_string_equal(gb_environment.rank, "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_strict),
        cmocka_unit_test(times_need_a_unit),
        cmocka_unit_test(bools_and_choices_are_words),
        cmocka_unit_test(shares_are_one_in_n),
        cmocka_unit_test(random_texts_round_trip),
        cmocka_unit_test(defaults_are_those_of_the_list),
        cmocka_unit_test(environment_sets_every_kind),
        cmocka_unit_test(empty_means_not_set),
        cmocka_unit_test(bad_value_keeps_the_default_and_is_named_once),
        cmocka_unit_test(hostile_values_are_made_harmless),
        cmocka_unit_test(unknown_names_get_the_nearest),
        cmocka_unit_test(many_complaints_are_bounded),
        cmocka_unit_test(quiet_says_nothing),
        cmocka_unit_test(policies_follow_switch_and_profile),
        cmocka_unit_test(rank_and_job_come_from_the_launchers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
