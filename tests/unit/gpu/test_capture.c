/* test_capture.c: open captures are counted, and what is captured is not in flight: it did not run,
 * whatever was recorded and waited for inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "gpu/capture.h"
#include "in_child.h"
#include "inflight_calls.h"

#define MAIN STREAM(1)
#define SIDE STREAM(2)

/* Fork and join: `to` waits for an event recorded on `from`. */
static void join(CUstream to, CUstream from, int event)
{
    record(event, gb_stream_of(from));
    gb_stream_waits(gb_stream_of(to), EVENT(event));
}

/* ---- the count ---- */

static int count_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    CHECK(!gb_capture_is_open());
    gb_capture_ends(MAIN); /* none began */
    CHECK(!gb_capture_is_open());
    gb_capture_begins(MAIN);
    CHECK(gb_capture_is_open());
    gb_capture_begins(MAIN); /* it has begun already */
    gb_capture_begins(SIDE);
    gb_capture_ends(MAIN);
    CHECK(gb_capture_is_open());
    gb_capture_ends(MAIN); /* twice: the other one is still open */
    CHECK(gb_capture_is_open());
    gb_capture_ends(SIDE);
    CHECK(!gb_capture_is_open());
    gb_capture_begins(
        CU_STREAM_LEGACY); /* may be refused by the driver; then it is not told here */
    gb_capture_ends(NULL);
    CHECK(!gb_capture_is_open());
    return 0;
}

static void open_captures_are_counted(void **state)
{
    (void)state;
    assert_scenario(count_scenario, 0);
}

static void *capturer(void *number)
{
    CUstream stream = STREAM(10 + (uintptr_t)number);
    start(CONTEXT);
    for (int i = 0; i < 20000; i++) {
        gb_capture_begins(stream);
        if (!gb_capture_is_open())
            return (void *)1;
        gb_capture_ends(stream);
    }
    return NULL;
}

static int threads_scenario(int unused)
{
    pthread_t threads[4];
    void *failed = NULL, *any = NULL;
    (void)unused;
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, capturer, (void *)i) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        any = failed ? failed : any;
    }
    CHECK(!any && !gb_capture_is_open());
    return 0;
}

static void threads_may_capture_at_once(void **state)
{
    (void)state;
    assert_scenario(threads_scenario, 0);
}

/* ---- what is captured is not in flight ---- */

static int one_stream_scenario(int before)
{
    start(CONTEXT);
    struct gb_stream *s = launch(MAIN, before);
    gb_stream_done(s, s->seq / 2);
    uint64_t kernels = gb_kernels_total();
    bool was_done = s->done >= s->kernel_seq;
    gb_capture_begins(MAIN);
    launch(MAIN, 10);
    gb_capture_ends(MAIN);
    CHECK(gb_kernels_total() == kernels);
    CHECK((s->done >= s->kernel_seq) == was_done);
    CHECK(gb_gpu_is_done(gb_gpu_here()) == was_done);
    gb_stream_done(s, s->seq);
    CHECK(gb_gpu_is_done(gb_gpu_here()) && s->done >= s->seq);
    launch(MAIN, 1); /* the graph */
    CHECK(gb_kernels_total() == kernels + 1 && !gb_gpu_is_done(gb_gpu_here()));
    gb_stream_done(s, s->seq);
    CHECK(gb_gpu_is_done(gb_gpu_here()));
    return 0;
}

/* A stream that had nothing to do has nothing to do after the capture. */
static int done_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_stream *s = launch(MAIN, 4);
    gb_stream_done(s, s->seq);
    gb_capture_begins(MAIN);
    launch(MAIN, 10);
    gb_capture_ends(MAIN);
    CHECK(s->done >= s->seq);
    return 0;
}

static void captured_kernels_are_not_counted(void **state)
{
    (void)state;
    assert_scenario(one_stream_scenario, 0);
    assert_scenario(one_stream_scenario, 1);
    assert_scenario(one_stream_scenario, 8);
    assert_scenario(done_scenario, 0);
}

/* ---- forks inside a capture ---- */

