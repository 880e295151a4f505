/* test_h2d_stage.c: a staged copy on a lazy driver: the order of its calls, its bytes, every error
 * in turn, and a ring that somebody else has. Each scenario is a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "in_child.h"
#include "staging.h"

/* ---- order ---- */

static bool acts(enum fake_call call)
{
    return call == FAKE_STREAM_SYNC || call == FAKE_EVENT_SYNC || call == FAKE_EVENT_CREATE ||
           call == FAKE_EVENT_RECORD || call == FAKE_REGISTER || call == FAKE_SEND;
}

static int order_scenario(int unused)
{
    (void)unused;
    start_program();
    fill(host, 9 * MIB, 1);
    warm_up();
    CHECK(copy(device, host, 9 * MIB) == CUDA_SUCCESS);
    CHECK(staged_copies() == 1 && declined() == 0 && fake.count[FAKE_FORWARD] == 0);
    CHECK(memcmp(device, host, 9 * MIB) == 0);
    int first = 0, last = fake.logged - 1;
    while (first < fake.logged && fake.log[first].call != FAKE_EXCHANGE)
        CHECK(!acts(fake.log[first++].call));
    CHECK(fake.log[last].call == FAKE_EXCHANGE);
    CHECK(fake.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(fake.log[first + 1].call == FAKE_STREAM_SYNC);
    const uint8_t *sent = NULL;
    int sends = 0;
    for (int i = first + 1; i < last; i++) {
        CHECK(fake.log[i].mode == CU_STREAM_CAPTURE_MODE_RELAXED);
        if (fake.log[i].call != FAKE_SEND)
            continue;
        CHECK(fake.log[i + 1].call == FAKE_EVENT_RECORD);
        CHECK(fake.log[i].bytes <= gb_config.chunk_bytes);
        CHECK(fake.log[i].address != sent); /* the chunk before it may still be on the link */
        sent = fake.log[i].address;
        sends++;
    }
    CHECK(sends > 2);
    CHECK(fake.log[last - 1].call == FAKE_EVENT_SYNC); /* all of it has arrived */
    CHECK(fake_pending() == 0);
    return 0;
}

static void the_calls_come_in_order(void **state)
{
    (void)state;
    assert_scenario(order_scenario, 0);
}

/* ---- bytes ---- */

static int source_order_scenario(int unused)
{
    uint8_t *late = malloc(MIB);
    (void)unused;
    start_program();
    warm_up();
    fill(host, MIB, 2);
    fill(late, MIB, 3);
    fake_queue_write(FAKE_STREAM, host, late, MIB);
    CHECK(copy(device, host, MIB) == CUDA_SUCCESS);
    CHECK(staged_copies() == 1);
    CHECK(memcmp(host, late, MIB) == 0);
    CHECK(memcmp(device, late, MIB) == 0);
    return 0;
}

static void the_source_is_read_after_earlier_work(void **state)
{
    (void)state;
    assert_scenario(source_order_scenario, 0);
}

/* Nothing on the stream runs host code: the source is read while it still works. */
static int early_scenario(int unused)
{
    (void)unused;
    start_program();
    warm_up();
    CHECK(copy(device, host, 9 * MIB) == CUDA_SUCCESS); /* pins the ring */
    fill(host, 9 * MIB, 8);
    fake.logged = 0;
    memset(fake.count, 0, sizeof fake.count);
    cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, FAKE_STREAM, NULL, NULL);
    CHECK(copy(device, host, 9 * MIB) == CUDA_SUCCESS);
    CHECK(staged_copies() == 2 && fake.count[FAKE_STREAM_SYNC] == 0);
    int sends = 0;
    for (int i = 0; i < fake.logged && fake.log[i].call != FAKE_EVENT_SYNC; i++)
        sends += fake.log[i].call == FAKE_SEND;
    CHECK(sends == fake.count[FAKE_SEND] && sends > 2);
    CHECK(memcmp(device, host, 9 * MIB) == 0 && fake_pending() == 0);
    return 0;
}

