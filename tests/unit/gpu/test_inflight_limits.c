/* test_inflight_limits.c: snapshots, full tables and threads of what is in flight.
 *
 * Counting is a plain add by design (inflight.h): ThreadSanitizer reports seq, kernel_seq and done
 * where one thread reads what another counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "in_child.h"
#include "inflight_calls.h"
#include "record/counters.h"

/* ---- snapshots ---- */

static int snapshot_scenario(int unused)
{
    struct gb_snapshot given;
    (void)unused;
    start(CONTEXT);
    for (int i = 0; i < 10; i++)
        launch(STREAM(i), i + 1);
    gb_gpu_snapshot(gb_gpu_here(), &given);
    CHECK(given.count == 10);
    launch(STREAM(3), 1); /* by another thread, during the wait */
    gb_snapshot_done(&given);
    CHECK(!gb_gpu_is_done(gb_gpu_here()));
    gb_stream_done(gb_stream_of(STREAM(3)), 5);
    CHECK(gb_gpu_is_done(gb_gpu_here()));
    for (int i = 0; i < GB_SNAPSHOT_MAX + 6; i++)
        launch(STREAM(i), 1);
    gb_gpu_snapshot(gb_gpu_here(), &given);
    CHECK(given.count == GB_SNAPSHOT_MAX);
    gb_snapshot_done(&given);
    CHECK(!gb_gpu_is_done(gb_gpu_here())); /* the others stay as they are */
    return 0;
}

static void a_snapshot_holds_what_was_given_before_it(void **state)
{
    (void)state;
    assert_scenario(snapshot_scenario, 0);
}

/* ---- full tables ---- */

static int full_streams_scenario(int unused)
{
    int given = 0;
    (void)unused;
    start(CONTEXT);
    while (given < 5000 && gb_stream_of(STREAM(given)))
        given++;
    CHECK(given >= 512 && given < 5000 && gb_counters.streams_full == 1);
    CHECK(!gb_gpu_is_done(gb_gpu_here())); /* work may run that is not counted */
    gb_stamp_kernel(STREAM(given));
    CHECK(gb_stream_of(STREAM(given)) == NULL);
    for (int i = 0; i < given; i++)
        CHECK(gb_stream_of(STREAM(i))->handle == STREAM(i));
    CHECK(!gb_gpu_is_done(gb_gpu_here()));
    return 0;
}

static int full_gpus_scenario(int unused)
{
    int given = 0;
    (void)unused;
    for (; given < 100; given++) {
        start((CUcontext)(uintptr_t)(0xc00 + given));
        if (!gb_gpu_here())
            break;
        launch(NULL, 1);
    }
    CHECK(given == 16 && gb_stream_of(NULL) == NULL);
    gb_stamp_kernel(NULL); /* not accounted, and not on another GPU's account either */
    CHECK(gb_kernels_total() == 16);
    return 0;
}

static void a_full_table_never_makes_a_gpu_dry(void **state)
{
    (void)state;
    assert_scenario(full_streams_scenario, 0);
    assert_scenario(full_gpus_scenario, 0);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS  3000

/* Each thread has a stream, and waits for events of the others. */
static void *worker(void *number)
{
    int me = (int)(intptr_t)number;
    unsigned seed = (unsigned)me;
    start(CONTEXT);
    struct gb_stream *mine = launch(STREAM(me), 0);
    for (int i = 0; i < ROUNDS; i++) {
        gb_stamp_kernel(STREAM(me));
        if (i % 3 == 0)
            record(me * 8 + i % 8, mine);
        if (i % 5 == 0)
            gb_stream_waits(mine, EVENT((int)((unsigned)rand_r(&seed) % (THREADS * 8))));
        if (i % 16 == 0)
            gb_stream_done(mine, mine->seq);
        if (i % 64 == 0)
            gb_stream_of(STREAM(1000 + me * 100 + i / 64)); /* new ones, under the readers */
        if (i % 7 == 0)
            gb_gpu_is_done(mine->gpu);
    }
    return NULL;
}

static int threads_scenario(int unused)
{
    pthread_t threads[THREADS];
    struct gb_snapshot given;
    (void)unused;
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    start(CONTEXT);
    CHECK(gb_kernels_total() == THREADS * ROUNDS);
    for (int i = 0; i < THREADS; i++) {
        struct gb_stream *s = gb_stream_of(STREAM(i));
        CHECK(s->done <= s->seq && s->kernel_seq <= s->seq);
        gb_stream_done(s, s->seq);
    }
    gb_gpu_snapshot(gb_gpu_here(), &given);
    gb_snapshot_done(&given);
    CHECK(gb_gpu_is_done(gb_gpu_here()));
    return 0;
}

static void threads_share_the_tables(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_scenario(threads_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_holds_what_was_given_before_it),
        cmocka_unit_test(a_full_table_never_makes_a_gpu_dry),
        cmocka_unit_test(threads_share_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
