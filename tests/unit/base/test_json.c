/* test_json.c: bounded JSON lines, escaping, and clean texts for terminals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

static char buf[4096];

static const char *text_json(const char *text)
{
    struct gb_json j;
    gb_json_init(&j, buf, sizeof buf - 1);
    gb_json_open(&j, NULL, '[');
    gb_json_text(&j, NULL, text);
    gb_json_close(&j, ']');
    buf[j.used] = 0;
    return buf;
}

static void values_and_commas(void **state)
{
    (void)state;
    struct gb_json j;
    gb_json_init(&j, buf, sizeof buf);
    gb_json_open(&j, NULL, '{');
    gb_json_u64(&j, "a", 0);
    gb_json_u64(&j, "b", UINT64_MAX);
    gb_json_i64(&j, "c", INT64_MIN);
    gb_json_open(&j, "d", '[');
    gb_json_open(&j, NULL, '{');
    gb_json_close(&j, '}');
    gb_json_u64(&j, NULL, 7);
    gb_json_text(&j, NULL, "[");
    gb_json_null(&j, NULL);
    gb_json_close(&j, ']');
    gb_json_text(&j, "e", NULL);
    gb_json_close(&j, '}');
    size_t n = gb_json_finish(&j);
    buf[n] = 0;
    assert_string_equal(buf, "{\"a\":0,\"b\":18446744073709551615,\"c\":-9223372036854775808,"
                             "\"d\":[{},7,\"[\",null],\"e\":null}\n");
}

static void texts_are_escaped(void **state)
{
    (void)state;
    assert_string_equal(text_json("a\"b\\c/d"), "[\"a\\\"b\\\\c/d\"]");
    assert_string_equal(text_json("\n\r\t\x01\x1b[0m\x7f"),
                        "[\"\\u000a\\u000d\\u0009\\u0001\\u001b[0m\\u007f\"]");
    assert_string_equal(text_json("\xc3\xa9 \xf0\x9f\x98\x80"), "[\"\xc3\xa9 \xf0\x9f\x98\x80\"]");
    assert_string_equal(text_json("\xe2\x80\xa8"), "[\"\\u2028\"]");
}

static void malformed_utf8_is_replaced(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xff",
                                      "\x80",
                                      "\xc0",
                                      "\xc3",
                                      "\xf5",
                                      "\xe2\x82",
                                      "\xed\xa0\x80",
                                      "\xc0\xaf",
                                      "\xf4\x90\x80\x80",
                                      "\xf0\x80\x80\xaf"};
    for (size_t i = 0; i < GB_ARRAY_LEN(bad); i++) {
        text_json(bad[i]);
        assert_int_equal(strncmp(buf, "[\"\\ufffd", 8), 0);
        for (const char *s = buf; *s; s++)
            assert_true((unsigned char)*s < 0x80);
    }
}

/* Whatever the size: either the whole line or 0, and never a byte behind the end. */
static void a_full_buffer_is_no_line(void **state)
{
    (void)state;
    size_t whole = 0;
    for (size_t size = 200; size-- > 0;) {
        struct gb_json j;
        memset(buf, '#', sizeof buf);
        gb_json_init(&j, buf, size);
        gb_json_open(&j, NULL, '{');
        gb_json_text(&j, "name", "\x01\x02 long \xff");
        gb_json_u64(&j, "n", 123456789);
        gb_json_close(&j, '}');
        size_t n = gb_json_finish(&j);
        whole = whole ? whole : n;
        assert_int_equal(n, size >= whole ? whole : 0);
        for (size_t i = size; i < 256; i++)
            assert_int_equal(buf[i], '#');
    }
    assert_int_equal(whole, strlen("{\"name\":\"\\u0001\\u0002 long \\ufffd\",\"n\":123456789}\n"));
}

