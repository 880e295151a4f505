/* op.c: operations: their making, their order, their end.
 *
 * Order is nothing but edges: to the last operation of the own stream, to a waited event's mark,
 * and the legacy stream's rules (CUDA Runtime API, "Stream synchronization behavior").
 * Thread rule: sim_lock. Failure rule: out of host memory ends the test program.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes);
    if (!memory) {
        fputs("gpusim: out of host memory\n", stderr);
        _Exit(70);
    }
    return memory;
}

struct sim_op *sim_op_new(enum sim_op_kind kind, enum sim_unit_kind unit, uint64_t duration_ns)
{
    struct sim_op *op = allocate(NULL, sizeof(*op));
    memset(op, 0, sizeof(*op));
    op->kind = (uint8_t)kind;
    op->unit = (uint8_t)unit;
    op->duration_ns = duration_ns;
    op->refs = 1;
    op->waiting = 1; /* for its submission */
    return op;
}

/* A fresh operation that does the same (graph launches). */
struct sim_op *sim_op_clone(const struct sim_op *from)
{
    struct sim_op *op = sim_op_new(from->kind, from->unit, from->duration_ns);
    op->copy = from->copy;
    switch (from->kind) {
    case SIM_OP_KERNEL:
        op->kernel = from->kernel;
        op->kernel->refs++;
        break;
    case SIM_OP_FILL:
        op->fill = from->fill;
        break;
    case SIM_OP_HOST:
        op->host = from->host;
        break;
    case SIM_OP_WRITE:
        op->write = from->write;
        break;
    case SIM_OP_WAIT:
        op->wait = from->wait;
        break;
    default:
        break;
    }
    return op;
}

static void list_add(struct sim_op_list *list, struct sim_op *op)
{
    if (!list->items) {
        list->items = list->first;
        list->capacity = sizeof(list->first) / sizeof(list->first[0]);
    } else if (list->count == list->capacity) {
        list->capacity *= 2;
        struct sim_op **old = list->items == list->first ? NULL : list->items;
        list->items = allocate(old, list->capacity * sizeof(*list->items));
        if (!old)
            memcpy(list->items, list->first, sizeof(list->first));
    }
    list->items[list->count++] = op;
}

static void list_free(struct sim_op_list *list)
{
    if (list->items != list->first)
        free(list->items);
    list->items = NULL;
    list->count = 0;
}

void sim_op_hold(struct sim_op *op)
{
    op->refs++;
}

void sim_op_drop(struct sim_op *op)
{
    if (--op->refs > 0)
        return;
    if (op->kind == SIM_OP_KERNEL && --op->kernel->refs == 0) {
        sim_kernel_free(&op->kernel->op);
        free(op->kernel->name);
        free(op->kernel);
    }
    if (op->kind == SIM_OP_COPY)
        free(op->copy.owned);
    list_free(&op->before);
    list_free(&op->after);
    free(op);
}

void sim_op_after(struct sim_op *op, struct sim_op *before)
{
    if (!before || before == op)
        return;
    if (before->state == SIM_DONE || before->state == SIM_TIMED) {
        if (before->end_ns > op->ready_ns)
            op->ready_ns = before->end_ns;
        if (before->state == SIM_DONE)
            return;
    }
    for (unsigned i = 0; i < op->before.count; i++)
        if (op->before.items[i] == before)
            return;
    sim_op_hold(before);
    list_add(&op->before, before);
    if (before->state == SIM_TIMED)
        return; /* its effect is queued ahead of anything that becomes ready now */
    list_add(&before->after, op);
    op->waiting++;
}

/* Is this the last unfinished operation of its stream (or of a stream that is gone)? */
static bool is_last(const struct sim_op *op)
{
    return op->generation != op->stream->generation || op->stream->tail == op;
}

static void order_with_legacy(struct sim_stream *stream, struct sim_op *op)
{
    struct sim_context *context = stream->context;
    if (stream->blocking) {
        sim_op_after(op, context->legacy->tail);
        return;
    }
    if (stream != context->legacy || context->blocking_pending == 0)
        return;
    for (struct sim_op *other = sim.oldest; other; other = other->newer)
        if (other != op && other->context == context && other->blocking && is_last(other))
            sim_op_after(op, other);
}

static void make_pending(struct sim_stream *stream, struct sim_op *op)
{
    op->stream = stream;
    op->generation = stream->generation;
    op->context = stream->context;
    op->device = stream->context->device->ordinal;
    op->blocking = stream->blocking;
    op->seq = ++sim.next_seq;
    op->older = sim.newest;
    *(sim.newest ? &sim.newest->newer : &sim.oldest) = op;
    sim.newest = op;
    stream->pending++;
    stream->context->blocking_pending += op->blocking;
}

