/* test_stall.c: blocked, queued, transfer and idle time of small programs, worked out by hand.
 *
 * The clock stands still but for what a test says. A line is the stack of the call that is charged.
 * Each scenario is a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core_fakes.h"
#include "gpu/ranges.h"
#include "in_child.h"

#define KIB     ((size_t)1 << 10)
#define MIB     ((size_t)1 << 20)
#define CONTEXT ((CUcontext)0xc0)

#define SYNCED(line) site_of_line(GB_HOOK_cudaStreamSynchronize, line)
#define COPIED(line) site_of_line(GB_HOOK_cudaMemcpyAsync, line)

static void start(void)
{
    gb_thread_context_set(CONTEXT);
    gb_config.stall_ns = MS;
}

static void launch(CUstream stream)
{
    gb_stamp_kernel(stream);
}

/* blocked, queued, transfer and unsplit time, as a site has them. */
static bool has(const struct gb_site *site, uint64_t blocked, uint64_t queued, uint64_t transfer,
                uint64_t unsplit)
{
    bool same = site->blocked_ns == blocked && site->queued_ns == queued &&
                site->transfer_ns == transfer && site->unsplit_ns == unsplit;
    if (!same)
        fprintf(stderr, "blocked %ju queued %ju transfer %ju unsplit %ju us\n",
                (uintmax_t)(site->blocked_ns / US), (uintmax_t)(site->queued_ns / US),
                (uintmax_t)(site->transfer_ns / US), (uintmax_t)(site->unsplit_ns / US));
    return same;
}

/* ---- bubbles ---- */

static int bubble_scenario(int unused)
{
    (void)unused;
    start();
    stack = 1;
    launch(STREAM(1));
    sync_stream(STREAM(1), 10 * MS);
    CHECK(has(SYNCED(1), 10 * MS, 10 * MS, 0, 0) && SYNCED(1)->idle_ns == 0);
    CHECK(said_count == 1 && said.blocked_ns == 10 * MS && said.queued_ns == 10 * MS);
    CHECK(said.start_ns == clock_ns - 10 * MS && said.idle_ns == 0);
    pass(3 * MS);
    stack = 2;
    launch(STREAM(1));
    CHECK(SYNCED(1)->idle_ns == 3 * MS && SYNCED(1)->bubbles == 1 && SYNCED(1)->calls == 1);
    CHECK(said_count == 2 && said.blocked_ns == 0 && said.idle_ns == 3 * MS);
    CHECK(said.site == SYNCED(1)->id && said.start_ns == clock_ns - 3 * MS);
    pass(5 * MS);
    launch(STREAM(1)); /* it was busy */
    CHECK(idle_total() == 3 * MS && said_count == 2);
    sync_stream(STREAM(1), 900 * US);
    pass(900 * US);
    launch(STREAM(1));
    CHECK(said_count == 2); /* below the threshold: counted, not said */
    CHECK(SYNCED(2)->blocked_ns == 900 * US && SYNCED(2)->idle_ns == 900 * US);
    CHECK(SYNCED(1)->max_blocked_ns == 10 * MS && idle_total() == 3900 * US);
    return 0;
}

static void a_wait_is_charged_with_the_bubble_behind_it(void **state)
{
    (void)state;
    assert_scenario(bubble_scenario, 0);
}

/* The second wait finds nothing to wait for: the bubble stays the first one's. */
static int second_wait_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    stack = 1;
    sync_stream(STREAM(1), 10 * MS);
    pass(MS);
    int stacks = stacks_taken;
    stack = 2;
    sync_stream(STREAM(1), 1 * US);
    sync_gpu(1 * US);
    query_stream(STREAM(1), true);
    CHECK(stacks_taken == stacks && gb_site_count() == 2);
    pass(MS);
    launch(STREAM(1));
    CHECK(SYNCED(1)->idle_ns == 2 * MS + 2 * US && idle_total() == 2 * MS + 2 * US);
    return 0;
}

