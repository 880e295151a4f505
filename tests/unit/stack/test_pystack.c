/* test_pystack.c: the pure parts of the Python stack reader: line tables, versions and layouts,
 * interning. No Python is involved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stack/pystack_internal.h"

#define PAGE 4096

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* A page that ends where unreadable memory begins: reading one byte too far is a fault. */
static uint8_t *page_before_nothing(void)
{
    uint8_t *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
    return p;
}

/* --- lines: tables written by hand after CPython's own notes --- */

static void lines_3_9(void **state)
{
    (void)state;
    static const uint8_t t[] = {0, 1, 4, 1, 6, 0xfe /* -2 */, 255, 0, 1, 127, 0, 3};
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, t, sizeof t, 10, -1), 10);
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, t, sizeof t, 10, 0), 11);
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, t, sizeof t, 10, 3), 11);
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, t, sizeof t, 10, 4), 12);
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, t, sizeof t, 10, 10), 10);
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, t, sizeof t, 10, 265), 10);
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, t, sizeof t, 10, 266), 140);
    assert_int_equal(gb_py_line(GB_PY_LNOTAB, NULL, 0, 10, 6), 10);
}

static void lines_3_10(void **state)
{
    (void)state;
    static const uint8_t t[] = {4, 0, 2, 1, 6, 0x80 /* no line */, 2, 5, 0, 127, 2, 1};
    static const int want[] = {10, 10, 11, -1, -1, -1, 16, 144};
    for (int i = 0; i < 8; i++)
        assert_int_equal(gb_py_line(GB_PY_PAIRS, t, sizeof t, 10, 2 * i), want[i]);
    assert_int_equal(gb_py_line(GB_PY_PAIRS, t, sizeof t, 10, 16), -1);
    assert_int_equal(gb_py_line(GB_PY_PAIRS, t, sizeof t, 10, -1), 10);
}

#define ENTRY(kind, units) (0x80 | (kind) << 3 | ((units)-1))

static void lines_3_11(void **state)
{
    (void)state;
    static const uint8_t t[] = {
        ENTRY(13, 1), 2,                     /* no columns, +1 */
        ENTRY(5, 2),  0x31,                  /* short form: same line */
        ENTRY(11, 1), 4,        9,           /* one line further */
        ENTRY(15, 2),                        /* no location */
        ENTRY(14, 1), 0x40 | 8, 20, 1, 2, 3, /* long, +(8 + 20*64)/2 = 644 */
        ENTRY(14, 1), 3,        0,  1, 1,    /* long, -1 */
        ENTRY(12, 8), 1,        2,           /* two further */
    };
    static const int want[] = {11, 11, 11, 12, -1, -1, 656, 655, 657, 657};
    for (int i = 0; i < 10; i++)
        assert_int_equal(gb_py_line(GB_PY_LOCATIONS, t, sizeof t, 10, 2 * i), want[i]);
    assert_int_equal(gb_py_line(GB_PY_LOCATIONS, t, sizeof t, 10, 32), -1);
    assert_int_equal(gb_py_line(GB_PY_LOCATIONS, t, sizeof t, 10, -2), 10);
}

static void lines_of_garbage_stay_inside(void **state)
{
    (void)state;
    uint8_t *page = page_before_nothing();
    uint64_t seed = 1;
    for (int round = 0; round < 30000; round++) {
        size_t n = next_random(&seed) % 40;
        uint8_t *t = page + PAGE - n;
        for (size_t i = 0; i < n; i++)
            t[i] = (uint8_t)next_random(&seed);
        int64_t lasti = (int64_t)(next_random(&seed) % 400) - 2;
        int first = round % 3 ? (int)next_random(&seed) : INT32_MAX;
        for (int form = GB_PY_LNOTAB; form <= GB_PY_LOCATIONS; form++)
            (void)gb_py_line((enum gb_py_lines)form, t, n, first, lasti);
    }
    munmap(page, 2 * PAGE);
}

/* --- versions and layouts --- */

