/* generate_quiet.c: programs in which the host has little to notice, and what shows in them that a
 * copy, or the wait behind it, was not waited for.
 *
 * A copy to the host, a host function or a stream memory operation that is outstanding makes every
 * copy wait, as natively. Half of the programs have hardly any: in those a library may act.
 * Thread rule: none. Failure rule: what does not fit is left out.
 */
#include "generate.h"

static const struct op nothing = {.kind = NOTHING};

/* May the host notice when it is done, other than by asking? */
static bool is_noticed(const struct maker *maker, const struct op *op)
{
    switch (op->kind) {
    case HOST_CALL:
    case WRITE_VALUE:
        return true;
    case DOWNLOAD:
        return !is_pageable(order_memory(maker->order, op->out[0]));
    case KERNEL:
        for (unsigned i = 0; i < op->out_count; i++)
            if (!is_device_block(op->out[i]))
                return true;
        return false;
    default:
        return false;
    }
}

struct op make_quiet_work(struct maker *maker)
{
    struct op op = make_work(maker);
    for (int i = 0; i < 16 && is_noticed(maker, &op) && !chance(maker, 2); i++)
        op = make_work(maker);
    return is_noticed(maker, &op) && !chance(maker, 2) ? nothing : op;
}

/* An asynchronous copy by a function that has no pitch. */
static struct op make_plain_upload(struct maker *maker)
{
    struct op op = make_upload(maker, draw_stream(maker));
    if (op.kind == NOTHING)
        return op;
    op.sync = false;
    op.form = (uint8_t)draw(maker, DRIVER_2D);
    op.twin = op.stream > LEGACY_1 && chance(maker, 15);
    return op;
}

/* --- what would notice --- */

static void notice_by_question(struct maker *maker, const struct op *copy, unsigned event)
{
    struct op query = {.kind = STREAM_QUERY, .stream = copy->stream, .form = chance(maker, 40)};
    struct op ask = {.kind = EVENT_QUERY, .event = (uint8_t)event, .form = chance(maker, 40)};
    struct op elapsed = {
        .kind = EVENT_ELAPSED, .event = (uint8_t)event, .event2 = (uint8_t)draw(maker, EVENTS)};
    emit(maker, chance(maker, 40) ? ask : chance(maker, 50) ? elapsed : query);
}

static void notice_on_stream(struct maker *maker, const struct op *copy)
{
    struct op read = {.kind = DOWNLOAD_FRESH, .in_count = 1, .bytes = copy->bytes};
    struct op kernel = {.kind = KERNEL, .in_count = 1, .out_count = 1};
    read.stream = kernel.stream = (uint8_t)draw_stream(maker);
    read.in[0] = kernel.in[0] = copy->out[0];
    read.offset = copy->offset;
    kernel.out[0] = (uint8_t)draw_block(maker, true);
    settle_copy_form(maker, &read);
    if (chance(maker, 40))
        emit(maker, read);
    else if (kernel.out[0] != BLOCKS)
        emit(maker, kernel);
}

static void notice_in_memory(struct maker *maker, const struct op *copy)
{
    struct op share = {.kind = SHARE, .in_count = 1, .mode = chance(maker, 15)};
    struct op peek = {.kind = PEEK, .in_count = 1};
    share.in[0] = peek.in[0] = copy->out[0];
    if (chance(maker, 25) && (order_is_shared(maker->order, copy->out[0]) || emit(maker, share)))
        emit(maker, peek);
    else if (chance(maker, 30))
        emit(maker, (struct op){.kind = MEMORY_INFO, .device = chance(maker, 30)});
    else
        give_block_back(maker, copy->out[0]);
}

static void notice(struct maker *maker, const struct op *copy, unsigned event)
{
    uint32_t way = draw(maker, 100);
    if (way < 30)
        notice_by_question(maker, copy, event);
    else if (way < 50)
        notice_on_stream(maker, copy);
    else if (way < 65)
        notice_in_memory(maker, copy);
    else if (way < 68)
        make_capture(maker);
    else if (way < 74)
        emit(maker, (struct op){.kind = GRAPH_LAUNCH,
                                .stream = (uint8_t)draw_stream(maker),
                                .graph = (uint8_t)draw(maker, GRAPHS)});
    else
        make_witness(maker, *copy);
}

/* Work, an event, more work, the copy, often the wait that PyTorch puts behind it; and somebody who
 * knows what that means. */
void make_blocking_copy(struct maker *maker)
{
    struct op copy = make_plain_upload(maker);
    uint8_t event = (uint8_t)draw(maker, EVENTS);
    struct op record = {.kind = EVENT_RECORD, .stream = copy.stream, .event = event};
    if (copy.kind == NOTHING)
        return;
    for (unsigned i = draw(maker, 3); i > 0; i--) {
        struct op kernel = make_kernel(maker);
        kernel.stream = copy.stream;
        if (kernel.kind == KERNEL && !is_noticed(maker, &kernel))
            emit(maker, kernel);
    }
    if (chance(maker, 50))
        emit(maker, record);
    if (!emit(maker, copy))
        return;
    if (chance(maker, 50))
        emit(maker,
             (struct op){.kind = STREAM_SYNC, .stream = copy.stream, .form = copy.form >= RUNTIME});
    for (unsigned i = draw(maker, 3); i > 0; i--)
        notice(maker, &copy, event);
}