static void rewind_takes_back_what_did_not_fit(void **state)
{
    (void)state;
    struct gb_json j;
    gb_json_init(&j, buf, 20);
    gb_json_open(&j, NULL, '[');
    gb_json_u64(&j, NULL, 1);
    size_t used = j.used;
    gb_json_text(&j, NULL, "far too long for this");
    assert_true(j.full);
    gb_json_rewind(&j, used);
    gb_json_close(&j, ']');
    size_t n = gb_json_finish(&j);
    buf[n] = 0;
    assert_string_equal(buf, "[1]\n");
}

/* A reader's view of random bytes: the line is a balanced string of valid UTF-8 without controls.
 */
static void random_texts_stay_valid(void **state)
{
    (void)state;
    char text[64];
    srand(4);
    for (int i = 0; i < 300000; i++) {
        size_t n = (size_t)rand() % sizeof text;
        for (size_t k = 0; k < n; k++)
            text[k] = (char)(1 + rand() % 255);
        text[n < sizeof text ? n : 0] = 0;
        const char *s = text_json(text) + 2;
        for (uint32_t c; *s != '"';) {
            unsigned step = gb_utf8_next(s, &c);
            assert_true(step > 0 && c >= 0x20 && c != 0x7f);
            if (c == '\\')
                step = s[1] == 'u' ? 6 : 2;
            s += step;
        }
        assert_string_equal(s, "\"]");
        gb_text_clean(buf, 40, text);
        assert_true(strlen(buf) < 40);
        for (s = buf; *s;) {
            uint32_t c;
            unsigned step = gb_utf8_next(s, &c);
            assert_true(step > 0 && c >= 0x20 && !(c >= 0x7f && c <= 0x9f));
            s += step;
        }
    }
}

static void clean_texts_carry_no_terminal_codes(void **state)
{
    (void)state;
    gb_text_clean(buf, sizeof buf, "a\x1b[31mb\n\xc2\x9b\xe2\x80\xaez\xef\xbb\xbf\xff\xc3\xa9");
    assert_string_equal(buf,
                        "a\\x1b[31mb\\x0a\\xc2\\x9b\\xe2\\x80\\xaez\\xef\\xbb\\xbf\\xff\xc3\xa9");
    assert_int_equal(gb_text_clean(buf, 4, "abcdef"), 3);
    assert_string_equal(buf, "abc");
    assert_int_equal(gb_text_clean(buf, 4, "ab\xc3\xa9"), 2); /* no half characters */
    assert_int_equal(gb_text_clean(buf, 1, "a"), 0);
}

static const char *duration(uint64_t ns)
{
    struct gb_text t;
    gb_text_init(&t, buf, sizeof buf);
    gb_text_add_duration(&t, ns);
    return buf;
}

static void numbers_for_people(void **state)
{
    (void)state;
    struct gb_text t;
    assert_string_equal(duration(0), "0 ns");
    assert_string_equal(duration(999), "999 ns");
    assert_string_equal(duration(12345), "12.3 us");
    assert_string_equal(duration(9999999999), "9999.9 ms");
    assert_string_equal(duration(62400000000), "62.4 s");
    gb_text_init(&t, buf, sizeof buf);
    gb_text_add_bytes(&t, 1023);
    gb_text_add(&t, " ");
    gb_text_add_bytes(&t, 13421772800);
    gb_text_add(&t, " ");
    gb_text_add_percent(&t, 1, 8);
    gb_text_add(&t, " ");
    gb_text_add_percent(&t, 1, 0);
    gb_text_add(&t, " ");
    gb_text_add_percent(&t, UINT64_MAX / 2, UINT64_MAX);
    assert_string_equal(buf, "1023 B 12.5 GiB 12.5 % n/a 50.0 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_commas),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(malformed_utf8_is_replaced),
        cmocka_unit_test(a_full_buffer_is_no_line),
        cmocka_unit_test(rewind_takes_back_what_did_not_fit),
        cmocka_unit_test(random_texts_stay_valid),
        cmocka_unit_test(clean_texts_carry_no_terminal_codes),
        cmocka_unit_test(numbers_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