static void versions_are_parsed(void **state)
{
    (void)state;
    assert_int_equal(gb_py_version_parse("3.9.18 (main, May  9 2026)"), 0x030912f0);
    assert_int_equal(gb_py_version_parse("3.10.0+ (heads/3.10)"), 0x030a00f0);
    assert_int_equal(gb_py_version_parse("3.13.0rc2 (main)"), 0x030d00c2);
    assert_int_equal(gb_py_version_parse("3.14.0a1"), 0x030e00a1);
    assert_int_equal(gb_py_version_parse("3.15.0b3"), 0x030f00b3);
    assert_int_equal(gb_py_version_parse(""), 0);
    assert_int_equal(gb_py_version_parse("3"), 0);
    assert_int_equal(gb_py_version_parse("3.x.1"), 0);
    assert_int_equal(gb_py_version_parse("3.11."), 0);
    assert_int_equal(gb_py_version_parse("99999999999.1.1"), 0);
}

static void unknown_versions_are_refused(void **state)
{
    (void)state;
    struct gb_py_layout l;
    char table[2048] = {0};
    static const uint32_t unknown[] = {0,          0x020712f0, 0x030812f0, 0x031000f0,
                                       0x040000f0, 0xffffffff, 0x030a00a1, 0x030c00b2};
    for (size_t i = 0; i < GB_ARRAY_LEN(unknown); i++)
        assert_non_null(gb_py_layout_choose(unknown[i], table, &l));
    for (uint32_t minor = 9; minor <= 12; minor++) {
        assert_null(gb_py_layout_choose(0x030005f0 | minor << 16, table, &l));
        assert_int_equal(l.minor, minor);
        assert_false(l.published);
    }
}

static void put64(char *table, size_t at, uint64_t value)
{
    memcpy(table + at, &value, 8);
}

static void published_layouts_are_checked(void **state)
{
    (void)state;
    struct gb_py_layout l;
    char table[2048];
    for (uint32_t minor = 13; minor <= 15; minor++) {
        uint32_t version = 0x030000f0 | minor << 16;
        for (size_t at = 0; at < sizeof table; at += 8)
            put64(table, at, 32 + at % 1024);
        assert_non_null(gb_py_layout_choose(version, table, &l)); /* no cookie */
        memcpy(table, "xdebugpy", 8);
        assert_non_null(gb_py_layout_choose(version, table, &l)); /* another version */
        put64(table, 8, version);
        put64(table, 16, 1);
        assert_string_equal(gb_py_layout_choose(version, table, &l),
                            "free-threaded builds are not supported");
        put64(table, 16, 0);
        assert_null(gb_py_layout_choose(version, table, &l));
        assert_int_equal(l.minor, minor);
        assert_true(l.published);
        for (size_t at = 24; at < sizeof table; at += 8)
            put64(table, at, UINT64_MAX - at);
        assert_non_null(gb_py_layout_choose(version, table, &l)); /* nonsense */
    }
}

/* --- interning --- */

static const struct gb_py_limits small = {
    .map_slots = 64, .text_bytes = 512, .texts = 16, .places = 32, .stacks = 16, .pool = 64};

static uint32_t intern_place(struct gb_py_table *t, const char *file, const char *func, int line)
{
    return gb_py_table_place(t, gb_py_table_text(t, file, strlen(file)),
                             gb_py_table_text(t, func, strlen(func)), line);
}

