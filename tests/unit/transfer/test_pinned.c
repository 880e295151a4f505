/* test_pinned.c: the ring of pinned chunks: its size within the budget, who has it, and how it is
 * given back. On the fake driver, each scenario in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>

#include "in_child.h"
#include "staging.h"

static enum gb_pinned_answer take(CUcontext context, uint64_t bytes, struct gb_pinned_ring **ring)
{
    return take_ring(context, bytes, ring);
}

/* ---- size ---- */

static const struct {
    uint64_t chunk, ring, budget;
} sizes[] = {
    {4 * MIB, 64 * MIB, UINT64_MAX}, /* the defaults */
    {4 * MIB, 8 * MIB, UINT64_MAX},
    {64 * MIB, 64 * MIB, UINT64_MAX},
    {320 * KIB, 64 * MIB, UINT64_MAX},
    {256 * KIB, 8 * MIB, UINT64_MAX},
    {300000, 8 * MIB, UINT64_MAX}, /* no multiple of anything */
    {4 * MIB, 64 * MIB, 5 * MIB},
    {4 * MIB, 64 * MIB, 1 * MIB},
    {4 * MIB, 64 * MIB, 256 * KIB},
    {4 * MIB, 64 * MIB, 64 * KIB},
    {64 * MIB, 1024 * MIB, 3 * MIB + 64 * KIB},
};

static int size_scenario(int row)
{
    struct gb_pinned_ring *ring;
    start_program();
    gb_config.chunk_bytes = sizes[row].chunk;
    gb_config.ring_bytes = sizes[row].ring;
    budget_bytes = sizes[row].budget;
    uint64_t most = sizes[row].ring < budget_bytes ? sizes[row].ring : budget_bytes;
    enum gb_pinned_answer answer = take(CONTEXT, 1, &ring);
    if (answer == GB_PINNED_NONE) {
        CHECK(budget_bytes < 256 * KIB); /* the smallest chunk worth having */
        CHECK(fake.calls == 0 && gb_pinned_bytes() == 0 && gb_pinned_limit_bytes() == 0);
        return 0;
    }
    CHECK(answer == GB_PINNED_TAKEN);
    CHECK(ring->count == 1 && ring->chunk_bytes <= sizes[row].chunk);
    CHECK(ring->chunk_bytes % (64 * KIB) == 0 && ring->chunk_bytes > 0);
    CHECK(gb_pinned_limit_bytes() <= most && ring->mapped_bytes <= most);
    gb_pinned_put(ring);
    CHECK(take(CONTEXT, UINT64_MAX, &ring) == GB_PINNED_TAKEN);
    CHECK(ring->count == ring->limit && ring->count <= GB_RING_CHUNKS_MAX);
    CHECK(most < 512 * KIB || ring->count >= 2); /* copying and sending overlap */
    CHECK(gb_pinned_bytes() == ring->count * ring->chunk_bytes);
    CHECK(gb_pinned_bytes() <= gb_pinned_limit_bytes());
    CHECK(fake_pinned_count() == (int)ring->count);
    for (uint32_t i = 0; i < ring->count; i++) {
        memset(ring->chunks[i].memory, (int)i, ring->chunk_bytes);
        CHECK(fake_is_pinned(ring->chunks[i].memory + ring->chunk_bytes - 1));
    }
    for (uint32_t i = 0; i < ring->count; i++) /* they are apart */
        CHECK(ring->chunks[i].memory[0] == i && ring->chunks[i].memory[ring->chunk_bytes - 1] == i);
    return 0;
}

static void the_ring_stays_within_options_and_budget(void **state)
{
    (void)state;
    for (int row = 0; row < (int)GB_ARRAY_LEN(sizes); row++)
        if (in_child(size_scenario, row))
            fail_msg("row %d", row);
}

static int growth_scenario(int unused)
{
    struct gb_pinned_ring *ring;
    (void)unused;
    start_program();
    static const struct {
        uint64_t bytes;
        int chunks;
    } steps[] = {{1, 1}, {4 * MIB, 1}, {4 * MIB + 1, 2}, {1, 2}, {12 * MIB, 3}, {13 * MIB, 4}};
    for (size_t i = 0; i < GB_ARRAY_LEN(steps); i++) {
        CHECK(take(CONTEXT, steps[i].bytes, &ring) == GB_PINNED_TAKEN);
        CHECK((int)ring->count == steps[i].chunks && fake_pinned_count() == steps[i].chunks);
        gb_pinned_put(ring);
    }
    return 0;
}

static void chunks_are_pinned_when_a_copy_needs_them(void **state)
{
    (void)state;
    assert_scenario(growth_scenario, 0);
}

