/* test_stall_model.c: random programs on a GPU of a few lines that knows when each kernel runs. The
 * idle time that is charged is never more than the compute engine's own, and it is all of it where
 * every gap begins with a wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "core_fakes.h"
#include "gpu/ranges.h"
#include "in_child.h"

#define STREAMS     3
#define EVENTS      12
#define KERNELS     4096
#define NS_PER_KIB  250 /* a copy takes its bytes' time: then a rate that was learned is exact */
#define PINNED_BASE ((char *)0x40000000)

struct kernel {
    uint64_t start, end;
};

static struct kernel kernels[KERNELS];
static int kernel_count;
static uint64_t busy_until[STREAMS]; /* by everything that was given to the stream */
static struct {
    bool recorded;
    uint64_t time; /* when what came before it is done */
} events[EVENTS];

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static int by_start(const void *a, const void *b)
{
    const struct kernel *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* From the first kernel to now. */
static uint64_t true_idle(void)
{
    uint64_t idle = 0, reached;
    if (!kernel_count)
        return 0;
    qsort(kernels, (size_t)kernel_count, sizeof *kernels, by_start);
    reached = kernels[0].start;
    for (int i = 0; i < kernel_count && kernels[i].start < clock_ns; i++) {
        if (kernels[i].start > reached)
            idle += kernels[i].start - reached;
        reached = later(reached, kernels[i].end);
    }
    return idle + (clock_ns > reached ? clock_ns - reached : 0);
}

/* ---- the program ---- */

static void launch(int s, uint64_t ns)
{
    uint64_t from = later(clock_ns, busy_until[s]);
    gb_stamp_kernel(STREAM(s));
    if (kernel_count == KERNELS)
        return;
    kernels[kernel_count++] = (struct kernel){from, from + ns};
    busy_until[s] = from + ns;
}

/* The host waits until then; how long that is. */
static uint64_t wait_of(uint64_t until)
{
    return until > clock_ns ? until - clock_ns : 0;
}

static void copy_pageable(int s, size_t kib)
{
    copy_h2d(STREAM(s), kib << 10, wait_of(busy_until[s]) + kib * NS_PER_KIB);
    busy_until[s] = later(busy_until[s], clock_ns);
}

static void copy_pinned(int s, size_t kib)
{
    copy(&(struct gb_copy){GB_COPY_H2D, (void *)0x7000000, PINNED_BASE, kib << 10, true}, STREAM(s),
         0);
    busy_until[s] = later(clock_ns, busy_until[s]) + kib * NS_PER_KIB;
}

static void record(int e, int s)
{
    gb_event_recorded(EVENT(e), gb_stream_of(STREAM(s)));
    events[e].recorded = true;
    events[e].time = later(clock_ns, busy_until[s]);
}

static void any_call(int what, int s, int e)
{
    size_t kib = 65 + (size_t)rand() % 4000;
    uint64_t all = 0;
    switch (what) {
    case 0:
        copy_pageable(s, kib);
        break;
    case 1:
        copy_pinned(s, kib);
        break;
    case 2:
        copy_d2h(STREAM(s), 4, wait_of(busy_until[s]));
        break;
    case 3:
        sync_stream(STREAM(s), wait_of(busy_until[s]));
        break;
    case 4:
        for (int i = 0; i < STREAMS; i++)
            all = later(all, busy_until[i]);
        sync_gpu(wait_of(all));
        break;
    case 5:
        record(e, s);
        break;
    case 6:
        if (events[e].recorded)
            sync_event(EVENT(e), wait_of(events[e].time));
        break;
    case 7:
        if (events[e].recorded) {
            gb_stream_waits(gb_stream_of(STREAM(s)), EVENT(e));
            busy_until[s] = later(busy_until[s], events[e].time);
        }
        break;
    case 8:
        query_stream(STREAM(s), busy_until[s] <= clock_ns);
        break;
    case 9:
        pass((uint64_t)rand() % (3 * MS));
        break;
    default:
        launch(s, (uint64_t)rand() % (2 * MS));
    }
}

static void start(int seed)
{
    srand((unsigned)seed);
    gb_thread_context_set((CUcontext)0xc0);
    gb_config.stall_ns = MS;
    gb_ranges_add(PINNED_BASE, (size_t)1 << 30);
}

#define ROUNDING 2 /* ns, for each copy whose time was estimated */

static int random_scenario(int seed)
{
    struct gb_totals totals;
    start(seed);
    for (int step = 0; step < 3000; step++) {
        stack = (uint32_t)(1 + rand() % 20);
        any_call(rand() % 14, rand() % STREAMS, rand() % EVENTS);
        CHECK(step % 4 || idle_total() <= true_idle() + (uint64_t)step * ROUNDING);
    }
    gb_totals_read(&totals);
    CHECK(totals.idle_ns > 0 && totals.launches > 0);
    uint64_t blocked = 0, parts = 0, idle = 0;
    for (uint32_t id = 0; id < gb_site_count(); id++) {
        const struct gb_site *site = gb_site_at(id);
        blocked += site->blocked_ns;
        parts += site->queued_ns + site->transfer_ns + site->unsplit_ns;
        idle += site->idle_ns;
    }
    CHECK(blocked == parts); /* every part is somewhere */
    CHECK(idle == totals.idle_ns);
    return 0;
}

static void never_more_than_there_was(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 40; seed++)
        if (in_child(random_scenario, seed))
            fail_msg("seed %d", seed);
}

/* A training loop: wait for the stream, copy the next batch, compute. */
static int loop_scenario(int seed)
{
    start(seed);
    for (int step = 0; step < 300; step++) {
        for (int i = rand() % 5; i >= 0; i--)
            launch(0, MS + (uint64_t)rand() % MS);
        stack = 1;
        if (step % 3)
            sync_stream(STREAM(0), wait_of(busy_until[0]));
        else
            copy_d2h(STREAM(0), 4, wait_of(busy_until[0]));
        pass((uint64_t)rand() % MS);
        stack = 2;
        copy_pageable(0, 65 + (size_t)rand() % 4000);
        pass((uint64_t)rand() % MS);
        launch(0, MS);
        CHECK(idle_total() == true_idle());
    }
    return 0;
}

static void all_of_it_where_every_gap_begins_with_a_wait(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 10; seed++)
        assert_scenario(loop_scenario, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_more_than_there_was),
        cmocka_unit_test(all_of_it_where_every_gap_begins_with_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
