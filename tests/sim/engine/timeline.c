/* timeline.c: the real clock. Each engine runs one operation at a time:
 * start = max(ready, engine free), end = start + duration, all on the model's own times, so that
 * a thread that wakes late delays what it sees and nothing else.
 *
 * Whoever comes by moves the timeline up to now; effects follow in the order of the ends. One
 * thread sleeps until the next end, so that things happen while the program makes no calls.
 * Thread rule: sim_lock; given up while sleeping and while a slow effect runs.
 */
#include "engine.h"

#include <sys/prctl.h>
#include <time.h>

#define SPIN_NS        100000u
#define WAITER_STEP_NS 20000u /* a waiter that cannot know how long looks this often */
#define MOST_HOPS      2048
#define ENGINE_STEP_NS 200000u /* nor the thread that only carries effects out */

static struct sim_op *effects, *last_effect;
static struct sim_op *watched; /* streams that wait for a value in memory */
static bool effect_running, stopping, started;
static pthread_t thread;

static uint64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sim_now(void)
{
    return sim.virtual_clock ? sim_adversary_now() : clock_now();
}

static void add_effect(struct sim_op *op)
{
    op->next = NULL;
    *(last_effect ? &last_effect->next : &effects) = op;
    last_effect = op;
}

/* --- time --- */

static void start_next(struct sim_unit *unit)
{
    struct sim_op *op = unit->ready;
    unit->running = op;
    if (!op)
        return;
    unit->ready = op->next;
    op->state = SIM_RUNNING;
    op->start_ns = op->ready_ns > unit->free_ns ? op->ready_ns : unit->free_ns;
    op->end_ns = op->start_ns + op->duration_ns;
}

static void queue_on_unit(struct sim_op *op)
{
    struct sim_unit *unit = &sim.devices[op->device].units[op->unit];
    struct sim_op **at = &unit->ready;
    while (*at && ((*at)->ready_ns < op->ready_ns ||
                   ((*at)->ready_ns == op->ready_ns && (*at)->seq < op->seq)))
        at = &(*at)->next;
    op->next = *at;
    *at = op;
    if (!unit->running)
        start_next(unit);
}

/* The engine's thread looks at it again and again, and must know. */
static void watch(struct sim_op *op)
{
    op->next = watched;
    watched = op;
    pthread_cond_signal(&sim.engine_wake);
}

/* Its time is over: what waited for it may be ready. Works off a list, since marks and waits take
 * no time and form long chains. */
static void end_time(struct sim_op *op)
{
    struct sim_op *done = op;
    op->next = NULL;
    while (done) {
        op = done;
        done = op->next;
        op->state = SIM_TIMED;
        add_effect(op);
        for (unsigned i = 0; i < op->after.count; i++) {
            struct sim_op *after = op->after.items[i];
            if (op->end_ns > after->ready_ns)
                after->ready_ns = op->end_ns;
            if (--after->waiting > 0)
                continue;
            after->state = SIM_READY;
            if (after->kind == SIM_OP_HOST) {
                add_effect(after); /* timed when its function returns */
            } else if (after->kind == SIM_OP_WAIT) {
                watch(after);
            } else if (after->unit == SIM_NO_UNIT) {
                after->start_ns = after->end_ns = after->ready_ns;
                after->next = done;
                done = after;
            } else {
                queue_on_unit(after);
            }
        }
    }
}

static struct sim_unit *next_end(uint64_t *end_ns)
{
    struct sim_unit *first = NULL;
    *end_ns = UINT64_MAX;
    for (int d = 0; d < sim.device_count; d++) {
        for (int u = 0; u < SIM_UNITS; u++) {
            struct sim_unit *unit = &sim.devices[d].units[u];
            if (unit->running && unit->running->end_ns < *end_ns) {
                *end_ns = unit->running->end_ns;
                first = unit;
            }
        }
    }
    return first;
}

static void look_at_watched(uint64_t now)
{
    for (struct sim_op **at = &watched; *at;) {
        struct sim_op *op = *at;
        if (!sim_wait_met(op)) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->start_ns = op->ready_ns;
        op->end_ns = op->ready_ns > now ? op->ready_ns : now;
        end_time(op);
        at = &watched; /* which may have become longer */
    }
}

static void advance(uint64_t now)
{
    uint64_t end_ns;
    struct sim_unit *unit;
    while ((unit = next_end(&end_ns)) != NULL && end_ns <= now) {
        struct sim_op *op = unit->running;
        unit->running = NULL;
        unit->free_ns = op->end_ns;
        sim_truth_interval(op->device, op->unit, op->start_ns, op->end_ns);
        end_time(op);
        if (!unit->running)
            start_next(unit);
    }
    look_at_watched(now);
}

/* --- effects --- */

static void apply_unlocked(struct sim_op *op)
{
    effect_running = true;
    sim_unlock();
    sim_op_apply(op);
    sim_lock();
    effect_running = false;
    if (sim.waiters > 0)
        pthread_cond_broadcast(&sim.progress);
}

/* In order, one thread at a time. A caller in a hurry leaves slow ones to others. */
static void run_effects(bool hurry)
{
    while (effects && !effect_running) {
        struct sim_op *op = effects;
        bool slow = sim_op_is_slow(op);
        if (slow && hurry)
            return;
        effects = op->next;
        if (!effects)
            last_effect = NULL;
        if (op->kind == SIM_OP_HOST && op->state == SIM_READY) {
            sim_callback_hand(op);
            continue;
        }
        if (slow && !op->applied)
            apply_unlocked(op);
        else if (!op->applied)
            sim_op_apply(op);
        sim_op_finished(op);
    }
}

