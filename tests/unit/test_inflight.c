/* test_inflight.c: what is given to streams, what a wait proves, when a GPU is dry.
 *
 * Counting is a plain add by design (inflight.h), so that the thread test, which gives every stream
 * to one thread, is clean under ThreadSanitizer only as far as it reads its own streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "counters.h"
#include "in_child.h"
#include "stamp.h"

#define CONTEXT   ((CUcontext)0xc0)
#define STREAM(n) ((CUstream)(uintptr_t)(0x1000 + 64 * (n)))
#define EVENT(n)  ((CUevent)(uintptr_t)(0x500000 + 48 * (n)))

static void start(CUcontext context)
{
    gb_state = GB_STATE_ARMED;
    gb_thread_context_set(context);
}

static struct gb_stream *launch(CUstream handle, int kernels)
{
    while (kernels--)
        gb_stamp_kernel(handle);
    return gb_stream_of(handle);
}

static void record(int event, struct gb_stream *stream)
{
    gb_event_recorded(EVENT(event), stream);
}

/* ---- one stream ---- */

static int one_stream_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_gpu *gpu = gb_gpu_here();
    CHECK(gpu && gpu->dry && gb_gpu_is_done(gpu) && gpu->dry_site == NULL);
    struct gb_stream *s = launch(STREAM(1), 3);
    CHECK(s->gpu == gpu && s->seq == 3 && s->kernel_seq == 3 && gb_kernels_total() == 3);
    CHECK(!gpu->dry && !gb_gpu_is_done(gpu));
    gb_stream_done(s, 2);
    CHECK(!gb_gpu_is_done(gpu));
    gb_stream_done(s, 3);
    CHECK(gb_gpu_is_done(gpu));
    gb_stream_done(s, 1); /* an older wait comes back late */
    CHECK(gb_gpu_is_done(gpu) && s->done == 3);
    launch(STREAM(1), 1);
    CHECK(!gb_gpu_is_done(gpu));
    return 0;
}

static int two_streams_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_stream *a = launch(STREAM(1), 1), *b = launch(STREAM(2), 1);
    struct gb_gpu *gpu = gb_gpu_here();
    CHECK(a != b && launch(STREAM(1), 0) == a);
    gb_stream_done(a, 1);
    CHECK(!gb_gpu_is_done(gpu));
    gb_stream_done(b, 1);
    CHECK(gb_gpu_is_done(gpu));
    record(1, a);
    gb_stream_waits(b, EVENT(1)); /* a wait is no kernel: the compute engine has nothing to do */
    CHECK(b->seq == 2 && b->done == 1 && gb_gpu_is_done(gpu));
    CHECK(gb_kernels_total() == 2);
    return 0;
}

static void a_gpu_is_done_when_all_its_kernels_are(void **state)
{
    (void)state;
    assert_scenario(one_stream_scenario, 0);
    assert_scenario(two_streams_scenario, 0);
}

/* ---- which stream a handle is ---- */

static struct gb_stream *elsewhere;

static void *in_another_thread(void *handle)
{
    start(CONTEXT);
    elsewhere = gb_stream_of(handle);
    return NULL;
}

static struct gb_stream *seen_by_another_thread(CUstream handle)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_another_thread, handle) == 0)
        pthread_join(thread, NULL);
    return elsewhere;
}

