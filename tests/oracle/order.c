/* order.c: which accesses of a program are ordered, and which answers are determined.
 *
 * Vector clocks over streams. The edges are those of NVIDIA's text: a stream's own order, events,
 * the legacy stream, what the host has waited for; and what a blocking pageable copy of more than
 * 64 KiB leaves behind when it returns: all earlier work of its stream is done, its bytes are there
 * for everybody. The program's threads take turns, so the host is one agent.
 * Thread rule: none. Failure rule: what is not certain is not ordered.
 */
#include "order.h"

#include <stdlib.h>
#include <string.h>

struct order *order_new(void)
{
    struct order *order = calloc(1, sizeof(*order));
    if (!order)
        give_up("out of memory");
    order->streams[LEGACY_0] = (struct stream){.live = true};
    order->streams[LEGACY_1] = (struct stream){.live = true, .device = 1};
    for (unsigned s = OF_THREAD_0; s <= OF_THREAD_2; s++)
        order->streams[s] = (struct stream){.live = true, .blocking = true};
    order->held = STREAMS;
    return order;
}

static void join(uint32_t into[STREAMS], const uint32_t from[STREAMS])
{
    for (unsigned s = 0; s < STREAMS; s++)
        if (from[s] > into[s])
            into[s] = from[s];
}

static bool is_legacy(unsigned stream)
{
    return stream == LEGACY_0 || stream == LEGACY_1;
}

/* What an operation put into the stream now comes after. Nobody promises that allocating and
 * freeing in the legacy stream keeps other streams' work apart. */
static void clock_of_next(const struct order *order, const struct op *op, uint32_t clock[STREAMS])
{
    unsigned stream = op->stream;
    const struct stream *own = &order->streams[stream];
    memcpy(clock, own->clock, sizeof(own->clock));
    join(clock, order->host);
    if (op->kind == DEVICE_ALLOC || op->kind == DEVICE_FREE)
        return;
    if (own->blocking)
        join(clock, order->streams[own->device ? LEGACY_1 : LEGACY_0].clock);
    if (!is_legacy(stream))
        return;
    for (unsigned s = 0; s < STREAMS; s++)
        if (order->streams[s].live && order->streams[s].blocking &&
            order->streams[s].device == own->device)
            join(clock, order->streams[s].clock);
}

/* --- conflicts --- */

static bool unordered(const struct block *block, bool write, const uint32_t known[STREAMS],
                      struct point *earlier)
{
    if (block->writer.index > known[block->writer.stream]) {
        *earlier = block->writer;
        return true;
    }
    for (unsigned s = 0; write && s < STREAMS; s++)
        if (block->read[s] > known[s]) {
            *earlier = (struct point){(uint8_t)s, block->read[s]};
            return true;
        }
    return false;
}

static bool any_unordered(const struct order *order, uint32_t read, uint32_t write,
                          const uint32_t known[STREAMS], struct point *earlier)
{
    for (unsigned b = 0; b < BLOCKS; b++)
        if ((read | write) & bit(b) && unordered(&order->blocks[b], write & bit(b), known, earlier))
            return true;
    return false;
}

/* Nothing happens until the launch, but two branches of a capture may not touch the same. */
static bool branches_meet(const struct order *order, unsigned stream, const struct touch *touch,
                          struct point *earlier)
{
    const struct capture *capture = &order->capture;
    for (unsigned s = 0; s < STREAMS; s++) {
        if (s == stream || !order->streams[s].capture)
            continue;
        *earlier = (struct point){(uint8_t)s, 0};
        if ((touch->write & (capture->read[s] | capture->write[s])) ||
            (touch->read & capture->write[s]))
            return true;
    }
    return false;
}

bool order_conflict(const struct order *order, const struct op *op, struct point *earlier)
{
    struct touch touch = order_touch_of(order, op);
    uint32_t clock[STREAMS];
    if (order->streams[op->stream].capture && order_is_work(order, op))
        return branches_meet(order, op->stream, &touch, earlier);
    clock_of_next(order, op, clock);
    return any_unordered(order, touch.host_read, touch.host_write, order->host, earlier) ||
           any_unordered(order, touch.read, touch.write, clock, earlier);
}

/* --- waiting --- */

bool order_waits_for(const struct order *order, const struct op *op, struct point point)
{
    uint32_t clock[STREAMS];
    clock_of_next(order, op, clock);
    return order_wait_of(order, op) != WAIT_NONE && clock[point.stream] >= point.index;
}

/* --- what operations do to the order --- */

static void note_access(struct block *block, bool write, unsigned stream, uint32_t index)
{
    if (!write) {
        block->read[stream] = index;
        return;
    }
    block->writer = (struct point){(uint8_t)stream, index};
    memset(block->read, 0, sizeof(block->read));
}

/* The host has waited for all before it touches a block: its access needs no mark. */
static void note_host(struct order *order, const struct touch *touch)
{
    for (unsigned b = 0; b < BLOCKS; b++)
        if (touch->host_write & bit(b)) {
            order->blocks[b].writer = (struct point){0, 0};
            memset(order->blocks[b].read, 0, sizeof(order->blocks[b].read));
        }
}

static void apply_in_capture(struct order *order, const struct op *op)
{
    struct capture *capture = &order->capture;
    struct touch touch = order_touch_of(order, op);
    capture->read[op->stream] |= touch.read;
    capture->write[op->stream] |= touch.write;
}

