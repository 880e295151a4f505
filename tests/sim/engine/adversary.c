/* adversary.c: the virtual clock. Nothing sleeps: an operation runs when the seed says so, or when
 * the program waits for it.
 *
 * Each seed has a temper: everything at once, nothing until forced, each stream one or the other, a
 * coin at each step, or copies that begin at once and end when forced. A copy has two halves
 * (effect.c): the destination changes at the first legal moment, the source is read at the last.
 * Host functions run only when something waits for what comes after them. A stream that waits for a
 * value in memory is looked at again at each step; who waits for that stream lets everything else
 * run, then sleeps and looks again. Thread rule: sim_lock;
 * given up only while a host function runs. The same calls in the same order with the same seed
 * give the same run.
 */
#include "engine.h"

#include <time.h>

#define CALL_NS       200 /* what a call costs on the virtual clock */
#define MOST_STEPS    4
#define MOST_REFUSED  12      /* answers of NotReady in a row before the work is done after all */
#define LOOK_AGAIN_NS 1000000 /* at memory that somebody else should write */

static uint64_t now_ns = 1000000000u, random_state, seed_now;
static enum { EAGER, LAZY, BY_STREAM, COIN, SPLIT, TEMPERS } temper;
static struct sim_op *ready; /* those that may take their next step */
static unsigned ready_count;

static uint64_t scramble(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u; /* splitmix64, Steele et al. 2014 */
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t draw(uint64_t below)
{
    random_state = scramble(random_state);
    return random_state % below;
}

uint64_t sim_adversary_now(void)
{
    return now_ns;
}

void sim_adversary_tick(void)
{
    now_ns += CALL_NS;
}

/* --- the list of what may run --- */

static void add_ready(struct sim_op *op)
{
    op->state = SIM_READY;
    op->ready_previous = NULL;
    op->ready_next = ready;
    if (ready)
        ready->ready_previous = op;
    ready = op;
    ready_count++;
}

static void remove_ready(struct sim_op *op)
{
    *(op->ready_previous ? &op->ready_previous->ready_next : &ready) = op->ready_next;
    if (op->ready_next)
        op->ready_next->ready_previous = op->ready_previous;
    ready_count--;
}

/* --- steps --- */

static void finish(struct sim_op *op)
{
    if (op->unit != SIM_NO_UNIT) {
        struct sim_unit *unit = &sim.devices[op->device].units[op->unit];
        op->start_ns = op->ready_ns > unit->free_ns ? op->ready_ns : unit->free_ns;
        op->end_ns = unit->free_ns = op->start_ns + op->duration_ns;
        sim_truth_interval(op->device, op->unit, op->start_ns, op->end_ns);
    } else {
        op->start_ns = op->end_ns = op->ready_ns;
    }
    remove_ready(op);
    sim_op_apply(op);
    for (unsigned i = 0; i < op->after.count; i++) {
        struct sim_op *after = op->after.items[i];
        if (op->end_ns > after->ready_ns)
            after->ready_ns = op->end_ns;
        if (--after->waiting == 0)
            add_ready(after);
    }
    sim_op_finished(op);
}

/* The next step of an operation that may take one: its beginning, then its end. */
static void step(struct sim_op *op)
{
    if (op->state == SIM_READY && op->kind == SIM_OP_COPY) {
        sim_op_begin_early(op);
        op->state = SIM_RUNNING;
        return;
    }
    finish(op);
}

static bool may_step(struct sim_op *op)
{
    return op->kind != SIM_OP_HOST && (op->kind != SIM_OP_WAIT || sim_wait_met(op));
}

static bool is_eager(const struct sim_op *op)
{
    switch (temper) {
    case EAGER:
        return true;
    case LAZY:
    case SPLIT:
        return false;
    case BY_STREAM:
        return scramble(seed_now ^ op->stream->id) & 1;
    default:
        return draw(2);
    }
}

static struct sim_op *pick(void)
{
    struct sim_op *op = ready;
    for (uint64_t skip = draw(ready_count); skip > 0; skip--)
        op = op->ready_next;
    return op;
}

static void run_all_eager(void)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (struct sim_op *op = ready, *next; op; op = next) {
            next = op->ready_next;
            if (!may_step(op) || !is_eager(op))
                continue;
            finish(op);
            moved = true;
            break;
        }
    }
}

