/* test_stall_limits.c: what the stall model must not claim: a call that did not wait proves
 * nothing, and idle time lies within the run. Each scenario is a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core_fakes.h"
#include "gpu/capture.h"
#include "gpu/ranges.h"
#include "in_child.h"

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

/* ---- copies that prove nothing ---- */

static int background_scenario(int unused)
{
    (void)unused;
    start();
    gb_ranges_add((void *)0x100000, MIB); /* pinned */
    launch(STREAM(1));
    stack = 1;
    copy_h2d(STREAM(1), MIB, 1 * US);
    copy_d2h(STREAM(1), MIB, 1 * US);
    CHECK(!gb_gpu_is_done(gb_gpu_here()) && stacks_taken == 0);
    sync_stream(STREAM(1), 5 * MS);
    pass(2 * MS);
    copy_h2d(STREAM(1), MIB, 0); /* the compute engine still has nothing to do */
    pass(MS);
    CHECK(idle_total() == 0);
    launch(STREAM(1));
    CHECK(SYNCED(1)->idle_ns == 3 * MS && idle_total() == 3 * MS);
    return 0;
}

static const struct gb_copy quiet[] = {
    {GB_COPY_D2D, (void *)0x7000000, (void *)0x8000000, MIB, true},
    {GB_COPY_D2D, (void *)0x7000000, (void *)0x8000000, MIB, false},   /* no host wait either */
    {GB_COPY_OTHER, (void *)0x7000000, (void *)0x8000000, MIB, false}, /* may be one of those */
    {GB_COPY_OTHER, (void *)0x7000000, (void *)0x8000000, MIB, true},
};

static int quiet_scenario(int row)
{
    start();
    launch(STREAM(1));
    stack = 1;
    copy(&quiet[row], STREAM(1), 5 * US);
    CHECK(!gb_gpu_is_done(gb_gpu_here()));
    pass(2 * MS);
    launch(STREAM(1));
    CHECK(idle_total() == 0);
    sync_stream(STREAM(1), 5 * MS);
    pass(3 * MS);
    copy(&quiet[row], STREAM(1), 5 * US);
    if (quiet[row].direction != GB_COPY_D2D)
        return 0;
    CHECK(SYNCED(1)->idle_ns >= 3 * MS && SYNCED(1)->idle_ns <= 3 * MS + 5 * US);
    pass(MS); /* it uses the memory path of the compute engine */
    launch(STREAM(1));
    CHECK(idle_total() <= 3 * MS + 5 * US);
    return 0;
}

static int captured_scenario(int unused)
{
    (void)unused;
    start();
    launch(STREAM(1));
    gb_capture_begins(STREAM(1));
    stack = 1;
    copy_h2d(STREAM(1), MIB, 10 * US); /* a node of the graph */
    gb_capture_ends(STREAM(1));
    CHECK(!gb_gpu_is_done(gb_gpu_here()));
    pass(2 * MS);
    launch(STREAM(1));
    CHECK(idle_total() == 0);
    return 0;
}

static int failed_scenario(int bytes)
{
    struct gb_copy what = {GB_COPY_H2D, (void *)0x7000000, (void *)0x100000, (size_t)bytes, true};
    (void)bytes;
    start();
    launch(STREAM(1));
    struct gb_call call = begin(GB_HOOK_cudaMemcpyAsync, STREAM(1));
    took(5 * MS);
    gb_stall_copy(&call, &what, bytes == 0); /* nothing was copied, or it failed */
    call = begin(GB_HOOK_cudaStreamSynchronize, STREAM(1));
    gb_stall_stream(&call, false);
    call = begin(GB_HOOK_cudaEventSynchronize, STREAM(1));
    gb_stall_event(&call, EVENT(1), false);
    CHECK(!gb_gpu_is_done(gb_gpu_here()) && gb_site_count() == 1 && idle_total() == 0);
    return 0;
}

static void what_does_not_wait_proves_nothing(void **state)
{
    (void)state;
    assert_scenario(background_scenario, 0);
    for (int row = 0; row < (int)GB_ARRAY_LEN(quiet); row++)
        assert_scenario(quiet_scenario, row);
    assert_scenario(captured_scenario, 0);
    assert_scenario(failed_scenario, 0);
    assert_scenario(failed_scenario, MIB);
}

/* ---- the wall clock ---- */

static int before_work_scenario(int unused)
{
    struct gb_totals totals;
    (void)unused;
    start();
    stack = 1;
    sync_stream(STREAM(1), 5 * MS);
    sync_gpu(5 * MS);
    query_stream(STREAM(1), true);
    pass(100 * MS);
    gb_totals_read(&totals);
    CHECK(totals.idle_ns == 0 && totals.first_enqueue_ns == 0);
    launch(STREAM(1));
    gb_totals_read(&totals);
    CHECK(totals.idle_ns == 0 && totals.first_enqueue_ns == clock_ns && totals.launches == 1);
    return 0;
}

/* A program that begins with a copy: nothing has run yet, so nothing has stalled. */
static int first_copy_scenario(int unused)
{
    struct gb_totals totals;
    (void)unused;
    start();
    pass(100 * MS);
    copy_h2d(STREAM(1), MIB, 40 * MS);
    launch(STREAM(1));
    sync_stream(STREAM(1), 10 * MS);
    gb_totals_read(&totals);
    CHECK(totals.first_enqueue_ns == clock_ns - 10 * MS && totals.last_drain_ns == clock_ns);
    CHECK(totals.idle_ns == 0);
    return 0;
}

/* Two threads copy to a dry GPU at the same time: it is idle once. */
static int overlap_scenario(int unused)
{
    struct gb_copy what = {GB_COPY_H2D, (void *)0x7000000, (void *)0x100000, MIB, true};
    (void)unused;
    start();
    launch(STREAM(1));
    stack = 1;
    sync_stream(STREAM(1), 5 * MS);
    stack = 2;
    struct gb_call one = begin(GB_HOOK_cudaMemcpyAsync, STREAM(1));
    pass(2 * MS);
    stack = 3;
    struct gb_call two = begin(GB_HOOK_cudaMemcpyAsync, STREAM(2));
    pass(8 * MS);
    took(10 * MS);
    stack = 2;
    gb_stall_copy(&one, &what, true);
    pass(2 * MS);
    took(10 * MS);
    stack = 3;
    gb_stall_copy(&two, &what, true);
    CHECK(idle_total() == 12 * MS);
    CHECK(COPIED(2)->blocked_ns == 10 * MS && COPIED(3)->blocked_ns == 10 * MS);
    return 0;
}

static void idle_time_never_exceeds_the_clock(void **state)
{
    (void)state;
    assert_scenario(before_work_scenario, 0);
    assert_scenario(first_copy_scenario, 0);
    assert_scenario(overlap_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_wait_proves_nothing),
        cmocka_unit_test(idle_time_never_exceeds_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