static void apply_work(struct order *order, const struct op *op)
{
    struct stream *own = &order->streams[op->stream];
    if (own->capture) {
        apply_in_capture(order, op);
        return;
    }
    struct touch touch = order_touch_of(order, op);
    enum wait wait = order_wait_of(order, op);
    if (wait == WAIT_EARLIER)
        join(order->host, own->clock);
    uint32_t clock[STREAMS];
    clock_of_next(order, op, clock);
    clock[op->stream] = ++own->count;
    memcpy(own->clock, clock, sizeof(clock));
    for (unsigned b = 0; b < BLOCKS; b++)
        if ((touch.read | touch.write) & bit(b))
            note_access(&order->blocks[b], touch.write & bit(b), op->stream, own->count);
    if (wait == WAIT_ALL)
        join(order->host, own->clock);
}

static void apply_record(struct order *order, const struct op *op)
{
    struct stream *own = &order->streams[op->stream];
    struct event *event = &order->events[op->event];
    event->recorded = true;
    event->capture = own->capture;
    if (own->capture)
        return;
    own->clock[op->stream] = ++own->count;
    event->mark = (struct point){op->stream, own->count};
    memcpy(event->clock, own->clock, sizeof(event->clock));
}

static void apply_wait(struct order *order, const struct op *op)
{
    const struct event *event = &order->events[op->event];
    struct stream *own = &order->streams[op->stream];
    if (event->capture) {
        own->capture = event->capture; /* drawn into it */
        return;
    }
    join(own->clock, event->clock);
    own->clock[op->stream] = ++own->count; /* the wait itself may be what is not done */
}

static void apply_capture_end(struct order *order, const struct op *op)
{
    struct graph *graph = &order->graphs[op->graph];
    *graph = (struct graph){.live = true, .device = order->streams[op->stream].device};
    for (unsigned s = 0; s < STREAMS; s++) {
        graph->read |= order->capture.read[s];
        graph->write |= order->capture.write[s];
        order->streams[s].capture = 0;
    }
    memset(&order->capture, 0, sizeof(order->capture));
    order->open = false;
}

static void apply_alloc(struct order *order, const struct op *op)
{
    struct block *block = &order->blocks[op->out[0]];
    *block =
        (struct block){.live = true, .kind = op->mode, .device = op->device, .bytes = op->bytes};
    if (op->kind != DEVICE_ALLOC || !order_is_work(order, op))
        return;
    apply_work(order, op);
    block->writer = (struct point){op->stream, order->streams[op->stream].count};
}

/* Graphs that use it may not be launched any more. */
static void forget_in_graphs(struct order *order, unsigned block)
{
    for (unsigned g = 0; g < GRAPHS; g++)
        if ((order->graphs[g].read | order->graphs[g].write) & bit(block))
            order->graphs[g].stale = true;
}

static void apply_free(struct order *order, const struct op *op)
{
    struct block *block = &order->blocks[op->out[0]];
    if (order_is_work(order, op)) {
        apply_work(order, op);
        order->freeing[op->stream] = order->streams[op->stream].count;
    }
    block->live = false;
    forget_in_graphs(order, op->out[0]);
}

static void apply_object(struct order *order, const struct op *op)
{
    struct stream *stream = &order->streams[op->stream];
    uint32_t count = stream->count;
    switch (op->kind) {
    case STREAM_CREATE:
        *stream = (struct stream){
            .live = true, .blocking = op->mode == 0, .device = op->device, .count = count};
        break;
    case STREAM_DESTROY:
        stream->live = false;
        break;
    case EVENT_CREATE:
        order->events[op->event] =
            (struct event){.live = true, .timed = op->mode == 0, .device = op->device};
        break;
    case EVENT_DESTROY:
        order->events[op->event].live = false;
        break;
    case CAPTURE_BEGIN:
        stream->capture = ++order->captures;
        order->open = true;
        order->origin = op->stream;
        break;
    case GRAPH_DESTROY:
        order->graphs[op->graph].live = false;
        break;
    default:
        break;
    }
}

static void apply_host_wait(struct order *order, const struct op *op)
{
    if (op->kind == EVENT_SYNC)
        join(order->host, order->events[op->event].clock);
    else if (op->kind == STREAM_SYNC)
        join(order->host, order->streams[op->stream].clock);
    else
        for (unsigned s = 0; s < STREAMS; s++)
            if (order->streams[s].device == op->device)
                join(order->host, order->streams[s].clock);
}

void order_apply(struct order *order, struct op *op)
{
    struct point earlier;
    order->race = order->race || order_conflict(order, op, &earlier);
    struct touch touch = order_touch_of(order, op);
    note_host(order, &touch);
    op->loose = order_is_loose(order, op);
    op->stream_device = order->streams[op->stream].device;
    switch (op->kind) {
    case STREAM_SYNC:
    case EVENT_SYNC:
    case CONTEXT_SYNC:
        apply_host_wait(order, op);
        break;
    case EVENT_RECORD:
        apply_record(order, op);
        break;
    case EVENT_WAIT:
        apply_wait(order, op);
        break;
    case DEVICE_ALLOC:
    case HOST_ALLOC:
        apply_alloc(order, op);
        break;
    case DEVICE_FREE:
    case HOST_FREE:
        apply_free(order, op);
        break;
    case HOST_REGISTER:
    case HOST_UNREGISTER:
        order->blocks[op->out[0]].kind = op->kind == HOST_REGISTER ? REGISTERED : MAPPED;
        forget_in_graphs(order, op->out[0]);
        break;
    case SHARE:
        order->blocks[op->in[0]].shared = true;
        break;
    case CAPTURE_END:
        apply_capture_end(order, op);
        break;
    case HOLD:
        apply_work(order, op);
        order->held = op->stream;
        order->held_since = order->streams[op->stream].count;
        break;
    case RELEASE:
        order->held = STREAMS;
        break;
    default:
        if (order_is_work(order, op))
            apply_work(order, op);
        else
            apply_object(order, op);
    }
}