static int handles_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_stream *legacy = gb_stream_of(NULL);
    CHECK(gb_stream_of(CU_STREAM_LEGACY) == legacy);
    CHECK(seen_by_another_thread(NULL) == legacy);
    struct gb_stream *mine = gb_stream_of(CU_STREAM_PER_THREAD);
    CHECK(mine != legacy && gb_stream_of(CU_STREAM_PER_THREAD) == mine);
    CHECK(seen_by_another_thread(CU_STREAM_PER_THREAD) != mine);
    CHECK(seen_by_another_thread(STREAM(1)) == gb_stream_of(STREAM(1)));
    launch(NULL, 1);
    launch(CU_STREAM_LEGACY, 1);
    CHECK(legacy->seq == 2);
    struct gb_gpu *gpu = gb_gpu_here();
    gb_thread_context_set((CUcontext)0xc1); /* the default stream of another context */
    CHECK(gb_gpu_here() != gpu && gb_stream_of(NULL) != legacy);
    launch(NULL, 1);
    CHECK(legacy->seq == 2 && gb_stream_of(NULL)->seq == 1);
    CHECK(!gb_gpu_is_done(gpu) && !gb_gpu_is_done(gb_gpu_here()));
    gb_stream_done(gb_stream_of(NULL), 1);
    CHECK(gb_gpu_is_done(gb_gpu_here()) && !gb_gpu_is_done(gpu));
    gb_thread_context_set(CONTEXT);
    CHECK(gb_stream_of(NULL) == legacy && gb_gpu_here() == gpu);
    return 0;
}

static void a_handle_means_a_stream_of_its_context_and_thread(void **state)
{
    (void)state;
    assert_scenario(handles_scenario, 0);
}

static int no_context_scenario(int unused)
{
    (void)unused;
    gb_state = GB_STATE_ARMED;
    CHECK(gb_stream_of(NULL) == NULL && gb_gpu_here() == NULL);
    gb_stamp_kernel(NULL); /* not accounted */
    CHECK(gb_kernels_total() == 0);
    return 0;
}

static void without_a_context_nothing_is_accounted(void **state)
{
    (void)state;
    assert_scenario(no_context_scenario, 0);
}

/* ---- events ---- */

static int events_scenario(int unused)
{
    struct gb_stream *on;
    uint64_t seq;
    (void)unused;
    start(CONTEXT);
    struct gb_stream *a = launch(STREAM(1), 2);
    CHECK(!gb_event_position(EVENT(1), &on, &seq) && !gb_event_is_done(EVENT(1)));
    CHECK(!gb_event_position(NULL, &on, &seq));
    record(1, a);
    launch(STREAM(1), 5);
    CHECK(gb_event_position(EVENT(1), &on, &seq) && on == a && seq == 2);
    CHECK(!gb_event_is_done(EVENT(1)));
    gb_stream_done(a, 1);
    CHECK(!gb_event_is_done(EVENT(1)));
    gb_stream_done(a, 2);
    CHECK(gb_event_is_done(EVENT(1)) && !gb_gpu_is_done(gb_gpu_here()));
    struct gb_stream *b = launch(STREAM(2), 7); /* the event is recycled */
    record(1, b);
    CHECK(gb_event_position(EVENT(1), &on, &seq) && on == b && seq == 7);
    CHECK(!gb_event_is_done(EVENT(1)));
    return 0;
}

/* More events than there is room for: forgotten, never mistaken. */
static int many_events_scenario(int unused)
{
    enum { EVENTS = 20000 };
    int known = 0;
    (void)unused;
    start(CONTEXT);
    for (int i = 0; i < EVENTS; i++)
        record(i, launch(STREAM(i % 7), 1));
    for (int i = 0; i < EVENTS; i++) {
        struct gb_stream *on;
        uint64_t seq;
        if (!gb_event_position(EVENT(i), &on, &seq))
            continue;
        CHECK(on == gb_stream_of(STREAM(i % 7)) && seq == (uint64_t)i / 7 + 1);
        known++;
    }
    CHECK(known > 1000);
    return 0;
}

static void an_event_proves_what_came_before_it(void **state)
{
    (void)state;
    assert_scenario(events_scenario, 0);
    assert_scenario(many_events_scenario, 0);
}

/* ---- waits of streams ---- */

