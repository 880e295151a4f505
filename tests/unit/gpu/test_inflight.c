/* test_inflight.c: what is given to streams, what a wait proves, when a GPU is dry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "gpu/capture.h"
#include "in_child.h"
#include "inflight_calls.h"

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

/* ---- what the host may notice ---- */

static int outstanding_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    CHECK(gb_outstanding() == 0);
    struct gb_stream *a = launch(STREAM(1), 1), *b = launch(STREAM(2), 2);
    gb_stream_host_sees(a);
    CHECK(gb_outstanding() == GB_HOST_SEES);
    gb_stream_host_runs(b);
    CHECK(gb_outstanding() == (GB_HOST_SEES | GB_HOST_RUNS));
    gb_stream_done(b, b->seq - 1); /* not yet the last one */
    CHECK(gb_outstanding() == (GB_HOST_SEES | GB_HOST_RUNS));
    gb_stream_done(b, b->seq);
    CHECK(gb_outstanding() == GB_HOST_SEES);
    uint64_t seen = a->seq;
    launch(STREAM(1), 5); /* kernels behind it are nothing that the host sees */
    gb_stream_done(a, seen);
    CHECK(gb_outstanding() == 0);
    a->seq = 1; /* a count that another thread has set back */
    gb_stream_host_sees(a);
    CHECK(gb_outstanding() == GB_HOST_SEES);
    return 0;
}

/* What is captured does not run, and what cannot be followed never ends. */
static int always_outstanding_scenario(int how)
{
    start(CONTEXT);
    struct gb_stream *a = launch(STREAM(1), 1);
    gb_capture_begins(STREAM(1));
    launch(STREAM(1), 1);
    gb_stream_host_runs(a);
    CHECK(gb_outstanding() == 0);
    gb_capture_ends(STREAM(1));
    if (how == 0)
        gb_host_shares_memory();
    else
        gb_stream_host_runs(NULL);
    gb_stream_done(a, a->seq);
    CHECK(gb_outstanding() == (GB_HOST_SEES | GB_HOST_RUNS));
    return 0;
}

static void what_the_host_may_notice_is_outstanding_until_it_is_done(void **state)
{
    (void)state;
    assert_scenario(outstanding_scenario, 0);
    assert_scenario(always_outstanding_scenario, 0);
    assert_scenario(always_outstanding_scenario, 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_host_may_notice_is_outstanding_until_it_is_done),
        cmocka_unit_test(a_gpu_is_done_when_all_its_kernels_are),
        cmocka_unit_test(a_handle_means_a_stream_of_its_context_and_thread),
        cmocka_unit_test(without_a_context_nothing_is_accounted),
        cmocka_unit_test(an_event_proves_what_came_before_it),
        cmocka_unit_test(a_stream_that_waited_proves_what_it_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
