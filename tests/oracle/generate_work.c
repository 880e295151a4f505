/* generate_work.c: one operation of a random kind, on random streams and memories.
 *
 * Thread rule: none. Failure rule: NOTHING where what it needs does not exist.
 */
#include "generate.h"

/* NOTHING; what the generator leaves out. */
static const struct op nothing = {.kind = NOTHING};

static void place(struct maker *maker, struct op *op, unsigned device, unsigned host)
{
    uint32_t room = order_bytes(maker->order, device);
    if (host < BLOCKS && order_bytes(maker->order, host) < room)
        room = order_bytes(maker->order, host);
    op->bytes = draw_bytes(maker, room);
    op->offset = draw(maker, order_bytes(maker->order, device) - op->bytes + 1);
    if (chance(maker, 60))
        op->offset = 0;
    if (host < BLOCKS && chance(maker, 50))
        op->host_offset = draw(maker, order_bytes(maker->order, host) - op->bytes + 1);
}

struct op make_upload(struct maker *maker, unsigned stream)
{
    unsigned block = draw_block(maker, true);
    if (block == BLOCKS)
        return nothing;
    struct op op = {.kind = UPLOAD_FRESH, .stream = (uint8_t)stream, .out_count = 1};
    op.out[0] = (uint8_t)block;
    op.mode = (uint8_t)draw(maker, chance(maker, 60) ? UNMAPPED : SOURCE_ENDS);
    place(maker, &op, block, BLOCKS);
    settle_copy_form(maker, &op);
    return op;
}

static struct op make_host_copy(struct maker *maker, bool up)
{
    unsigned block = draw_block(maker, true), host = draw_block(maker, false);
    if (block == BLOCKS || host == BLOCKS)
        return nothing;
    struct op op = {.kind = up ? UPLOAD : DOWNLOAD,
                    .stream = (uint8_t)draw_stream(maker),
                    .in_count = 1,
                    .out_count = 1};
    op.in[0] = (uint8_t)(up ? host : block);
    op.out[0] = (uint8_t)(up ? block : host);
    place(maker, &op, block, host);
    settle_copy_form(maker, &op);
    return op;
}

static struct op make_download(struct maker *maker)
{
    unsigned block = draw_block(maker, true);
    if (block == BLOCKS)
        return nothing;
    struct op op = {.kind = DOWNLOAD_FRESH, .stream = (uint8_t)draw_stream(maker), .in_count = 1};
    op.in[0] = (uint8_t)block;
    place(maker, &op, block, BLOCKS);
    settle_copy_form(maker, &op);
    return op;
}

static struct op make_device_copy(struct maker *maker)
{
    unsigned to = draw_block(maker, true), from = draw_block(maker, true);
    if (to == BLOCKS || from == BLOCKS)
        return nothing;
    struct op op = {
        .kind = DEVICE_COPY, .stream = (uint8_t)draw_stream(maker), .in_count = 1, .out_count = 1};
    op.in[0] = (uint8_t)from;
    op.out[0] = (uint8_t)to;
    op.mode = chance(maker, 25); /* the peer functions */
    place(maker, &op, to, from);
    settle_copy_form(maker, &op);
    return op;
}

struct op make_fill(struct maker *maker, unsigned block)
{
    struct op op = {.kind = DEVICE_FILL, .stream = (uint8_t)draw_stream(maker), .out_count = 1};
    if (block == BLOCKS)
        return nothing;
    op.out[0] = (uint8_t)block;
    op.bytes = order_bytes(maker->order, block);
    op.mode = (uint8_t)draw(maker, 3);
    op.sync = op.stream == LEGACY_0 && !maker->tied && chance(maker, 30);
    return op;
}

/* Mostly on the device's memory, sometimes on page-locked memory. */
struct op make_kernel(struct maker *maker)
{
    struct op op = {.kind = KERNEL, .stream = (uint8_t)draw_stream(maker)};
    unsigned in = 1 + draw(maker, 3), out = 1 + draw(maker, 2);
    for (unsigned i = 0; i < in + out; i++) {
        unsigned block = draw_block(maker, !chance(maker, 8));
        if (block == BLOCKS ||
            (!is_device_block(block) && is_pageable(order_memory(maker->order, block))))
            continue;
        if (i < in)
            op.in[op.in_count++] = (uint8_t)block;
        else if (op.out_count == 0 || op.out[0] != block)
            op.out[op.out_count++] = (uint8_t)block;
    }
    op.form = chance(maker, 30);
    return op.out_count ? op : nothing;
}