static int waits_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_stream *a = launch(STREAM(1), 3), *b = launch(STREAM(2), 1);
    record(1, a);
    launch(STREAM(1), 1); /* after the event: nobody waits for it */
    gb_stream_waits(b, EVENT(1));
    uint64_t waited = b->seq;
    launch(STREAM(2), 1);
    gb_stream_done(b, waited - 1); /* what was given to b before the wait */
    CHECK(a->done == 0);
    gb_stream_done(b, b->seq);
    CHECK(a->done == 3 && !gb_gpu_is_done(gb_gpu_here()));
    gb_stream_waits(b, EVENT(99)); /* nothing is known about it: nothing is proven by it */
    launch(STREAM(2), 1);
    gb_stream_done(b, b->seq);
    CHECK(a->done == 3);
    gb_stream_waits(a, EVENT(1)); /* its own: in order anyway */
    CHECK(a->done == 3);
    return 0;
}

static int chain_scenario(int length)
{
    (void)length;
    start(CONTEXT);
    for (int i = 0; i < length; i++) {
        struct gb_stream *s = launch(STREAM(i), 1);
        if (i)
            gb_stream_waits(s, EVENT(i - 1));
        launch(STREAM(i), 1);
        record(i, s);
        launch(STREAM(i), i < length - 1); /* work that the next one does not wait for */
    }
    struct gb_stream *last = gb_stream_of(STREAM(length - 1));
    gb_stream_done(last, last->seq);
    for (int i = 0; i < length - 1; i++) {
        struct gb_stream *s = gb_stream_of(STREAM(i));
        CHECK(s->done <= s->seq - 1); /* never more than was waited for */
        if (i >= length - 4)
            CHECK(s->done == s->seq - 1);
    }
    return 0;
}

static int circle_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    for (int round = 0; round < 100; round++)
        for (int i = 0; i < 3; i++) {
            struct gb_stream *s = launch(STREAM(i), 1);
            gb_stream_waits(s, EVENT((i + 2) % 3));
            record(i, s);
        }
    struct gb_stream *s = gb_stream_of(STREAM(2));
    gb_stream_done(s, s->seq);
    for (int i = 0; i < 3; i++)
        CHECK(gb_stream_of(STREAM(i))->done <= gb_stream_of(STREAM(i))->seq);
    CHECK(gb_gpu_is_done(gb_gpu_here()));
    return 0;
}

/* A stream that waits for more streams than are kept: the rest looks busy. */
static int many_waits_scenario(int streams)
{
    start(CONTEXT);
    struct gb_stream *waiter = launch(STREAM(0), 1);
    for (int i = 1; i <= streams; i++) {
        record(i, launch(STREAM(i), 1));
        gb_stream_waits(waiter, EVENT(i));
    }
    gb_stream_done(waiter, waiter->seq);
    int done = 0;
    for (int i = 1; i <= streams; i++)
        done += gb_stream_of(STREAM(i))->done == 1;
    CHECK(done == (streams < GB_STREAM_DEPENDENCIES ? streams : GB_STREAM_DEPENDENCIES));
    CHECK(gb_gpu_is_done(gb_gpu_here()) == (done == streams));
    return 0;
}

static void a_stream_that_waited_proves_what_it_waited_for(void **state)
{
    (void)state;
    assert_scenario(waits_scenario, 0);
    for (int length = 2; length <= 8; length++)
        assert_scenario(chain_scenario, length);
    assert_scenario(circle_scenario, 0);
    assert_scenario(many_waits_scenario, 3);
    assert_scenario(many_waits_scenario, GB_STREAM_DEPENDENCIES);
    assert_scenario(many_waits_scenario, 20);
}

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
        cmocka_unit_test(a_gpu_is_done_when_all_its_kernels_are),
        cmocka_unit_test(a_handle_means_a_stream_of_its_context_and_thread),
        cmocka_unit_test(without_a_context_nothing_is_accounted),
        cmocka_unit_test(an_event_proves_what_came_before_it),
        cmocka_unit_test(a_stream_that_waited_proves_what_it_waited_for),
        cmocka_unit_test(a_snapshot_holds_what_was_given_before_it),
        cmocka_unit_test(a_full_table_never_makes_a_gpu_dry),
        cmocka_unit_test(threads_share_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