static void schedule(struct sim_op *op)
{
    sim_op_hold(op); /* dropped in sim_op_finished */
    op->waiting--;
    uint64_t now = sim_now();
    if (now > op->ready_ns)
        op->ready_ns = now;
    if (sim.virtual_clock)
        sim_adversary_submit(op);
    else
        sim_timeline_submit(op);
}

void sim_op_submit(struct sim_stream *stream, struct sim_op *op, struct sim_op **kept)
{
    while (stream->pending >= (unsigned)SIM_NUMBER(QUEUE)) {
        struct sim_op *oldest = sim.oldest;
        while (oldest && oldest->stream != stream)
            oldest = oldest->newer;
        if (!oldest)
            break;
        sim_wait_op(oldest);
    }
    sim_op_after(op, stream->tail);
    order_with_legacy(stream, op);
    make_pending(stream, op);
    if (stream->tail)
        sim_op_drop(stream->tail);
    sim_op_hold(op);
    stream->tail = op;
    if (kept) {
        sim_op_hold(op);
        *kept = op;
    }
    schedule(op);
    sim_op_drop(op);
}

void sim_op_submit_loose(struct sim_stream *stream, struct sim_op *op)
{
    make_pending(stream, op);
    schedule(op);
}

static void forget(struct sim_op *op)
{
    *(op->older ? &op->older->newer : &sim.oldest) = op->newer;
    *(op->newer ? &op->newer->older : &sim.newest) = op->older;
    if (op->generation == op->stream->generation)
        op->stream->pending--;
    op->context->blocking_pending -= op->blocking;
}

void sim_op_finished(struct sim_op *op)
{
    op->state = SIM_DONE;
    forget(op);
    for (unsigned i = 0; i < op->before.count; i++)
        sim_op_drop(op->before.items[i]);
    op->before.count = 0;
    if (sim.waiters > 0)
        pthread_cond_broadcast(&sim.progress);
    sim_op_drop(op);
}

/* --- waiting --- */

void sim_wait_op(struct sim_op *op)
{
    if (op->state == SIM_DONE)
        return;
    sim_op_hold(op);
    if (sim.virtual_clock)
        sim_adversary_wait(op);
    else
        sim_timeline_wait(op);
    sim_op_drop(op);
}

bool sim_query_op(struct sim_op *op)
{
    if (!op || op->state == SIM_DONE)
        return true;
    sim_op_hold(op);
    bool done = sim.virtual_clock ? sim_adversary_query(op) : sim_timeline_query(op);
    sim_op_drop(op);
    return done;
}

/* An action in the legacy stream waits for all blocking streams of its context first. */
struct sim_op *sim_stream_last(struct sim_stream *stream)
{
    if (stream == stream->context->legacy && stream->context->blocking_pending > 0) {
        struct sim_op *mark;
        sim_op_submit(stream, sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0), &mark);
        sim_op_drop(mark); /* the stream's tail holds it */
    }
    return stream->tail && stream->tail->state != SIM_DONE ? stream->tail : NULL;
}

static struct sim_op *first_pending(const struct sim_stream *s)
{
    for (; s; s = s->next_in_context)
        if (s->live && s->blocking && s->tail && s->tail->state != SIM_DONE)
            return s->tail;
    return NULL;
}

/* To ask is no action in the stream: it leaves nothing there that could be asked about next. */
struct sim_op *sim_stream_pending(const struct sim_stream *stream)
{
    const struct sim_context *context = stream->context;
    if (stream->tail && stream->tail->state != SIM_DONE)
        return stream->tail;
    if (stream != context->legacy)
        return NULL;
    struct sim_op *pending = first_pending(context->streams);
    return pending ? pending : first_pending(context->per_thread);
}

void sim_wait_stream(struct sim_stream *stream)
{
    struct sim_op *last = sim_stream_last(stream);
    if (last)
        sim_wait_op(last);
}

static void wait_where(const struct sim_context *context, const struct sim_device *device)
{
    uint64_t upto = sim.next_seq;
    for (;;) {
        struct sim_op *op = sim.oldest;
        while (op &&
               ((context && op->context != context) || (device && op->context->device != device)))
            op = op->newer;
        if (!op || op->seq > upto)
            return;
        sim_wait_op(op);
    }
}

void sim_wait_context(struct sim_context *context)
{
    wait_where(context, NULL);
}

void sim_wait_device(struct sim_device *device)
{
    wait_where(NULL, device);
}
