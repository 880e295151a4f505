/* order_rules.c: which operations mean something where they stand, and which answers are the same
 * in every run; what the generator asks of the order.
 *
 * While a host function waits for the host (HOLD), nothing may wait for it; while a stream
 * captures, only what no capture forbids is called (CUDA Programming Guide, "Prohibited and
 * unhandled operations"). Thread rule: none. Failure rule: what is doubtful is not legal; its
 * answers are loose.
 */
#include "order.h"

#include <string.h>

static bool known(const struct order *order, const uint32_t clock[STREAMS])
{
    for (unsigned s = 0; s < STREAMS; s++)
        if (clock[s] > order->host[s])
            return false;
    return true;
}

static bool stream_known(const struct order *order, unsigned stream)
{
    const struct stream *own = &order->streams[stream];
    if (!known(order, own->clock))
        return false;
    if (stream != LEGACY_0 && stream != LEGACY_1)
        return true;
    for (unsigned s = 0; s < STREAMS; s++)
        if (order->streams[s].blocking && order->streams[s].device == own->device &&
            !known(order, order->streams[s].clock))
            return false;
    return true;
}

static bool all_known(const struct order *order)
{
    for (unsigned s = 0; s < STREAMS; s++)
        if (!known(order, order->streams[s].clock))
            return false;
    return true;
}

/* --- answers --- */

static bool event_known(const struct order *order, const struct event *event)
{
    return !event->recorded || order->host[event->mark.stream] >= event->mark.index;
}

static bool is_held(const struct order *order, const uint32_t clock[STREAMS])
{
    return order->held < STREAMS && clock[order->held] >= order->held_since;
}

bool order_is_loose(const struct order *order, const struct op *op)
{
    const struct event *event = &order->events[op->event], *event2 = &order->events[op->event2];
    switch (op->kind) {
    case STREAM_QUERY:
        return !stream_known(order, op->stream) &&
               !is_held(order, order->streams[op->stream].clock);
    case EVENT_QUERY:
        return !event_known(order, event) && !is_held(order, event->clock);
    case EVENT_ELAPSED:
        return !event_known(order, event) || !event_known(order, event2);
    case MEMORY_INFO:
        for (unsigned s = 0; s < STREAMS; s++)
            if (order->freeing[s] > order->host[s])
                return true;
        return false;
    default:
        return false;
    }
}

/* --- legality --- */

static bool blocks_live(const struct order *order, const struct op *op)
{
    for (unsigned i = 0; i < op->in_count; i++)
        if (!order->blocks[op->in[i]].live)
            return false;
    bool made = op->kind == DEVICE_ALLOC || op->kind == HOST_ALLOC;
    for (unsigned i = 0; i < op->out_count; i++)
        if (order->blocks[op->out[i]].live == made)
            return false;
    return true;
}

static bool fits(const struct order *order, const struct op *op)
{
    uint64_t end = (uint64_t)op->offset + op->bytes;
    uint64_t host_end = (uint64_t)op->host_offset + op->bytes;
    switch (op->kind) {
    case UPLOAD_FRESH:
    case DEVICE_FILL:
        return end <= order->blocks[op->out[0]].bytes;
    case DOWNLOAD_FRESH:
        return end <= order->blocks[op->in[0]].bytes;
    case UPLOAD:
        return end <= order->blocks[op->out[0]].bytes && host_end <= order->blocks[op->in[0]].bytes;
    case DOWNLOAD:
        return end <= order->blocks[op->in[0]].bytes && host_end <= order->blocks[op->out[0]].bytes;
    case DEVICE_COPY: /* host_offset is the source's */
        return end <= order->blocks[op->out[0]].bytes &&
               host_end <= order->blocks[op->in[0]].bytes && op->in[0] != op->out[0];
    default:
        return true;
    }
}

static bool event_legal(const struct order *order, const struct op *op)
{
    const struct event *event = &order->events[op->event];
    const struct stream *stream = &order->streams[op->stream];
    switch (op->kind) {
    case EVENT_CREATE:
        return !event->live;
    case EVENT_DESTROY:
        return event->live && event->capture == 0;
    case EVENT_RECORD:
        return event->live && stream->live && event->device == stream->device;
    case EVENT_WAIT:
        if (!event->live || !stream->live)
            return false;
        if (!event->capture)
            return !stream->capture;
        return event->capture == order->captures && order->open && op->stream > LEGACY_1 &&
               stream->device == event->device &&
               (!stream->capture || stream->capture == event->capture);
    case EVENT_ELAPSED:
        return event->live && !event->capture && order->events[op->event2].live &&
               !order->events[op->event2].capture;
    default:
        return event->live && !event->capture;
    }
}

static bool memory_legal(const struct order *order, const struct op *op)
{
    enum host_memory kind = op->out_count ? (enum host_memory)order->blocks[op->out[0]].kind : 0;
    switch (op->kind) {
    case HOST_REGISTER:
        return kind == MAPPED;
    case HOST_UNREGISTER:
        return kind == REGISTERED;
    case WRITE_VALUE:
        return !is_device_block(op->out[0]) && !is_pageable(kind);
    case SHARE: /* only what cuMemAlloc gives can be exported */
        return order->blocks[op->in[0]].kind <= PLAIN_RUNTIME;
    case PEEK:
        return order->blocks[op->in[0]].shared;
    case WRONG: /* what lies behind a mapping may be another one */
        return op->mode != TOO_LONG || order->blocks[op->in[0]].kind != VIRTUAL;
    case DEVICE_FREE:
        return op->sync || kind == (int)POOL || kind == (int)POOL_RUNTIME;
    default:
        return true;
    }
}