/* ---- refusals ---- */

static int refusal_scenario(int call)
{
    struct gb_pinned_ring *ring;
    start_program();
    fake.fail_call = (enum fake_call)call;
    fake.fail_nth = 1;
    CHECK(take(CONTEXT, 1, &ring) == GB_PINNED_NONE);
    CHECK(fake_pinned_count() == 0 && fake.events_alive == 0 && gb_pinned_bytes() == 0);
    int calls = fake.calls;
    CHECK(take(CONTEXT, 1, &ring) == GB_PINNED_NONE); /* a second time nobody is asked */
    CHECK(fake.calls == calls);
    CHECK(take((CUcontext)0xc1, 1, &ring) == GB_PINNED_TAKEN); /* another context is */
    return 0;
}

static int fewer_scenario(int call)
{
    struct gb_pinned_ring *ring;
    start_program();
    fake.fail_call = (enum fake_call)call;
    fake.fail_nth = call == FAKE_EVENT_CREATE ? 4 : 3; /* the ring itself has an event, too */
    CHECK(take(CONTEXT, 16 * MIB, &ring) == GB_PINNED_TAKEN);
    CHECK(ring->count == 2 && fake_pinned_count() == 2 && fake.events_alive == 3);
    gb_pinned_put(ring);
    int calls = fake.calls;
    CHECK(take(CONTEXT, 16 * MIB, &ring) == GB_PINNED_TAKEN && ring->count == 2);
    CHECK(fake.calls == calls);
    return 0;
}

static void a_refusal_is_taken_for_an_answer(void **state)
{
    (void)state;
    assert_scenario(refusal_scenario, FAKE_REGISTER);
    assert_scenario(refusal_scenario, FAKE_EVENT_CREATE);
    assert_scenario(fewer_scenario, FAKE_REGISTER);
    assert_scenario(fewer_scenario, FAKE_EVENT_CREATE);
}

/* ---- one copy at a time, one ring per context ---- */

static int contexts_scenario(int unused)
{
    struct gb_pinned_ring *a, *b, *again;
    (void)unused;
    start_program();
    CHECK(take((CUcontext)0xc1, 1, &a) == GB_PINNED_TAKEN);
    CHECK(take((CUcontext)0xc2, 1, &b) == GB_PINNED_TAKEN);
    CHECK(a != b && a->memory != b->memory);
    CHECK(take((CUcontext)0xc1, 1, &again) == GB_PINNED_BUSY);
    CHECK(take((CUcontext)0xc2, 1, &again) == GB_PINNED_BUSY);
    gb_pinned_put(a);
    CHECK(take((CUcontext)0xc1, 1, &again) == GB_PINNED_TAKEN && again == a);
    for (uintptr_t context = 0xd0; context < 0xd0 + 14; context++) /* 16 in all */
        CHECK(take((CUcontext)context, 1, &again) == GB_PINNED_TAKEN);
    CHECK(take((CUcontext)0xff, 1, &again) == GB_PINNED_NONE);
    return 0;
}

static void every_context_has_its_own(void **state)
{
    (void)state;
    assert_scenario(contexts_scenario, 0);
}

static uint32_t holders, overlaps, takes;

static void *taker(void *unused)
{
    struct gb_pinned_ring *ring;
    for (int i = 0; i < 20000; i++) {
        if (take(CONTEXT, 1, &ring) != GB_PINNED_TAKEN)
            continue;
        __atomic_fetch_add(&takes, 1, __ATOMIC_RELAXED);
        if (__atomic_fetch_add(&holders, 1, __ATOMIC_ACQ_REL))
            __atomic_fetch_add(&overlaps, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&holders, 1, __ATOMIC_ACQ_REL);
        gb_pinned_put(ring);
    }
    return unused;
}

static int threads_scenario(int unused)
{
    pthread_t threads[4];
    struct gb_pinned_ring *ring;
    (void)unused;
    start_program();
    CHECK(take(CONTEXT, 1, &ring) == GB_PINNED_TAKEN); /* the fake driver is for one thread */
    gb_pinned_put(ring);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, taker, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(overlaps == 0 && takes > 0);
    CHECK(take(CONTEXT, 1, &ring) == GB_PINNED_TAKEN);
    return 0;
}

static void one_thread_has_it_at_a_time(void **state)
{
    (void)state;
    assert_scenario(threads_scenario, 0);
}

/* ---- the end ---- */

static bool is_mapped(const void *p)
{
    return msync((void *)((uintptr_t)p & ~(uintptr_t)4095), 4096, MS_ASYNC) == 0;
}