static void begin_copies(void)
{
    for (struct sim_op *op = ready; op; op = op->ready_next)
        if (op->kind == SIM_OP_COPY && op->state == SIM_READY)
            step(op);
}

static void let_some_run(void)
{
    if (temper == SPLIT) {
        begin_copies();
        return;
    }
    if (temper == EAGER || temper == BY_STREAM) {
        run_all_eager();
        return;
    }
    for (uint64_t steps = draw(MOST_STEPS + 1); steps > 0 && ready_count > 0; steps--) {
        struct sim_op *op = pick();
        if (may_step(op) && is_eager(op))
            step(op);
    }
}

void sim_adversary_submit(struct sim_op *op)
{
    if (op->waiting == 0)
        add_ready(op);
    let_some_run();
}

/* --- force --- */

static struct sim_op *first_undone(const struct sim_op *op)
{
    for (unsigned i = 0; i < op->before.count; i++)
        if (op->before.items[i]->state != SIM_DONE)
            return op->before.items[i];
    return NULL;
}

static void complete(struct sim_op *op)
{
    sim_op_hold(op);
    step(op);
    if (op->state != SIM_DONE)
        finish(op);
    sim_op_drop(op);
}

/* Does what it takes and nothing else; NULL, or the host function that has to return first, or the
 * stream's wait for a value. The way down to what may run is kept in the operations themselves. */
static struct sim_op *force(struct sim_op *op)
{
    struct sim_op *path = op;
    op->next = NULL;
    while (path) {
        struct sim_op *top = path, *before = first_undone(top);
        if (top->state != SIM_DONE && before) {
            before->next = path;
            path = before;
            continue;
        }
        if (top->state != SIM_DONE && top->kind == SIM_OP_HOST) {
            if (!top->handed)
                sim_callback_hand(top);
            return top;
        }
        if (top->state != SIM_DONE && top->kind == SIM_OP_WAIT && !sim_wait_met(top))
            return top;
        path = top->next;
        if (top->state != SIM_DONE)
            complete(top);
    }
    return NULL;
}

/* A device runs what it can while one of its streams waits for a value: it may be what writes it.
 */
static bool let_another_run(void)
{
    for (struct sim_op *op = ready; op; op = op->ready_next) {
        if (may_step(op)) {
            complete(op);
            return true;
        }
    }
    for (struct sim_op *op = ready; op; op = op->ready_next)
        if (op->kind == SIM_OP_HOST && !op->handed)
            sim_callback_hand(op);
    return false;
}

static void sleep_a_little(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_AGAIN_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&sim.progress, &sim.lock, &until);
}

void sim_adversary_wait(struct sim_op *op)
{
    struct sim_op *held;
    sim.waiters++;
    while ((held = force(op)) != NULL) {
        if (held->kind == SIM_OP_HOST)
            pthread_cond_wait(&sim.progress, &sim.lock);
        else if (!let_another_run())
            sleep_a_little();
    }
    sim.waiters--;
    if (op->end_ns > now_ns)
        now_ns = op->end_ns;
}

bool sim_adversary_query(struct sim_op *op)
{
    let_some_run();
    if (op->state != SIM_DONE && ++op->asked > 1 + draw(MOST_REFUSED)) {
        struct sim_op *held = force(op);
        if (held && held->kind == SIM_OP_WAIT)
            let_another_run();
    }
    return op->state == SIM_DONE;
}

void sim_adversary_host_done(struct sim_op *op)
{
    finish(op);
    pthread_cond_broadcast(&sim.progress);
}

void sim_adversary_reseed(uint64_t seed)
{
    sim_wait_context(NULL);
    seed_now = seed;
    random_state = scramble(seed);
    temper = (unsigned)(seed % TEMPERS);
}