static bool object_legal(const struct order *order, const struct op *op)
{
    const struct stream *stream = &order->streams[op->stream];
    const struct graph *graph = &order->graphs[op->graph];
    switch (op->kind) {
    case STREAM_CREATE:
        return order_stream_can_be_made(order, op->stream);
    case STREAM_DESTROY:
        return op->stream >= FIRST_MADE && stream->live;
    case CAPTURE_BEGIN:
        return stream->live && op->stream > LEGACY_1 && !order->open && order->held == STREAMS;
    case CAPTURE_END:
        return order->open && op->stream == order->origin && !graph->live;
    case GRAPH_LAUNCH:
        return stream->live && graph->live && !graph->stale && graph->device == stream->device;
    case GRAPH_DESTROY:
        return graph->live;
    case HOLD:
        return stream->live && op->stream >= FIRST_MADE && !stream->blocking &&
               order->held == STREAMS && !order->open && all_known(order);
    case RELEASE:
        return order->held < STREAMS;
    default:
        return stream->live;
    }
}

static bool is_plain_work(const struct order *order, const struct op *op)
{
    switch (op->kind) {
    case UPLOAD:
    case DOWNLOAD:
        return !op->sync && (op->kind == UPLOAD ||
                             !is_pageable((enum host_memory)order->blocks[op->out[0]].kind));
    case UPLOAD_FRESH:
    case DEVICE_COPY:
    case DEVICE_FILL:
        return !op->sync;
    case KERNEL:
    case EVENT_RECORD:
    case EVENT_WAIT:
        return true;
    default:
        return false;
    }
}

static bool legal_in_capture(const struct order *order, const struct op *op)
{
    const struct stream *stream = &order->streams[op->stream];
    if (op->kind == CAPTURE_END)
        return true;
    if (stream->capture && op->kind == HOST_CALL)
        return op->form == 0;
    if (!is_plain_work(order, op) || (stream->capture && op->kind == UPLOAD_FRESH))
        return false;
    if (stream->capture || (op->kind == EVENT_WAIT && order->events[op->event].capture))
        return true;
    return op->stream >= FIRST_MADE && !stream->blocking;
}

static bool legal_in_hold(const struct order *order, const struct op *op)
{
    struct point held = {(uint8_t)order->held, order->held_since};
    if (op->kind == RELEASE || op->kind == STREAM_QUERY || op->kind == EVENT_QUERY)
        return op->stream >= FIRST_MADE || op->kind == RELEASE;
    return is_plain_work(order, op) && op->stream >= FIRST_MADE &&
           !order->streams[op->stream].blocking && !order_waits_for(order, op, held);
}

bool order_is_legal(const struct order *order, const struct op *op)
{
    if (op->kind == NOTHING || !blocks_live(order, op))
        return false;
    if (order->open && !legal_in_capture(order, op))
        return false;
    if (order->held < STREAMS && !legal_in_hold(order, op))
        return false;
    switch (op->kind) {
    case EVENT_CREATE:
    case EVENT_DESTROY:
    case EVENT_RECORD:
    case EVENT_WAIT:
    case EVENT_SYNC:
    case EVENT_QUERY:
    case EVENT_ELAPSED:
        return event_legal(order, op);
    default:
        return object_legal(order, op) && memory_legal(order, op) && fits(order, op);
    }
}

/* --- what the generator asks --- */

bool order_block_lives(const struct order *order, unsigned block)
{
    return order->blocks[block].live;
}

bool order_stream_lives(const struct order *order, unsigned stream)
{
    return order->streams[stream].live;
}

/* A destroyed one's place is taken again when its work is known to be done. */
bool order_stream_can_be_made(const struct order *order, unsigned stream)
{
    const struct stream *own = &order->streams[stream];
    return stream >= FIRST_MADE && !own->live && known(order, own->clock);
}

bool order_stream_captures(const struct order *order, unsigned stream)
{
    return order->streams[stream].capture != 0;
}

bool order_stream_blocks(const struct order *order, unsigned stream)
{
    return order->streams[stream].blocking;
}

bool order_event_lives(const struct order *order, unsigned event)
{
    return order->events[event].live;
}

bool order_graph_lives(const struct order *order, unsigned graph)
{
    return order->graphs[graph].live;
}

unsigned order_stream_device(const struct order *order, unsigned stream)
{
    return order->streams[stream].device;
}

unsigned order_event_device(const struct order *order, unsigned event)
{
    return order->events[event].device;
}

uint32_t order_bytes(const struct order *order, unsigned block)
{
    return order->blocks[block].bytes;
}

unsigned order_memory(const struct order *order, unsigned block)
{
    return order->blocks[block].kind;
}

bool order_is_shared(const struct order *order, unsigned block)
{
    return order->blocks[block].shared;
}

bool order_has_race(const struct order *order)
{
    return order->race;
}
