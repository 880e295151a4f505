/* test_h2d_decline.c: which copies the staging policy leaves alone: each for its counted reason,
 * with the real call made on the original arguments and nothing else touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/capture.h"
#include "gpu/ranges.h"
#include "in_child.h"
#include "staging.h"

/* ---- one copy, one reason ---- */

/* The only copy after warm_up is forwarded as it is, and the program gets its answer. */
static int is_forwarded(const uint8_t *dst, const uint8_t *src, size_t bytes)
{
    fake.error = CUDA_ERROR_INVALID_VALUE; /* of the real call, to see that it is handed on */
    fake.fail_call = FAKE_FORWARD;
    fake.fail_nth = 1;
    CHECK(copy((void *)(uintptr_t)dst, src, bytes) == CUDA_ERROR_INVALID_VALUE);
    CHECK(fake.count[FAKE_FORWARD] == 1 && fake.count[FAKE_SEND] == 0);
    const struct fake_log *last = &fake.log[fake.logged - 1];
    CHECK(last->call == FAKE_FORWARD && last->address == src && last->bytes == bytes);
    CHECK(fake.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(fake.count[FAKE_REGISTER] == 0 && fake_pending() == 0);
    CHECK(staged_copies() == 0);
    return 0;
}

enum reason {
    PINNED_AS_WE_SAW,
    PINNED_AT_ITS_END_AS_WE_SAW,
    REGISTERED_BY_SOMEBODY,
    REGISTERED_AT_ITS_END,
    FROM_DEVICE_MEMORY,
    FROM_MANAGED_MEMORY,
    FROM_NOWHERE,
    TO_HOST_MEMORY,
    TO_MORE_THAN_DEVICE_MEMORY,
    TO_MANAGED_MEMORY,
    TO_SYNC_MEMOPS,
    TO_ANOTHER_DEVICE,
    OTHER_CONTEXT_CURRENT,
    NOT_THE_PRIMARY_CONTEXT,
    NO_PRIMARY_CONTEXT,
    STREAM_OF_ANOTHER_CONTEXT,
    STREAM_CAPTURING,
    CAPTURE_BY_SOMEBODY,
    COHERENT,
    NO_BUDGET,
    REASONS
};

/* Pinned as we saw it: the synchronous form blocks all the same, and asks. */
static int pinned_and_synchronous_scenario(int offset)
{
    start_program();
    warm_up();
    gb_ranges_add(host + offset, 1);
    CHECK(copy_now(device, host, 3 * MIB) == CUDA_SUCCESS);
    CHECK(fake.calls == 1 && fake.count[FAKE_FORWARD] == 1);
    CHECK(gb_counters.h2d_registered == 1 && declined() == 1);
    return 0;
}

static void pinned_memory_is_known_without_a_question(void **state)
{
    (void)state;
    assert_scenario(pinned_and_synchronous_scenario, 0);
    assert_scenario(pinned_and_synchronous_scenario, 3 * MIB - 1);
}

/* Sets the scene, and says which counter must move, if any. */
static gb_counter *make(enum reason reason, uint8_t **dst, const uint8_t **src, size_t bytes)
{
    switch (reason) {
    case PINNED_AS_WE_SAW:
        gb_ranges_add(host, bytes);
        return NULL; /* it does not block: no policy is asked */
    case PINNED_AT_ITS_END_AS_WE_SAW:
        gb_ranges_add(host + bytes - 1, 1);
        return NULL;
    case REGISTERED_BY_SOMEBODY:
        fake.registered = (struct fake_range){host, host + 1};
        return &gb_counters.h2d_registered;
    case REGISTERED_AT_ITS_END:
        fake.registered = (struct fake_range){host + bytes - 1, host + bytes};
        return &gb_counters.h2d_registered;
    case FROM_MANAGED_MEMORY:
        fake.managed = 1;
        *src = device + 8 * MIB;
        return &gb_counters.h2d_registered;
    case FROM_DEVICE_MEMORY:
        *src = device + 8 * MIB;
        return &gb_counters.h2d_registered;
    case FROM_NOWHERE:
        *src = NULL;
        return &gb_counters.h2d_registered;
    case TO_HOST_MEMORY:
        *dst = host + 8 * MIB;
        return &gb_counters.h2d_destination;
    case TO_MORE_THAN_DEVICE_MEMORY:
        fake.device.end = device + bytes - 1;
        return &gb_counters.h2d_destination;
    case TO_MANAGED_MEMORY:
        fake.managed = 1;
        return &gb_counters.h2d_destination;
    case TO_SYNC_MEMOPS:
        fake.sync_memops = 1;
        return &gb_counters.h2d_destination;
    case TO_ANOTHER_DEVICE:
        fake.ordinal = 1;
        return &gb_counters.h2d_destination;
    case OTHER_CONTEXT_CURRENT: /* set by a way that the hooks do not see */
        fake.context = fake.primary = fake.stream_context = (CUcontext)0xc1;
        return &gb_counters.h2d_context;
    case NOT_THE_PRIMARY_CONTEXT:
        fake.primary = (CUcontext)0xc1;
        return &gb_counters.h2d_context;
    case NO_PRIMARY_CONTEXT:
        fake.primary = NULL;
        return &gb_counters.h2d_context;
    case STREAM_OF_ANOTHER_CONTEXT:
        fake.stream_context = (CUcontext)0xc1;
        return &gb_counters.h2d_context;
    case STREAM_CAPTURING:
        fake.capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        return &gb_counters.h2d_capture;
    case CAPTURE_BY_SOMEBODY:
        gb_capture_begins((CUstream)0x5152);
        return &gb_counters.h2d_capture;
    case COHERENT:
        fake.coherent = 1;
        return &gb_counters.h2d_coherent;
    case NO_BUDGET:
        budget_bytes = 0;
        return &gb_counters.h2d_ring;
    default:
        return NULL;
    }
}

static int decline_scenario(int reason)
{
    size_t bytes = 3 * MIB;
    uint8_t *dst;
    const uint8_t *src;
    start_program();
    for (int i = 0; i < 8; i++) /* warm, and nothing asked of the driver yet */
        copy(device, host, 65 * KIB);
    memset(&gb_counters, 0, sizeof gb_counters);
    memset(fake.count, 0, sizeof fake.count);
    dst = device, src = host;
    gb_counter *why = make((enum reason)reason, &dst, &src, bytes);
    CHECK(is_forwarded(dst, src, bytes) == 0);
    CHECK(declined() == (why ? 1 : 0) && (!why || *why == 1));
    return 0;
}

static void each_reason_is_counted_and_forwards(void **state)
{
    (void)state;
    for (int reason = 0; reason < REASONS; reason++) {
        if (in_child(decline_scenario, reason))
            fail_msg("reason %d", reason);
    }
}

/* A size that was computed wrongly: both ends look well, and nothing may be read. */
static int absurd_size_scenario(int back)
{
    start_program();
    warm_up();
    CHECK(is_forwarded(device + MIB, host + MIB, (size_t)-back) == 0);
    CHECK(declined() == 1);
    return 0;
}

static void a_size_beyond_the_address_space_is_forwarded(void **state)
{
    (void)state;
    assert_scenario(absurd_size_scenario, 1);
    assert_scenario(absurd_size_scenario, 4096);
}

/* ---- too small, too early, switched off ---- */

static int small_scenario(int bytes)
{
    start_program();
    warm_up();
    fill(host, 64 * KIB, 8);
    CHECK(copy(device, host, (size_t)bytes) == CUDA_SUCCESS);
    CHECK(fake.calls == 1 && fake.count[FAKE_FORWARD] == 1);
    CHECK(declined() == 0 && memcmp(device, host, (size_t)bytes) == 0);
    memset(device, 0xa5, (size_t)bytes);
    CHECK(copy_now(device, host, (size_t)bytes) == CUDA_SUCCESS);
    CHECK(fake.calls == 2 && fake.count[FAKE_FORWARD] == 2);
    CHECK(declined() == 0 && memcmp(device, host, (size_t)bytes) == 0);
    return 0;
}

static void small_copies_cost_no_question(void **state)
{
    (void)state;
    assert_scenario(small_scenario, 0);
    assert_scenario(small_scenario, 4);
    assert_scenario(small_scenario, 64 << 10);
}

static int warming_scenario(int first_mib)
{
    int expected = first_mib ? (first_mib >= 64 ? 1 : 2) : 8;
    start_program();
    for (int i = 0; i < 12 && !staged_copies(); i++)
        copy(device, host, i == 0 && first_mib ? (size_t)first_mib * MIB : 65 * KIB + 1);
    CHECK(staged_copies() == 1);
    if (first_mib == 63) /* not enough: then it is the eighth that counts */
        expected = 8;
    CHECK(gb_counters.h2d_warming == (uint64_t)expected);
    CHECK(fake.count[FAKE_FORWARD] == expected && declined() == (uint64_t)expected);
    return 0;
}

static void the_first_copies_are_left_alone(void **state)
{
    (void)state;
    assert_scenario(warming_scenario, 0);
    assert_scenario(warming_scenario, 63);
    assert_scenario(warming_scenario, 64);
}

static int off_scenario(int how)
{
    start_program();
    warm_up();
    gb_config.policy = how == 0 ? GB_PROFILE_OBSERVE : GB_PROFILE_SAFE;
    gb_config.h2d = how == 1 ? GB_SWITCH_OFF : GB_SWITCH_AUTO;
    if (how == 2)
        gb_state = GB_STATE_OFF;
    CHECK(copy(device, host, 3 * MIB) == CUDA_SUCCESS);
    CHECK(fake.calls == 1 && fake.count[FAKE_FORWARD] == 1 && declined() == 0);
    return 0;
}

static void switched_off_no_call_is_added(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++)
        assert_scenario(off_scenario, how);
}

