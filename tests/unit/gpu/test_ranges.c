/* test_ranges.c: pinned host ranges against a model of one word per page, readers beside a writer,
 * and what is said once the table has overflowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/ranges.h"
#include "in_child.h"
#include "record/counters.h"

#define UNIT  64 /* bytes; what the model does not know is within one */
#define UNITS 4096

static const void *at(size_t unit)
{
    return (const void *)(0x100000 + unit * UNIT);
}

/* ---- by hand ---- */

static int edges_scenario(int unused)
{
    (void)unused;
    const char *p = at(10);
    CHECK(gb_ranges_touch(p, 1) == GB_RANGE_NONE);
    gb_ranges_add(p, 100);
    CHECK(gb_ranges_touch(p, 1) == GB_RANGE_PINNED);
    CHECK(gb_ranges_touch(p + 99, 1) == GB_RANGE_PINNED);
    CHECK(gb_ranges_touch(p + 100, 1) == GB_RANGE_NONE);
    CHECK(gb_ranges_touch(p - 1, 1) == GB_RANGE_NONE);
    CHECK(gb_ranges_touch(p - 1, 2) == GB_RANGE_PINNED);   /* its end lies in it */
    CHECK(gb_ranges_touch(p - 5, 500) == GB_RANGE_PINNED); /* it lies around it */
    gb_ranges_remove(p + 1);                               /* no such range */
    CHECK(gb_ranges_touch(p, 1) == GB_RANGE_PINNED);
    gb_ranges_remove(p);
    CHECK(gb_ranges_touch(p, 100) == GB_RANGE_NONE);
    gb_ranges_remove(p);
    gb_ranges_remove(NULL);
    gb_ranges_add(NULL, 100); /* an allocation of nothing */
    gb_ranges_add(p, 0);
    CHECK(gb_ranges_touch(NULL, 1) == GB_RANGE_NONE && gb_ranges_touch(p, 1) == GB_RANGE_NONE);
    return 0;
}

static void edges_are_exact(void **state)
{
    (void)state;
    assert_scenario(edges_scenario, 0);
}

/* A range that covers others: they were freed by a way that we do not see. */
static int covered_scenario(int unused)
{
    (void)unused;
    gb_ranges_add(at(0), 10 * UNIT);
    gb_ranges_add(at(20), 10 * UNIT);
    gb_ranges_add(at(40), 10 * UNIT);
    gb_ranges_add(at(100), UNIT);
    gb_ranges_add(at(5), 60 * UNIT);
    for (size_t unit = 5; unit < 65; unit++)
        CHECK(gb_ranges_touch(at(unit), UNIT) == GB_RANGE_PINNED);
    CHECK(gb_ranges_touch(at(65), 35 * UNIT) == GB_RANGE_NONE);
    CHECK(gb_ranges_touch(at(100), 1) == GB_RANGE_PINNED);
    gb_ranges_remove(at(5));
    CHECK(gb_ranges_touch(at(0), 100 * UNIT) == GB_RANGE_NONE);
    CHECK(gb_ranges_touch(at(100), 1) == GB_RANGE_PINNED);
    return 0;
}

static void a_new_range_takes_the_place_of_all_it_covers(void **state)
{
    (void)state;
    assert_scenario(covered_scenario, 0);
}

/* ---- a model ---- */

static uint32_t owner[UNITS]; /* number of the range that covers the unit, 0: none */

static int model_scenario(int seed)
{
    uint32_t start[64] = {0}, live[64] = {0}, number = 0;
    srand((unsigned)seed);
    for (int step = 0; step < 20000; step++) {
        int slot = rand() % 64;
        if (live[slot] && rand() % 2) {
            gb_ranges_remove(at(start[slot]));
            for (int i = 0; i < UNITS; i++)
                owner[i] = owner[i] == live[slot] ? 0 : owner[i];
            live[slot] = 0;
        } else if (!live[slot]) {
            uint32_t length = 1 + (uint32_t)rand() % (rand() % 8 ? 8 : 400);
            start[slot] = (uint32_t)rand() % (UNITS - 400);
            live[slot] = ++number;
            for (uint32_t i = start[slot]; i < start[slot] + length; i++)
                for (int other = 0; other < 64 && owner[i]; other++)
                    if (other != slot && live[other] == owner[i]) { /* the whole range is gone */
                        for (int j = 0; j < UNITS; j++)
                            owner[j] = owner[j] == live[other] ? 0 : owner[j];
                        live[other] = 0;
                    }
            for (uint32_t i = start[slot]; i < start[slot] + length; i++)
                owner[i] = live[slot];
            gb_ranges_add(at(start[slot]), (size_t)length * UNIT);
        }
        uint32_t from = (uint32_t)rand() % UNITS, length = 1 + (uint32_t)rand() % 40;
        bool expected = false;
        for (uint32_t i = from; i < from + length && i < UNITS; i++)
            expected |= owner[i] != 0;
        CHECK(gb_ranges_touch(at(from), (size_t)length * UNIT) ==
              (expected ? GB_RANGE_PINNED : GB_RANGE_NONE));
    }
    return 0;
}

static void random_ranges_follow_the_model(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 4; seed++)
        assert_scenario(model_scenario, seed);
}

/* ---- threads ---- */

static uint32_t stop, wrong, answered;

/* Units 1000.. are always pinned, units 3000.. never; what lies before them comes and goes, so that
 * the table moves under the reader. */
static void *reader(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        enum gb_range pinned = gb_ranges_touch(at(1005), 1), none = gb_ranges_touch(at(3000), 1);
        if (pinned == GB_RANGE_NONE || none == GB_RANGE_PINNED)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        if (pinned == GB_RANGE_PINNED)
            __atomic_fetch_add(&answered, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

static int reader_scenario(int unused)
{
    pthread_t threads[2];
    (void)unused;
    gb_ranges_add(at(1000), 10 * UNIT);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, reader, NULL) == 0);
    for (size_t round = 0; round < 60000 || !__atomic_load_n(&answered, __ATOMIC_RELAXED);
         round++) {
        gb_ranges_add(at(round % 50 * 2), UNIT);
        gb_ranges_add(at(2000 + round % 50 * 2), UNIT);
        gb_ranges_remove(at((round + 25) % 50 * 2));
        gb_ranges_remove(at(2000 + (round + 25) % 50 * 2));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(wrong == 0);
    return 0;
}

static void a_reader_beside_a_writer_is_never_told_wrong(void **state)
{
    (void)state;
    assert_scenario(reader_scenario, 0);
}

/* ---- overflow ---- */

static int overflow_scenario(int unused)
{
    size_t added = 0;
    (void)unused;
    while (gb_counters.ranges_full == 0 && added < 1000000)
        gb_ranges_add(at(2 * added++), UNIT);
    CHECK(gb_counters.ranges_full == 1 && added > 1000);
    CHECK(gb_ranges_touch(at(0), 1) == GB_RANGE_UNKNOWN);
    CHECK(gb_ranges_touch(at(1), 1) == GB_RANGE_UNKNOWN);
    gb_ranges_remove(at(0));
    CHECK(gb_ranges_touch(at(1), 1) ==
          GB_RANGE_UNKNOWN); /* one that was not taken up may be there */
    return 0;
}

static void behind_an_overflow_nothing_is_known(void **state)
{
    (void)state;
    assert_scenario(overflow_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_are_exact),
        cmocka_unit_test(a_new_range_takes_the_place_of_all_it_covers),
        cmocka_unit_test(random_ranges_follow_the_model),
        cmocka_unit_test(a_reader_beside_a_writer_is_never_told_wrong),
        cmocka_unit_test(behind_an_overflow_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
