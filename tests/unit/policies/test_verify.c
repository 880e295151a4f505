/* test_verify.c: GPUBOOST_VERIFY: staged copies are read back, and a difference switches staging
 * off. On the fake driver, each scenario in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "in_child.h"
#include "policies/verify.h"
#include "staging.h"

static int right_scenario(int every)
{
    start_program();
    gb_config.verify_every = (uint64_t)every;
    warm_up();
    for (int i = 0; i < 12; i++) {
        fill(host, 9 * MIB, (uint64_t)i);
        CHECK(copy(device, host, 9 * MIB) == CUDA_SUCCESS);
        CHECK(memcmp(device, host, 9 * MIB) == 0);
    }
    CHECK(staged_copies() == 12 && !gb_verify_failed());
    CHECK(gb_counters.verified == (every ? 12u / (unsigned)every : 0));
    return 0;
}

static void every_nth_copy_is_read_back(void **state)
{
    (void)state;
    assert_scenario(right_scenario, 0);
    assert_scenario(right_scenario, 1);
    assert_scenario(right_scenario, 3);
}

/* One byte of the third piece changes on the way. */
static int wrong_scenario(int unused)
{
    (void)unused;
    start_program();
    gb_config.verify_every = 1;
    warm_up();
    fill(host, 9 * MIB, 1);
    CHECK(copy(device, host, 9 * MIB) == CUDA_SUCCESS && staged_copies() == 1);
    fake.corrupt_send = fake.count[FAKE_SEND] + 3;
    fill(host, 9 * MIB, 2);
    CHECK(copy(device, host, 9 * MIB) == CUDA_SUCCESS);
    CHECK(memcmp(device, host, 9 * MIB) == 0); /* by the real call */
    CHECK(staged_copies() == 1 && fake.count[FAKE_FORWARD] == 1);
    CHECK(gb_verify_failed() && gb_counters.verify_wrong == 1);
    CHECK(copy(device, host, 9 * MIB) == CUDA_SUCCESS);
    CHECK(staged_copies() == 1 && gb_counters.h2d_wrong == 1 && fake.count[FAKE_FORWARD] == 2);
    return 0;
}

static void a_difference_switches_staging_off(void **state)
{
    (void)state;
    assert_scenario(wrong_scenario, 0);
}

static int unreadable_scenario(int unused)
{
    (void)unused;
    start_program();
    gb_config.verify_every = 1;
    warm_up();
    fake.fail_call = FAKE_READ;
    fake.fail_nth = 1;
    fill(host, MIB, 3);
    CHECK(copy(device, host, MIB) == CUDA_SUCCESS && staged_copies() == 1);
    CHECK(memcmp(device, host, MIB) == 0);
    CHECK(gb_counters.verify_error == 1 && gb_counters.verified == 0 && !gb_verify_failed());
    return 0;
}

static void what_cannot_be_read_back_proves_nothing(void **state)
{
    (void)state;
    assert_scenario(unreadable_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_nth_copy_is_read_back),
        cmocka_unit_test(a_difference_switches_staging_off),
        cmocka_unit_test(what_cannot_be_read_back_proves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