static struct op make_host_call(struct maker *maker)
{
    unsigned from = draw_block(maker, false), to = draw_block(maker, false);
    if (from == BLOCKS)
        return nothing;
    struct op op = {.kind = HOST_CALL,
                    .stream = (uint8_t)draw_stream(maker),
                    .form = (uint8_t)draw(maker, 3),
                    .in_count = 1,
                    .out_count = 1};
    op.in[0] = (uint8_t)from;
    op.out[0] = (uint8_t)to;
    return op;
}

static struct op make_host_access(struct maker *maker, bool write)
{
    unsigned block = draw_block(maker, false);
    struct op op = {.kind = write ? HOST_FILL : HOST_READ};
    if (block == BLOCKS)
        return nothing;
    op.in[0] = op.out[0] = (uint8_t)block;
    op.out_count = write;
    op.in_count = !write;
    return op;
}

static struct op make_write_value(struct maker *maker)
{
    unsigned block = draw_block(maker, false);
    struct op op = {.kind = WRITE_VALUE, .stream = (uint8_t)draw_stream(maker), .out_count = 1};
    if (block == BLOCKS || order_bytes(maker->order, block) < 8)
        return nothing;
    op.out[0] = (uint8_t)block;
    op.host_offset = draw(maker, order_bytes(maker->order, block) / 8) * 8;
    return op;
}

static struct op make_event_op(struct maker *maker)
{
    static const uint8_t kinds[] = {EVENT_RECORD, EVENT_RECORD, EVENT_RECORD,  EVENT_WAIT,
                                    EVENT_QUERY,  EVENT_QUERY,  EVENT_ELAPSED, EVENT_SYNC};
    struct op op = {.kind = kinds[draw(maker, sizeof(kinds))],
                    .stream = (uint8_t)draw_stream(maker),
                    .event = (uint8_t)draw(maker, EVENTS),
                    .event2 = (uint8_t)draw(maker, EVENTS)};
    op.form = chance(maker, 40);
    return op;
}

static struct op make_question(struct maker *maker)
{
    uint32_t kind = draw(maker, 100);
    struct op op = {.kind = STREAM_QUERY, .stream = (uint8_t)draw_stream(maker)};
    unsigned block = draw_block(maker, chance(maker, 60));
    op.form = chance(maker, 40);
    op.device = chance(maker, 15);
    if (kind < 30)
        return op;
    op.stream = 0;
    if (kind < 45) {
        op.kind = MEMORY_INFO;
        return op;
    }
    op.in[0] = (uint8_t)block;
    op.in_count = 1;
    op.kind = chance(maker, 60) ? PEEK : SHARE;
    op.mode = chance(maker, 20);
    if (kind < 60 && block < DEVICE_BLOCKS)
        return op;
    op.kind = POINTER_INFO;
    op.mode = 0;
    if (kind < 80 || block >= DEVICE_BLOCKS)
        return block == BLOCKS ? nothing : op;
    for (int i = 0; i < 16 && order_bytes(maker->order, op.in[0]) < 300000; i++)
        if ((block = draw_block(maker, true)) < BLOCKS)
            op.in[0] = (uint8_t)block;
    op.kind = WRONG;
    op.mode = (uint8_t)draw(maker, WRONG_CALLS);
    op.bytes = 70000 + draw(maker, 70000);
    return op;
}

static struct op make_wait(struct maker *maker)
{
    struct op op = {.kind = chance(maker, 80) ? STREAM_SYNC : CONTEXT_SYNC,
                    .stream = (uint8_t)draw_stream(maker)};
    op.device = op.kind == CONTEXT_SYNC && chance(maker, 20);
    op.form = chance(maker, 40);
    return op;
}

static struct op make_launch(struct maker *maker)
{
    return (struct op){.kind = chance(maker, 95) ? GRAPH_LAUNCH : GRAPH_DESTROY,
                       .stream = (uint8_t)draw_stream(maker),
                       .graph = (uint8_t)draw(maker, GRAPHS)};
}

struct op make_work(struct maker *maker)
{
    uint32_t kind = draw(maker, 100);
    if (kind < 24)
        return make_upload(maker, draw_stream(maker));
    if (kind < 34)
        return make_host_copy(maker, true);
    if (kind < 42)
        return make_host_copy(maker, false);
    if (kind < 46)
        return make_download(maker);
    if (kind < 52)
        return make_device_copy(maker);
    if (kind < 57)
        return make_fill(maker, draw_block(maker, true));
    if (kind < 69)
        return make_kernel(maker);
    if (kind < 73)
        return make_host_call(maker);
    if (kind < 77)
        return make_host_access(maker, true);
    if (kind < 80)
        return make_host_access(maker, false);
    if (kind < 82)
        return make_write_value(maker);
    if (kind < 90)
        return make_event_op(maker);
    if (kind < 94)
        return make_question(maker);
    return kind < 96 ? make_wait(maker) : make_launch(maker);
}