/* ---- memory is given back ---- */

static int host_alloc_scenario(int unused)
{
    void *p = NULL;
    (void)unused;
    start_program();
    warm_up();
    copy(device, host, 3 * MIB);
    CHECK(staged_copies() == 1 && fake_pinned_count() > 0);
    fake.fail_call = FAKE_HOST_ALLOC;
    fake.fail_nth = 1;
    fake.error = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(cuMemHostAlloc(&p, MIB, 0) == CUDA_SUCCESS && p);
    CHECK(fake.count[FAKE_HOST_ALLOC] == 2);
    CHECK(fake_pinned_count() == 0 && fake.events_alive == 0 && gb_pinned_bytes() == 0);
    CHECK(gb_counters.ring_given_back == 1);
    CHECK(copy(device, host, 3 * MIB) == CUDA_SUCCESS && staged_copies() == 1);
    CHECK(gb_counters.h2d_ring == 1); /* the program needs the memory */
    return 0;
}

static int host_alloc_fails_scenario(int error)
{
    void *p = NULL;
    start_program();
    warm_up();
    fake.fail_call = FAKE_HOST_ALLOC;
    fake.fail_nth = 1;
    fake.error = (CUresult)error;
    if (error != CUDA_ERROR_OUT_OF_MEMORY)
        copy(device, host, 3 * MIB); /* there is a ring, but memory is not what is missing */
    CHECK(cuMemHostAlloc(&p, MIB, 0) == (CUresult)error && !p);
    CHECK(fake.count[FAKE_HOST_ALLOC] == 1 && gb_counters.ring_given_back == 0);
    return 0;
}

static void a_failed_allocation_gets_the_ring_once(void **state)
{
    (void)state;
    assert_scenario(host_alloc_scenario, 0);
    assert_scenario(host_alloc_fails_scenario, CUDA_ERROR_OUT_OF_MEMORY);
    assert_scenario(host_alloc_fails_scenario, CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_is_counted_and_forwards),
        cmocka_unit_test(pinned_memory_is_known_without_a_question),
        cmocka_unit_test(a_size_beyond_the_address_space_is_forwarded),
        cmocka_unit_test(small_copies_cost_no_question),
        cmocka_unit_test(the_first_copies_are_left_alone),
        cmocka_unit_test(switched_off_no_call_is_added),
        cmocka_unit_test(a_failed_allocation_gets_the_ring_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