/* The side stream takes part in the capture and has real work before and after it. */
static int fork_scenario(int before)
{
    start(CONTEXT);
    struct gb_stream *main_stream = launch(MAIN, 5), *side = launch(SIDE, before);
    gb_stream_done(main_stream, main_stream->seq);
    uint64_t kernels = gb_kernels_total();
    gb_capture_begins(MAIN);
    launch(MAIN, 3);
    join(SIDE, MAIN, 1);
    launch(SIDE, 3);
    join(MAIN, SIDE, 2);
    launch(MAIN, 3);
    gb_capture_ends(MAIN);
    CHECK(gb_kernels_total() == kernels);
    launch(MAIN, 4); /* real work: graphs, whose numbers follow */
    gb_stream_done(side, side->seq);
    CHECK(main_stream->done <
          main_stream->kernel_seq); /* a wait for the side stream is none for it */
    CHECK(!gb_gpu_is_done(gb_gpu_here()));
    gb_stream_done(main_stream, main_stream->seq);
    CHECK(gb_gpu_is_done(gb_gpu_here()));
    CHECK(gb_kernels_total() == kernels + 4);
    return 0;
}

/* The other way: what the side stream really had to do before is not proven by the main one. */
static int fork_back_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    launch(MAIN, 1);
    struct gb_stream *main_stream = gb_stream_of(MAIN), *side = launch(SIDE, 2);
    gb_stream_done(main_stream, main_stream->seq);
    gb_capture_begins(MAIN);
    join(SIDE, MAIN, 1);
    launch(SIDE, 1);
    join(MAIN, SIDE, 2);
    gb_capture_ends(MAIN);
    launch(MAIN, 1);
    gb_stream_done(main_stream, main_stream->seq);
    CHECK(side->done < 2 && !gb_gpu_is_done(gb_gpu_here()));
    return 0;
}

/* Only captured into: nothing of it ever ran, nobody will ever wait for it. */
static int idle_side_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_stream *s = launch(MAIN, 1);
    gb_stream_of(SIDE);
    gb_stream_done(s, s->seq);
    gb_capture_begins(MAIN);
    join(SIDE, MAIN, 1);
    launch(SIDE, 3);
    join(MAIN, SIDE, 2);
    gb_capture_ends(MAIN);
    CHECK(gb_gpu_is_done(gb_gpu_here()) && gb_kernels_total() == 1);
    launch(SIDE, 1); /* and now really */
    CHECK(!gb_gpu_is_done(gb_gpu_here()) && gb_kernels_total() == 2);
    CHECK(!gb_capture_is_open());
    return 0;
}

static void a_fork_inside_a_capture_proves_nothing(void **state)
{
    (void)state;
    assert_scenario(fork_scenario, 0);
    assert_scenario(fork_scenario, 4);
    assert_scenario(fork_back_scenario, 0);
    assert_scenario(idle_side_scenario, 0);
}

/* ---- events of a capture ---- */

static int event_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_stream *s = launch(MAIN, 2), *side = launch(SIDE, 1);
    gb_stream_done(s, 2);
    gb_stream_done(side, 1);
    gb_capture_begins(MAIN);
    launch(MAIN, 4);
    record(1, s);
    gb_capture_ends(MAIN);
    launch(MAIN, 6);
    gb_stream_waits(side, EVENT(1)); /* an error natively: it orders nothing */
    launch(SIDE, 1);
    gb_stream_done(side, side->seq);
    CHECK(s->kernel_seq - s->done == 6 && !gb_gpu_is_done(gb_gpu_here()));
    return 0;
}

/* An event from before the capture is an ordinary one while it is open. */
static int event_before_scenario(int unused)
{
    (void)unused;
    start(CONTEXT);
    struct gb_stream *s = launch(MAIN, 2), *side = launch(SIDE, 1);
    record(1, s);
    gb_capture_begins(MAIN);
    gb_stream_waits(side, EVENT(1));
    launch(SIDE, 1);
    gb_stream_done(side, side->seq);
    CHECK(s->done == 2);
    launch(SIDE, 1);
    gb_capture_ends(MAIN);
    CHECK(!gb_gpu_is_done(gb_gpu_here()) && gb_kernels_total() == 5); /* that one runs */
    return 0;
}

static void an_event_of_a_capture_proves_nothing_about_later_work(void **state)
{
    (void)state;
    assert_scenario(event_scenario, 0);
    assert_scenario(event_before_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_captures_are_counted),
        cmocka_unit_test(threads_may_capture_at_once),
        cmocka_unit_test(captured_kernels_are_not_counted),
        cmocka_unit_test(a_fork_inside_a_capture_proves_nothing),
        cmocka_unit_test(an_event_of_a_capture_proves_nothing_about_later_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
