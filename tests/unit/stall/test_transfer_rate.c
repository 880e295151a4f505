/* test_transfer_rate.c: what is estimated from copies that were seen, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "in_child.h"
#include "stall/transfer_rate.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static bool is_near(uint64_t ns, uint64_t expected)
{
    return ns + expected / 100 + 1 >= expected && ns <= expected + expected / 100 + 1;
}

static int refusal_scenario(int unused)
{
    uint64_t ns = 7;
    (void)unused;
    CHECK(!gb_rate_estimate(GB_COPY_H2D, MIB, &ns) && ns == 7); /* nothing to go by */
    gb_rate_learn(GB_COPY_H2D, 64 * KIB - 1, 1000, false);      /* mostly the call, not the bytes */
    CHECK(!gb_rate_estimate(GB_COPY_H2D, MIB, &ns));
    gb_rate_learn(GB_COPY_H2D, MIB, 100000, false);
    CHECK(!gb_rate_estimate(GB_COPY_D2H, MIB, &ns)); /* the other way is another rate */
    CHECK(!gb_rate_estimate(GB_COPY_H2D, 64 * KIB - 1, &ns) && ns == 7);
    CHECK(!gb_rate_estimate(GB_COPY_H2D, 0, &ns));
    CHECK(gb_rate_estimate(GB_COPY_H2D, MIB, &ns) && is_near(ns, 100000));
    return 0;
}

static void nothing_is_made_up(void **state)
{
    (void)state;
    assert_scenario(refusal_scenario, 0);
}

static int classes_scenario(int unused)
{
    uint64_t ns;
    (void)unused;
    gb_rate_learn(GB_COPY_H2D, 128 * KIB, 40000, false); /* small ones are slow */
    gb_rate_learn(GB_COPY_H2D, 64 * MIB, 6400000, false);
    CHECK(gb_rate_estimate(GB_COPY_H2D, 150 * KIB, &ns) && is_near(ns, 40000 * 150 / 128));
    CHECK(gb_rate_estimate(GB_COPY_H2D, 96 * MIB, &ns) && is_near(ns, 9600000));
    CHECK(gb_rate_estimate(GB_COPY_H2D, 1024 * MIB, &ns) && is_near(ns, 102400000));
    CHECK(gb_rate_estimate(GB_COPY_H2D, 32 * MIB, &ns) && is_near(ns, 3200000)); /* the nearest */
    CHECK(gb_rate_estimate(GB_COPY_H2D, 256 * KIB, &ns) && is_near(ns, 80000));
    CHECK(gb_rate_estimate(GB_COPY_H2D, UINT64_MAX, &ns));
    gb_rate_learn(GB_COPY_D2H, UINT64_MAX / 4, 1, false); /* the last class has no upper end */
    CHECK(gb_rate_estimate(GB_COPY_D2H, MIB, &ns));
    return 0;
}

static void the_nearest_size_decides(void **state)
{
    (void)state;
    assert_scenario(classes_scenario, 0);
}

static int least_scenario(int unused)
{
    uint64_t ns;
    (void)unused;
    gb_rate_learn(GB_COPY_H2D, MIB, 150000, true); /* some of it was a wait */
    CHECK(!gb_rate_estimate(GB_COPY_H2D, MIB, &ns));
    gb_rate_learn(GB_COPY_H2D, MIB, 200000, false); /* the machine was busy */
    CHECK(gb_rate_estimate(GB_COPY_H2D, MIB, &ns) && is_near(ns, 150000));
    gb_rate_learn(GB_COPY_H2D, MIB, 100000, true);
    gb_rate_learn(GB_COPY_H2D, MIB, 300000, true);
    CHECK(gb_rate_estimate(GB_COPY_H2D, MIB, &ns) && is_near(ns, 100000));
    return 0;
}

static void the_fastest_copy_bounds_the_others(void **state)
{
    (void)state;
    assert_scenario(least_scenario, 0);
}

static void *learner(void *unused)
{
    for (int i = 0; i < 50000; i++)
        gb_rate_learn(GB_COPY_H2D, MIB, 100000, false);
    return unused;
}

static int threads_scenario(int unused)
{
    pthread_t threads[4];
    uint64_t ns;
    (void)unused;
    gb_rate_learn(GB_COPY_H2D, MIB, 100000, false);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, learner, NULL) == 0);
    for (int i = 0; i < 50000; i++)
        gb_rate_estimate(GB_COPY_H2D, MIB, &ns);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(gb_rate_estimate(GB_COPY_H2D, MIB, &ns) && is_near(ns, 100000));
    return 0;
}

static void threads_may_learn_at_once(void **state)
{
    (void)state;
    assert_scenario(threads_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_made_up),
        cmocka_unit_test(the_nearest_size_decides),
        cmocka_unit_test(the_fastest_copy_bounds_the_others),
        cmocka_unit_test(threads_may_learn_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