static void the_source_is_read_before_earlier_work_is_done(void **state)
{
    (void)state;
    assert_scenario(early_scenario, 0);
}

static int synchronous_scenario(int unused)
{
    uint8_t *late = malloc(MIB);
    (void)unused;
    start_program();
    warm_up();
    fill(host, MIB, 2);
    fill(late, MIB, 3);
    fake_queue_write(NULL, host, late, MIB);
    CHECK(copy_now(device, host, MIB) == CUDA_SUCCESS);
    CHECK(staged_copies() == 1 && declined() == 0);
    CHECK(memcmp(device, late, MIB) == 0 && fake_pending() == 0);
    return 0;
}

static void the_synchronous_form_is_served_too(void **state)
{
    (void)state;
    assert_scenario(synchronous_scenario, 0);
}

/* A size between 64 KiB and 64 MiB, as likely small as large. */
static size_t random_size(void)
{
    size_t low = 64 * KIB << rand() % 10;
    return low + 1 + (size_t)((double)low * rand() / RAND_MAX);
}

static int sizes_scenario(int chunk_kib)
{
    start_program();
    gb_config.chunk_bytes = (uint64_t)chunk_kib * KIB;
    srand((unsigned)chunk_kib);
    fill(host, BUFFER_BYTES, 4);
    uint8_t *expected = malloc(BUFFER_BYTES);
    memcpy(expected, host, BUFFER_BYTES);
    warm_up();
    for (int i = 0; i < 24; i++) {
        size_t bytes = i == 0 ? 64 * KIB + 1 : i == 1 ? 64 * MIB : random_size();
        size_t from = (size_t)rand() % 4096, to = (size_t)rand() % 4096;
        device[to + bytes] = 0xa5;
        CHECK(copy(device + to, host + from, bytes) == CUDA_SUCCESS);
        CHECK(staged_copies() == (uint64_t)i + 1);
        memset(host + from, 0xee, bytes); /* the program goes on */
        CHECK(memcmp(device + to, expected + from, bytes) == 0);
        CHECK(device[to + bytes] == 0xa5);
        memcpy(host + from, expected + from, bytes);
    }
    CHECK(declined() == 0 && fake.count[FAKE_FORWARD] == 0);
    return 0;
}

static void bytes_are_the_same_at_every_size(void **state)
{
    (void)state;
    static const int chunk_kib[] = {256, 320, 1024, 4096, 65536};
    for (size_t i = 0; i < GB_ARRAY_LEN(chunk_kib); i++)
        assert_scenario(sizes_scenario, chunk_kib[i]);
}

/* ---- errors ---- */