void sim_timeline_host_done(struct sim_op *op)
{
    advance(clock_now());
    op->start_ns = op->ready_ns;
    op->end_ns = clock_now();
    /* Its effect is over: it must not wait for its turn among the others. */
    op->next = NULL;
    end_time(op);
    run_effects(false);
    if (sim.engine_idle)
        pthread_cond_signal(&sim.engine_wake);
}

/* --- sleeping --- */

static void sleep_until(pthread_cond_t *condition, uint64_t until_ns)
{
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    if (until_ns == UINT64_MAX)
        pthread_cond_wait(condition, &sim.lock);
    else
        pthread_cond_timedwait(condition, &sim.lock, &until);
}

/* The kernel may add 50 us to a sleep unless asked not to (prctl(2), PR_SET_TIMERSLACK). */
static void sleep_precisely(void)
{
    if (!sim_thread.slack_set)
        prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    sim_thread.slack_set = true;
}

/* When an operation that is in its engine's queue will start. */
static uint64_t queued_start(const struct sim_op *op)
{
    const struct sim_unit *unit = &sim.devices[op->device].units[op->unit];
    uint64_t start_ns = unit->running ? unit->running->end_ns : op->ready_ns;
    for (const struct sim_op *ahead = unit->ready; ahead && ahead != op; ahead = ahead->next)
        start_ns += ahead->duration_ns;
    return start_ns;
}

/* Not before this: the end of what runs now and, after it, one way through what must come before.
 * Exact for a plain stream. UINT64_MAX: it waits for a host function or a value in memory. */
static uint64_t soonest_end(const struct sim_op *op)
{
    uint64_t after_ns = 0;
    for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
        if (op->state == SIM_RUNNING)
            return op->end_ns + after_ns;
        after_ns += op->duration_ns;
        const struct sim_op *before = NULL;
        for (unsigned i = 0; i < op->before.count && !before; i++)
            if (op->before.items[i]->state < SIM_TIMED)
                before = op->before.items[i];
        if (!before && (op->kind == SIM_OP_HOST || op->kind == SIM_OP_WAIT))
            return UINT64_MAX;
        if (!before)
            return after_ns + (op->unit == SIM_NO_UNIT ? op->ready_ns : queued_start(op));
        op = before;
    }
    return 0;
}

/* A sleeper is woken some 50 us late on a virtual machine: sleep short, then look at the clock. */
static void wait_until(uint64_t until_ns)
{
    if (until_ns > clock_now() + SPIN_NS + SPIN_NS / 2) {
        sleep_until(&sim.progress, until_ns == UINT64_MAX ? until_ns : until_ns - SPIN_NS);
        return;
    }
    sim_unlock();
    while (clock_now() < until_ns)
        continue;
    sim_lock();
}

/* Who waits for a long copy moves its bytes meanwhile: nobody may touch them, and afterwards it
 * would take time that the device does not take. */
static bool use_the_wait(struct sim_op *op)
{
    if (op->state != SIM_RUNNING || op->kind != SIM_OP_COPY || op->applied || effects ||
        effect_running || !sim_op_is_slow(op))
        return false;
    op->applied = true;
    apply_unlocked(op);
    return true;
}

void sim_timeline_wait(struct sim_op *op)
{
    sleep_precisely();
    sim.waiters++;
    for (;;) {
        uint64_t now = clock_now();
        advance(now);
        run_effects(false);
        if (op->state == SIM_DONE)
            break;
        if (effects && !effect_running)
            continue;
        if (use_the_wait(op))
            continue;
        uint64_t until = op->state == SIM_TIMED ? UINT64_MAX : soonest_end(op);
        wait_until(until > now ? until : now + WAITER_STEP_NS);
    }
    sim.waiters--;
}

bool sim_timeline_query(struct sim_op *op)
{
    advance(clock_now());
    run_effects(true);
    if (effects && sim.engine_idle)
        pthread_cond_signal(&sim.engine_wake);
    return op->state == SIM_DONE;
}

void sim_timeline_submit(struct sim_op *op)
{
    bool free_to_start = op->waiting == 0; /* else the advance starts it, when it may */
    advance(op->ready_ns);
    if (free_to_start) {
        op->state = SIM_READY;
        if (op->kind == SIM_OP_HOST) {
            add_effect(op);
        } else if (op->kind == SIM_OP_WAIT) {
            watch(op);
            look_at_watched(op->ready_ns);
        } else if (op->unit == SIM_NO_UNIT) {
            op->start_ns = op->end_ns = op->ready_ns;
            end_time(op);
        } else {
            queue_on_unit(op);
        }
    }
    run_effects(true);
    if (sim.engine_idle && sim.oldest)
        pthread_cond_signal(&sim.engine_wake);
}

static void *engine_loop(void *unused)
{
    (void)unused;
    sim_lock();
    sleep_precisely();
    while (!stopping) {
        uint64_t now = clock_now(), until;
        advance(now);
        run_effects(false);
        next_end(&until);
        if (effects && !effect_running)
            continue;
        if ((until != UINT64_MAX && until < now + ENGINE_STEP_NS) || watched)
            until = now + ENGINE_STEP_NS;
        sim.engine_idle = until == UINT64_MAX;
        sleep_until(&sim.engine_wake, until);
        sim.engine_idle = false;
    }
    sim_unlock();
    return NULL;
}

void sim_timeline_start(void)
{
    if (!sim.virtual_clock)
        started = sim_thread_create(&thread, engine_loop);
}

void sim_timeline_stop(void)
{
    stopping = true;
    pthread_cond_signal(&sim.engine_wake);
    if (!started)
        return;
    sim_unlock();
    pthread_join(thread, NULL);
    sim_lock();
}
