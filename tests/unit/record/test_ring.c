/* test_ring.c: the event ring alone, full, and under several producers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "record/ring.h"

#define PRODUCERS  4
#define PER_THREAD 200000u

static struct gb_ring ring;

static struct gb_stall_event numbered(uint64_t n, uint32_t tid)
{
    /* Every field follows from n, so that a torn event shows. */
    return (struct gb_stall_event){n, n + 1, n + 2, n + 3, n + 4, n + 5, (uint32_t)n, tid};
}

static void assert_whole(const struct gb_stall_event *e)
{
    struct gb_stall_event expected = numbered(e->start_ns, e->tid);
    assert_memory_equal(e, &expected, sizeof expected);
}

static void first_in_first_out(void **state)
{
    (void)state;
    struct gb_stall_event e;
    gb_ring_init(&ring);
    assert_false(gb_ring_pop(&ring, &e));
    uint64_t in = 0, out = 0;
    for (int round = 0; round < 3000; round++) {
        for (int i = 0; i < round % 17; i++) {
            e = numbered(in++, 1);
            assert_true(gb_ring_push(&ring, &e));
        }
        while (gb_ring_pop(&ring, &e)) {
            assert_int_equal(e.start_ns, out++);
            assert_whole(&e);
        }
    }
    assert_int_equal(in, out);
    assert_int_equal(gb_ring_dropped(&ring, true), 0);
}

static void full_means_dropped_and_counted(void **state)
{
    (void)state;
    struct gb_stall_event e;
    gb_ring_init(&ring);
    for (uint64_t i = 0; i < GB_RING_CELLS + 10; i++) {
        e = numbered(i, 1);
        assert_int_equal(gb_ring_push(&ring, &e), i < GB_RING_CELLS);
    }
    assert_int_equal(gb_ring_dropped(&ring, false), 10);
    for (uint64_t i = 0; i < GB_RING_CELLS; i++) {
        assert_true(gb_ring_pop(&ring, &e));
        assert_int_equal(e.start_ns, i); /* the oldest are kept */
    }
    assert_false(gb_ring_pop(&ring, &e));
    e = numbered(7, 1);
    assert_true(gb_ring_push(&ring, &e));
    assert_int_equal(gb_ring_dropped(&ring, true), 11); /* one was never taken out */
}

/* A producer that died between its ticket and its event stops the consumer there, nothing else. */
static void a_dead_producer_is_counted_at_exit(void **state)
{
    (void)state;
    struct gb_stall_event e = numbered(1, 1);
    gb_ring_init(&ring);
    gb_ring_push(&ring, &e);
    ring.tail++;
    gb_ring_push(&ring, &e);
    assert_true(gb_ring_pop(&ring, &e));
    assert_false(gb_ring_pop(&ring, &e));
    assert_int_equal(gb_ring_dropped(&ring, true), 2);
    for (uint32_t ticket = 3; ticket <= GB_RING_CELLS; ticket++)
        assert_true(gb_ring_push(&ring, &e));
    assert_false(gb_ring_push(&ring, &e));
}

static uint64_t pushed[PRODUCERS];

static void *produce(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    for (uint64_t i = 0; i < PER_THREAD; i++) {
        struct gb_stall_event e = numbered(i, me);
        pushed[me] += gb_ring_push(&ring, &e);
    }
    return NULL;
}

static void producers_do_not_tear_or_reorder(void **state)
{
    (void)state;
    pthread_t threads[PRODUCERS];
    uint64_t popped[PRODUCERS] = {0}, next[PRODUCERS] = {0}, total = 0, expected = 0;
    struct gb_stall_event e;
    gb_ring_init(&ring);
    memset(pushed, 0, sizeof pushed);
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
    while (total + gb_ring_dropped(&ring, false) < (uint64_t)PRODUCERS * PER_THREAD) {
        if (!gb_ring_pop(&ring, &e))
            continue;
        assert_whole(&e);
        assert_true(e.tid < PRODUCERS && e.start_ns >= next[e.tid]);
        next[e.tid] = e.start_ns + 1;
        popped[e.tid]++;
        total++;
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(popped[i], pushed[i]);
        expected += pushed[i];
    }
    assert_int_equal(total, expected);
    assert_int_equal(gb_ring_dropped(&ring, true), (uint64_t)PRODUCERS * PER_THREAD - total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out),
        cmocka_unit_test(full_means_dropped_and_counted),
        cmocka_unit_test(a_dead_producer_is_counted_at_exit),
        cmocka_unit_test(producers_do_not_tear_or_reorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