static int streams_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    launch(STREAM(2));
    stack = 1;
    sync_stream(STREAM(1), 5 * MS);
    pass(2 * MS); /* the other one runs */
    launch(STREAM(1));
    CHECK(idle_total() == 0);
    stack = 2;
    sync_stream(STREAM(2), 5 * MS);
    stack = 3;
    sync_stream(STREAM(1), 5 * MS);
    pass(4 * MS);
    launch(STREAM(2));
    CHECK(idle_total() == 4 * MS && SYNCED(3)->idle_ns == 4 * MS);
    CHECK(SYNCED(1)->queued_ns == 5 * MS && SYNCED(2)->queued_ns == 5 * MS);
    stack = 4;
    sync_gpu(6 * MS); /* all streams at once */
    pass(MS);
    launch(STREAM(1));
    CHECK(site_of_line(GB_HOOK_cudaDeviceSynchronize, 4)->idle_ns == MS);
    return 0;
}

static int gpus_scenario(int unused)
{
    (void)unused;
    start();
    launch(NULL);
    gb_thread_context_set((CUcontext)0xc1);
    launch(NULL);
    stack = 1;
    sync_stream(NULL, 5 * MS);
    pass(2 * MS);
    gb_thread_context_set(CONTEXT);
    launch(NULL); /* does not end the other one's bubble */
    CHECK(idle_total() == 0);
    pass(MS);
    gb_thread_context_set((CUcontext)0xc1);
    launch(NULL);
    CHECK(SYNCED(1)->idle_ns == 3 * MS && idle_total() == 3 * MS);
    return 0;
}

static void streams_share_a_gpu_and_gpus_share_nothing(void **state)
{
    (void)state;
    assert_scenario(second_wait_scenario, 0);
    assert_scenario(streams_scenario, 0);
    assert_scenario(gpus_scenario, 0);
}

/* ---- events and queries ---- */

static int event_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    gb_event_recorded(EVENT(1), gb_stream_of(STREAM(1)));
    launch(STREAM(1));
    stack = 1;
    sync_event(EVENT(1), 5 * MS);
    struct gb_site *waited = site_of_line(GB_HOOK_cudaEventSynchronize, 1);
    CHECK(has(waited, 5 * MS, 5 * MS, 0, 0));
    pass(2 * MS); /* the second kernel runs */
    launch(STREAM(1));
    CHECK(idle_total() == 0);
    gb_event_recorded(EVENT(1), gb_stream_of(STREAM(1)));
    sync_event(EVENT(1), 4 * MS);
    pass(2 * MS);
    launch(STREAM(1));
    CHECK(waited->idle_ns == 2 * MS && waited->queued_ns == 9 * MS);
    sync_event(EVENT(7), 3 * MS); /* never recorded, as far as we saw: blocked, nothing proven */
    CHECK(waited->blocked_ns == 12 * MS);
    pass(2 * MS);
    launch(STREAM(1));
    CHECK(idle_total() == 2 * MS);
    return 0;
}

static int query_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    stack = 1;
    query_stream(STREAM(1), false);
    pass(3 * MS);
    CHECK(stacks_taken == 0);
    query_stream(STREAM(1), true); /* idle since when is not known: from here on */
    pass(2 * MS);
    launch(STREAM(1));
    struct gb_site *asked = site_of_line(GB_HOOK_cudaStreamQuery, 1);
    CHECK(asked->idle_ns == 2 * MS && asked->blocked_ns == 0 && idle_total() == 2 * MS);
    return 0;
}

static void events_and_queries_prove_what_they_saw(void **state)
{
    (void)state;
    assert_scenario(event_scenario, 0);
    assert_scenario(query_scenario, 0);
}

/* ---- copies ---- */

static int dry_copy_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    stack = 1;
    sync_stream(STREAM(1), 10 * MS);
    pass(2 * MS);
    stack = 2;
    copy_h2d(STREAM(1), MIB, 4 * MS);
    CHECK(SYNCED(1)->idle_ns == 2 * MS);
    CHECK(has(COPIED(2), 4 * MS, 0, 4 * MS, 0) && COPIED(2)->idle_ns == 4 * MS);
    CHECK(COPIED(2)->bytes == MIB && said.idle_ns == 4 * MS && said.transfer_ns == 4 * MS);
    pass(MS);
    launch(STREAM(1));
    CHECK(COPIED(2)->idle_ns == 5 * MS && COPIED(2)->bubbles == 1);
    CHECK(idle_total() == 7 * MS);
    return 0;
}