/* What is true after any copy, whatever failed: nothing of ours is left behind. */
static int is_settled(bool popped)
{
    struct gb_pinned_ring *ring;
    CHECK(fake_pending() == 0);
    CHECK(!popped || fake.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    enum gb_pinned_answer answer = take_ring(CONTEXT, 1, &ring);
    CHECK(answer != GB_PINNED_BUSY);
    if (answer == GB_PINNED_TAKEN) {
        for (uint32_t i = 0; i < ring->count; i++)
            CHECK(!ring->chunks[i].in_use);
        gb_pinned_put(ring);
    }
    return 0;
}

#define ENOUGH 2 /* the n-th call was not reached */

/* The n-th driver call of the first copy that would be staged fails. */
static int nth_call_scenario(int nth)
{
    start_program();
    warm_up();
    fill(host, 3 * MIB, (uint64_t)nth);
    uint8_t *kept = malloc(3 * MIB);
    memcpy(kept, host, 3 * MIB);
    gb_config.chunk_bytes = MIB;
    fake.fail_nth = nth;
    CHECK(copy(device, host, 3 * MIB) == CUDA_SUCCESS);
    if (fake.failed == FAKE_CALLS)
        return ENOUGH;
    CHECK(fake.failed != FAKE_FORWARD);
    CHECK(staged_copies() + declined() == 1);
    CHECK(fake.count[FAKE_FORWARD] == (int)declined());
    CHECK(memcmp(device, kept, 3 * MIB) == 0 && memcmp(host, kept, 3 * MIB) == 0);
    bool popped = fake.failed != FAKE_EXCHANGE || declined();
    CHECK(is_settled(popped) == 0);
    fake.mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    for (int i = 0; i < 2; i++) {
        fill(host, 3 * MIB, (uint64_t)nth * 100 + (uint64_t)i);
        CHECK(copy(device, host, 3 * MIB) == CUDA_SUCCESS);
        CHECK(memcmp(device, host, 3 * MIB) == 0);
    }
    CHECK(is_settled(true) == 0);
    return 0;
}

static void any_call_may_fail(void **state)
{
    (void)state;
    int nth = 1, status;
    while ((status = in_child(nth_call_scenario, nth)) == 0)
        nth++;
    assert_int_equal(WEXITSTATUS(status), ENOUGH);
    assert_true(nth > 25); /* questions, waits, three chunks, three pieces and more */
}

static const struct {
    enum fake_call call;
    int nth;
    size_t field; /* the counter; 0: the copy is staged all the same */
} reasons[] = {
#define COUNTER(name) offsetof(struct gb_counters, name)
    {FAKE_CURRENT, 1, COUNTER(h2d_context)},
    {FAKE_DEVICE, 1, COUNTER(h2d_context)},
    {FAKE_PRIMARY_STATE, 1, COUNTER(h2d_context)},
    {FAKE_RETAIN, 1, COUNTER(h2d_context)},
    {FAKE_RELEASE, 1, 0},
    {FAKE_ATTRIBUTE, 1, COUNTER(h2d_context)},
    {FAKE_STREAM_CTX, 1, COUNTER(h2d_context)},
    {FAKE_CAPTURING, 1, COUNTER(h2d_capture)},
    {FAKE_POINTER, 1, COUNTER(h2d_registered)},
    {FAKE_POINTER, 2, COUNTER(h2d_registered)},
    {FAKE_POINTER, 3, COUNTER(h2d_destination)},
    {FAKE_EXCHANGE, 1, COUNTER(h2d_error)},
    {FAKE_EXCHANGE, 2, 0},
    {FAKE_STREAM_SYNC, 1, COUNTER(h2d_error)},
    {FAKE_EVENT_CREATE, 1, COUNTER(h2d_ring)},
    {FAKE_EVENT_CREATE, 2, 0},
    {FAKE_REGISTER, 1, COUNTER(h2d_ring)},
    {FAKE_REGISTER, 2, 0},
    {FAKE_SEND, 1, COUNTER(h2d_error)},
    {FAKE_SEND, 2, COUNTER(h2d_error)},
    {FAKE_EVENT_RECORD, 1, COUNTER(h2d_error)},
    {FAKE_EVENT_RECORD, 3, COUNTER(h2d_error)},
    {FAKE_EVENT_SYNC, 1, COUNTER(h2d_error)},
    {FAKE_EVENT_SYNC, 3, COUNTER(h2d_error)},
};

static int reason_scenario(int row)
{
    start_program();
    warm_up();
    fill(host, 6 * MIB, 5);
    gb_config.chunk_bytes = MIB;
    fake.fail_call = reasons[row].call;
    fake.fail_nth = reasons[row].nth;
    CHECK(copy(device, host, 6 * MIB) == CUDA_SUCCESS);
    CHECK(fake.failed == reasons[row].call);
    CHECK(memcmp(device, host, 6 * MIB) == 0);
    size_t field = reasons[row].field;
    CHECK(declined() == (field ? 1 : 0));
    CHECK(!field || *(gb_counter *)((char *)&gb_counters + field) == 1);
    return 0;
}

static void each_error_is_counted_by_its_reason(void **state)
{
    (void)state;
    for (int row = 0; row < (int)GB_ARRAY_LEN(reasons); row++)
        assert_scenario(reason_scenario, row);
}

/* A chunk whose event could not be recorded is on its way all the same. */
static int lost_event_scenario(int nth)
{
    start_program();
    warm_up();
    fake.fail_call = FAKE_EVENT_RECORD;
    fake.fail_nth = nth;
    CHECK(copy(device, host, 6 * MIB) == CUDA_SUCCESS);
    CHECK(declined() == 1);
    for (int i = 0; i < fake.logged; i++)
        if (fake.log[i].call == FAKE_FORWARD) {
            CHECK(i >= 2 && fake.log[i - 1].call == FAKE_EXCHANGE);
            CHECK(fake.log[i - 2].call == FAKE_STREAM_SYNC); /* before the ring is put back */
        }
    return 0;
}

static void a_lost_event_is_made_up_for(void **state)
{
    (void)state;
    for (int nth = 1; nth <= 3; nth++)
        assert_scenario(lost_event_scenario, nth);
}

/* After a sticky error every call fails: the program is told so by its own call, and chunks that
 * nobody can wait for are not used again. */
static int lost_context_scenario(int call)
{
    start_program();
    warm_up();
    fake.fail_call = (enum fake_call)call;
    fake.fail_nth = 2;
    fake.sticky = true;
    fake.error = CUDA_ERROR_ILLEGAL_ADDRESS;
    CHECK(copy(device, host, 6 * MIB) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(fake.failed == (enum fake_call)call && fake.count[FAKE_FORWARD] == 1);
    CHECK(gb_counters.h2d_error == 1 && declined() == 1 && staged_copies() == 0);
    struct gb_pinned_ring *ring;
    CHECK(take_ring(CONTEXT, 1, &ring) == GB_PINNED_NONE);
    CHECK(copy(device, host, 6 * MIB) == CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static void a_lost_context_loses_its_ring(void **state)
{
    (void)state;
    assert_scenario(lost_context_scenario, FAKE_SEND);
    assert_scenario(lost_context_scenario, FAKE_EVENT_RECORD);
    assert_scenario(lost_context_scenario, FAKE_EVENT_SYNC);
}

/* ---- somebody else has the ring ---- */

static uint8_t *second_src;
static CUresult second_result;

static void *second_thread(void *unused)
{
    gb_thread_context_set(CONTEXT);
    second_result = copy(device + 32 * MIB, second_src, MIB);
    return unused;
}

static void copy_in_another_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, second_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

static int busy_scenario(int unused)
{
    (void)unused;
    start_program();
    warm_up();
    second_src = new_buffer(MIB);
    fill(host, 6 * MIB, 6);
    fill(second_src, MIB, 7);
    second_result = CUDA_ERROR_UNKNOWN;
    fake.on_send = copy_in_another_thread;
    CHECK(copy(device, host, 6 * MIB) == CUDA_SUCCESS);
    CHECK(second_result == CUDA_SUCCESS);
    CHECK(gb_counters.h2d_busy == 1 && declined() == 1 && staged_copies() == 1);
    CHECK(fake.count[FAKE_FORWARD] == 1);
    CHECK(memcmp(device, host, 6 * MIB) == 0);
    CHECK(memcmp(device + 32 * MIB, second_src, MIB) == 0);
    CHECK(copy(device, host, MIB) == CUDA_SUCCESS && staged_copies() == 2);
    return 0;
}

static void a_busy_ring_is_not_waited_for(void **state)
{
    (void)state;
    assert_scenario(busy_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_calls_come_in_order),
        cmocka_unit_test(the_source_is_read_after_earlier_work),
        cmocka_unit_test(the_source_is_read_before_earlier_work_is_done),
        cmocka_unit_test(the_synchronous_form_is_served_too),
        cmocka_unit_test(bytes_are_the_same_at_every_size),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(each_error_is_counted_by_its_reason),
        cmocka_unit_test(a_lost_event_is_made_up_for),
        cmocka_unit_test(a_lost_context_loses_its_ring),
        cmocka_unit_test(a_busy_ring_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