static void equal_things_have_equal_ids(void **state)
{
    (void)state;
    struct gb_py_table t;
    struct gb_pyframe f[4];
    assert_true(gb_py_table_init(&t, &small));
    uint32_t a = intern_place(&t, "a.py", "f", 1), b = intern_place(&t, "a.py", "f", 2);
    uint32_t c = intern_place(&t, "", "f", -1);
    assert_int_equal(intern_place(&t, "a.py", "f", 1), a);
    assert_true(a && b && c && a != b && b != c && a != c);
    uint32_t ab[] = {a, b, c}, ba[] = {b, a, c};
    uint32_t one = gb_py_table_stack(&t, ab, 3), two = gb_py_table_stack(&t, ba, 3);
    uint32_t part = gb_py_table_stack(&t, ab, 2);
    assert_true(one && two && part && one != two && one != part);
    assert_int_equal(gb_py_table_stack(&t, ab, 3), one);
    assert_int_equal(gb_py_table_frames(&t, one, f, 4), 3);
    assert_string_equal(f[0].file, "a.py");
    assert_int_equal(f[1].line, 2);
    assert_string_equal(f[2].file, "");
    assert_int_equal(f[2].line, -1);
    assert_int_equal(gb_py_table_frames(&t, one, f, 1), 1);
    assert_int_equal(gb_py_table_frames(&t, one, f, 0), 0);
    assert_int_equal(gb_py_table_frames(&t, 0, f, 4), 0);
    assert_int_equal(gb_py_table_frames(&t, 4, f, 4), 0);
    assert_int_equal(gb_py_table_frames(&t, UINT32_MAX, f, 4), 0);
}

static void full_tables_say_so_and_keep_what_they_have(void **state)
{
    (void)state;
    struct gb_py_table t;
    struct gb_pyframe f[8];
    assert_true(gb_py_table_init(&t, &small));
    uint32_t first = intern_place(&t, "file", "func", 1), stack = gb_py_table_stack(&t, &first, 1);
    int places = 0, stacks = 0;
    for (int line = 2; line < 1000; line++) {
        uint32_t p = intern_place(&t, "file", "func", line), chain[] = {first, p, p};
        places += p != 0;
        stacks += p && gb_py_table_stack(&t, chain, 3) != 0;
    }
    assert_int_equal(places, 30); /* 32 with number 0 and the first */
    assert_in_range(stacks, 14, 15);
    assert_true(t.full);
    char name[8];
    int texts = 0;
    for (int i = 0; i < 100; i++)
        texts += gb_py_table_text(&t, name, (size_t)snprintf(name, 8, "n%d", i)) != 0;
    assert_int_equal(texts, 14);
    assert_int_equal(gb_py_table_stack(&t, &first, 1), stack);
    assert_int_equal(gb_py_table_frames(&t, stack, f, 8), 1);
    assert_string_equal(f[0].func, "func");
    char big[600];
    memset(big, 'x', sizeof big);
    assert_int_equal(gb_py_table_text(&t, big, sizeof big), 0);
}

static void maps_find_what_was_put_and_survive_a_wipe(void **state)
{
    (void)state;
    struct gb_py_table t;
    uint64_t seed = 7, keys[40];
    assert_true(gb_py_table_init(&t, &small));
    for (uint32_t i = 0; i < 40; i++) {
        keys[i] = (uint64_t)next_random(&seed) << 32 | next_random(&seed);
        assert_int_equal(gb_py_map_get(&t.stack_by_key, keys[i]), 0);
        gb_py_map_put(&t.stack_by_key, keys[i], i + 1);
    }
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(gb_py_map_get(&t.stack_by_key, keys[i]), i + 1);
    for (uint32_t i = 0; i < 10000; i++) {
        uint64_t key = (uint64_t)next_random(&seed) << 32 | next_random(&seed);
        gb_py_map_put(&t.stack_by_key, key, GB_PY_ID_MAX);
        assert_int_equal(gb_py_map_get(&t.stack_by_key, key), GB_PY_ID_MAX);
    }
    for (uint32_t i = 0; i < 40; i++) { /* forgotten, never mixed up */
        uint32_t id = gb_py_map_get(&t.stack_by_key, keys[i]);
        assert_true(id == 0 || id == i + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_3_9),
        cmocka_unit_test(lines_3_10),
        cmocka_unit_test(lines_3_11),
        cmocka_unit_test(lines_of_garbage_stay_inside),
        cmocka_unit_test(versions_are_parsed),
        cmocka_unit_test(unknown_versions_are_refused),
        cmocka_unit_test(published_layouts_are_checked),
        cmocka_unit_test(equal_things_have_equal_ids),
        cmocka_unit_test(full_tables_say_so_and_keep_what_they_have),
        cmocka_unit_test(maps_find_what_was_put_and_survive_a_wipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