static int give_back_scenario(int unused)
{
    struct gb_pinned_ring *ring, *other;
    (void)unused;
    start_program();
    CHECK(!gb_pinned_give_back()); /* there is none */
    CHECK(take(CONTEXT, 9 * MIB, &ring) == GB_PINNED_TAKEN);
    CHECK(take((CUcontext)0xc1, 1, &other) == GB_PINNED_TAKEN);
    uint8_t *memory = ring->memory;
    gb_pinned_put(ring);
    CHECK(is_mapped(memory));
    CHECK(gb_pinned_give_back());
    CHECK(!is_mapped(memory) && is_mapped(other->memory)); /* that one is taken */
    CHECK(fake_pinned_count() == 1 && fake.events_alive == 2);
    CHECK(gb_pinned_bytes() == other->chunk_bytes);
    CHECK(gb_pinned_limit_bytes() == other->mapped_bytes);
    CHECK(take(CONTEXT, 1, &ring) == GB_PINNED_NONE); /* not asked for again */
    gb_pinned_put(other);
    CHECK(gb_pinned_give_back() && gb_pinned_bytes() == 0 && gb_pinned_limit_bytes() == 0);
    CHECK(!gb_pinned_give_back());
    CHECK(gb_counters.ring_given_back == 2);
    return 0;
}

static void idle_rings_are_given_back_for_good(void **state)
{
    (void)state;
    assert_scenario(give_back_scenario, 0);
}

static int stays_mapped_scenario(int unused)
{
    struct gb_pinned_ring *ring;
    (void)unused;
    start_program();
    CHECK(take(CONTEXT, 9 * MIB, &ring) == GB_PINNED_TAKEN);
    uint8_t *memory = ring->memory;
    gb_pinned_put(ring);
    fake.fail_call = FAKE_UNREGISTER;
    fake.fail_nth = 2;
    gb_pinned_give_back();
    CHECK(is_mapped(memory)); /* the driver may still know it */
    return 0;
}

static void memory_that_stays_registered_stays_mapped(void **state)
{
    (void)state;
    assert_scenario(stays_mapped_scenario, 0);
}

static int context_end_scenario(int unused)
{
    struct gb_pinned_ring *ring;
    (void)unused;
    start_program();
    CHECK(take(CONTEXT, 9 * MIB, &ring) == GB_PINNED_TAKEN);
    gb_pinned_put(ring);
    gb_pinned_context_ends();
    CHECK(fake_pinned_count() == 0 && fake.events_alive == 0 && gb_pinned_bytes() == 0);
    CHECK(take(CONTEXT, 9 * MIB, &ring) == GB_PINNED_TAKEN); /* the next one, or the same still */
    CHECK(ring->count == 3 && fake_pinned_count() == 3);
    gb_pinned_put(ring);
    CHECK(gb_pinned_give_back());
    gb_pinned_context_ends();
    CHECK(take(CONTEXT, 1, &ring) == GB_PINNED_NONE); /* a refusal outlives that */
    return 0;
}

static void a_context_takes_its_ring_along(void **state)
{
    (void)state;
    assert_scenario(context_end_scenario, 0);
}

/* ---- fork ---- */

static int fork_scenario(int unused)
{
    struct gb_pinned_ring *ring;
    int status;
    (void)unused;
    start_program();
    CHECK(take(CONTEXT, 1, &ring) == GB_PINNED_TAKEN);
    ring->memory[0] = 1;
    pid_t child = fork();
    if (child == 0) { /* a store of the child would else copy the page away from the DMA */
        ring->memory[0] = 2;
        gb_state = GB_STATE_OFF;
        gb_pinned_put(ring);
        int calls = fake.calls;
        bool gave = gb_pinned_give_back();
        gb_pinned_context_ends();
        _exit(gave || fake.calls != calls);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(ring->memory[0] == 2);
    return 0;
}

static void a_forked_child_shares_it_and_leaves_it_alone(void **state)
{
    (void)state;
    assert_scenario(fork_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_stays_within_options_and_budget),
        cmocka_unit_test(chunks_are_pinned_when_a_copy_needs_them),
        cmocka_unit_test(a_refusal_is_taken_for_an_answer),
        cmocka_unit_test(every_context_has_its_own),
        cmocka_unit_test(one_thread_has_it_at_a_time),
        cmocka_unit_test(idle_rings_are_given_back_for_good),
        cmocka_unit_test(memory_that_stays_registered_stays_mapped),
        cmocka_unit_test(a_context_takes_its_ring_along),
        cmocka_unit_test(a_forked_child_shares_it_and_leaves_it_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