static int learned_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    stack = 1;
    copy_h2d(STREAM(1), MIB, 10 * MS); /* nothing is known yet */
    CHECK(has(COPIED(1), 10 * MS, 0, 0, 10 * MS) && COPIED(1)->idle_ns == 0);
    CHECK(said.queued_ns == UINT64_MAX && said.transfer_ns == UINT64_MAX);
    pass(MS);
    stack = 2;
    copy_h2d(STREAM(1), MIB, 4 * MS); /* the stream had nothing to do */
    CHECK(COPIED(1)->idle_ns == MS && COPIED(2)->idle_ns == 4 * MS);
    launch(STREAM(1));
    stack = 3;
    copy_h2d(STREAM(1), 2 * MIB, 11 * MS);
    CHECK(has(COPIED(3), 11 * MS, 3 * MS, 8 * MS, 0) && COPIED(3)->idle_ns == 8 * MS);
    launch(STREAM(1));
    stack = 4;
    copy_h2d(STREAM(1), 2 * MIB, 5 * MS); /* faster than thought: all of it is transfer */
    CHECK(has(COPIED(4), 5 * MS, 0, 5 * MS, 0));
    launch(STREAM(1));
    launch(STREAM(2));
    stack = 5;
    copy_h2d(STREAM(1), MIB, 6 * MS); /* meanwhile the other stream computes */
    CHECK(has(COPIED(5), 6 * MS, 2 * MS, 4 * MS, 0) && COPIED(5)->idle_ns == 0);
    CHECK(idle_total() == (1 + 4 + 8 + 5) * MS);
    return 0;
}

static int small_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    stack = 1;
    copy_d2h(STREAM(1), 4, 5 * MS); /* .item() */
    CHECK(has(COPIED(1), 5 * MS, 5 * MS, 0, 0) && COPIED(1)->idle_ns == 0);
    pass(2 * MS);
    launch(STREAM(1));
    CHECK(COPIED(1)->idle_ns == 2 * MS);
    stack = 2;
    copy_h2d(STREAM(1), 64 * KIB, 1 * US); /* the driver takes the bytes along: no wait */
    CHECK(gb_site_count() == 2);
    pass(2 * MS);
    launch(STREAM(1));
    CHECK(idle_total() == 2 * MS);
    copy_h2d(STREAM(1), 64 * KIB, 30 * US); /* a full queue */
    CHECK(has(COPIED(2), 30 * US, 0, 0, 30 * US));
    return 0;
}

static int staged_scenario(int unused)
{
    struct gb_copy what = {GB_COPY_H2D, (void *)0x7000000, (void *)0x100000, MIB, true};
    struct gb_totals totals;
    (void)unused;
    start();
    launch(STREAM(1));
    stack = 1;
    struct gb_call call = begin(GB_HOOK_cudaMemcpyAsync, STREAM(1));
    call.staged = true;
    call.queued_ns = 6 * MS;
    pass(10 * MS);
    took(10 * MS);
    gb_stall_copy(&call, &what, true);
    CHECK(has(COPIED(1), 10 * MS, 6 * MS, 4 * MS, 0) && COPIED(1)->idle_ns == 4 * MS);
    CHECK(COPIED(1)->staged == 1);
    gb_totals_read(&totals);
    CHECK(totals.forwarded_copies == 0);
    launch(STREAM(1));
    stack = 2;
    copy_h2d(STREAM(1), MIB, 10 * MS); /* what staging took says nothing about the driver */
    CHECK(COPIED(2)->unsplit_ns == 10 * MS && COPIED(2)->staged == 0);
    gb_ranges_add((void *)0x100000, MIB);
    copy(&(struct gb_copy){GB_COPY_H2D, what.dst, what.src, MIB, false}, STREAM(1), MS);
    copy_d2h(STREAM(1), MIB, MS);
    gb_totals_read(&totals);
    CHECK(totals.forwarded_copies == 1 && totals.forwarded_bytes == MIB); /* pageable ones only */
    return 0;
}

static void copies_are_split(void **state)
{
    (void)state;
    assert_scenario(dry_copy_scenario, 0);
    assert_scenario(learned_scenario, 0);
    assert_scenario(small_scenario, 0);
    assert_scenario(staged_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_is_charged_with_the_bubble_behind_it),
        cmocka_unit_test(streams_share_a_gpu_and_gpus_share_nothing),
        cmocka_unit_test(events_and_queries_prove_what_they_saw),
        cmocka_unit_test(copies_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
