/* generate.c: a random program, without races.
 *
 * An operation that would race with an earlier one is ordered after it first, in one of the ways a
 * program has: an event, a wait of the host, or a blocking pageable copy, after which natively all
 * earlier work of its stream is done. That last way is what this test is about.
 * Thread rule: none. Failure rule: an operation that cannot be ordered is left out.
 */
#include "generate.h"

#include <stdlib.h>
#include <string.h>

#define MOST_REPAIRS 32

uint32_t draw(struct maker *maker, uint32_t below)
{
    maker->random = scramble(maker->random);
    return (uint32_t)((maker->random >> 32) % below);
}

bool chance(struct maker *maker, unsigned percent)
{
    return draw(maker, 100) < percent;
}

/* Around the limits where drivers change their mind, mostly above 64 KiB, seldom large. */
uint32_t draw_bytes(struct maker *maker, uint32_t most)
{
    static const uint32_t special[] = {1,     2,     3,     4,     8,     4096,   16384,
                                       65535, 65536, 65537, 65540, 65600, 131072, 131073};
    uint32_t kind = draw(maker, 100), bytes;
    if (kind < 30)
        bytes = special[draw(maker, sizeof(special) / sizeof(*special))];
    else if (kind < 45)
        bytes = 1 + draw(maker, SMALL_BYTES);
    else if (kind < 98)
        bytes = SMALL_BYTES + 1 + draw(maker, 16384);
    else
        bytes = SMALL_BYTES + 1 + draw(maker, 1 << 20);
    return bytes < most ? bytes : most;
}

unsigned draw_stream(struct maker *maker)
{
    uint32_t kind = draw(maker, 100);
    if (kind < 8)
        return LEGACY_0;
    if (kind < 11)
        return LEGACY_1;
    if (kind < 20)
        return OF_THREAD_0 + draw(maker, THREADS);
    for (int i = 0; i < 32; i++) {
        unsigned stream = FIRST_MADE + draw(maker, STREAMS - FIRST_MADE);
        if (order_stream_lives(maker->order, stream))
            return stream;
    }
    return LEGACY_0;
}

/* BLOCKS when there is none. */
unsigned draw_block(struct maker *maker, bool device)
{
    for (int i = 0; i < 32; i++) {
        unsigned block =
            device ? draw(maker, DEVICE_BLOCKS) : DEVICE_BLOCKS + draw(maker, HOST_BLOCKS);
        if (order_block_lives(maker->order, block))
            return block;
    }
    return BLOCKS;
}

/* Which function: the forms without a stream exist for the default streams only. */
void settle_copy_form(struct maker *maker, struct op *op)
{
    bool legacy = op->stream <= LEGACY_1;
    bool of_thread = !legacy && op->stream < FIRST_MADE;
    op->form = (uint8_t)draw(maker, COPY_FORMS);
    op->sync = (legacy || of_thread) && !maker->tied && chance(maker, maker->quiet ? 15 : 60);
    op->twin = (of_thread && op->sync) || (!legacy && chance(maker, 25));
    if (op->form >= DRIVER_2D && (op->twin || op->bytes < 4 || chance(maker, 50)))
        op->form = (uint8_t)draw(maker, DRIVER_2D), op->twin = op->twin || (of_thread && op->sync);
    if (maker->quiet && op->form >= DRIVER_2D && !chance(maker, 2))
        op->form -= DRIVER_2D; /* a library may not look into these */
}

/* --- ordering --- */

static bool append(struct maker *maker, struct op op)
{
    struct program *program = maker->program;
    if (program->count >= maker->most || !order_is_legal(maker->order, &op))
        return false;
    if (op.stream >= OF_THREAD_0 && op.stream <= OF_THREAD_2)
        op.thread = op.stream - OF_THREAD_0;
    else
        op.thread = maker->thread;
    op.value = draw(maker, UINT32_MAX);
    order_apply(maker->order, &op);
    program->ops[program->count++] = op;
    return true;
}

static bool order_by_event(struct maker *maker, struct point earlier, const struct op *op,
                           bool by_host)
{
    unsigned device = order_stream_device(maker->order, earlier.stream);
    for (int i = 0; i < 24; i++) {
        uint8_t event = (uint8_t)draw(maker, EVENTS);
        if (!order_event_lives(maker->order, event) ||
            order_event_device(maker->order, event) != device)
            continue;
        struct op record = {.kind = EVENT_RECORD, .stream = earlier.stream, .event = event};
        struct op wait = {.kind = EVENT_WAIT, .stream = op->stream, .event = event};
        if (by_host)
            wait = (struct op){.kind = EVENT_SYNC, .event = event};
        return append(maker, record) && append(maker, wait);
    }
    return false;
}

/* Copies to a block that nobody uses just now: all it is for is what it waits for. */
static bool order_by_copy(struct maker *maker, struct point earlier)
{
    for (int i = 0; i < 8; i++) {
        struct op copy = make_upload(maker, earlier.stream);
        struct point other;
        if (copy.kind == UPLOAD_FRESH && copy.bytes > SMALL_BYTES &&
            order_is_legal(maker->order, &copy) && !order_conflict(maker->order, &copy, &other))
            return append(maker, copy);
    }
    return false;
}

static bool order_one(struct maker *maker, struct point earlier, const struct op *op)
{
    struct op all = {.kind = CONTEXT_SYNC,
                     .device = (uint8_t)order_stream_device(maker->order, earlier.stream)};
    struct op sync = {.kind = STREAM_SYNC, .stream = earlier.stream, .form = chance(maker, 40)};
    uint32_t way = draw(maker, 100);
    if (order_stream_captures(maker->order, earlier.stream))
        return false;
    if (maker->tied)
        return order_by_event(maker, earlier, op, false);
    if (order_stream_lives(maker->order, earlier.stream)) {
        if (way < 35 && order_by_event(maker, earlier, op, false))
            return true;
        if (way < 70 && order_by_copy(maker, earlier))
            return true;
        if (way < 80 && order_by_event(maker, earlier, op, true))
            return true;
        if (way < 95)
            return append(maker, sync);
    }
    return append(maker, all);
}

bool emit(struct maker *maker, struct op op)
{
    struct point earlier;
    if (!order_is_legal(maker->order, &op))
        return false;
    for (int i = 0; order_conflict(maker->order, &op, &earlier); i++)
        if (i == MOST_REPAIRS || !order_one(maker, earlier, &op))
            return false;
    return append(maker, op);
}

/* --- the whole --- */

/* Some of each at the start. */
static void begin(struct maker *maker)
{
    for (unsigned s = FIRST_MADE; s < FIRST_MADE + 5; s++)
        emit(maker, (struct op){.kind = STREAM_CREATE,
                                .stream = (uint8_t)s,
                                .mode = s % 3 != 0,
                                .device = s == FIRST_MADE + 4});
    for (unsigned e = 0; e < EVENTS; e++)
        emit(maker, (struct op){.kind = EVENT_CREATE,
                                .event = (uint8_t)e,
                                .device = e >= 6,
                                .mode = chance(maker, 30)});
    for (unsigned block = 0; block < BLOCKS; block++)
        if (chance(maker, 90))
            make_block(maker, block);
}

/* An operation that needs no ordering is taken more often: else nothing would overlap. */
static struct op choose_work(struct maker *maker)
{
    struct op op = maker->quiet ? make_quiet_work(maker) : make_work(maker);
    struct point earlier;
    for (int i = 0; i < 4; i++) {
        if (order_is_legal(maker->order, &op) &&
            (!order_conflict(maker->order, &op, &earlier) || chance(maker, 20)))
            break;
        op = maker->quiet ? make_quiet_work(maker) : make_work(maker);
    }
    return op;
}

static void step(struct maker *maker)
{
    uint32_t kind = draw(maker, 1000);
    if (chance(maker, 6))
        maker->thread = (uint8_t)draw(maker, THREADS);
    if (kind < 25)
        renew_block(maker);
    else if (kind < 40)
        renew_stream(maker);
    else if (kind < 50)
        renew_event(maker);
    else if (kind < 62)
        make_capture(maker);
    else if (kind < (maker->quiet ? 63 : 68))
        make_hold(maker);
    else if (maker->quiet && kind < 400)
        make_blocking_copy(maker);
    else {
        struct op op = choose_work(maker);
        bool large = op.kind == UPLOAD_FRESH && op.bytes > SMALL_BYTES;
        bool done = emit(maker, op);
        if (done && large && chance(maker, 50))
            make_witness(maker, op);
        else if (done && op.kind == HOST_CALL && chance(maker, 50))
            make_chain(maker, op);
    }
}

void program_generate(struct program *program, uint64_t seed, uint32_t count)
{
    struct maker maker = {.program = program,
                          .order = order_new(),
                          .random = scramble(seed ^ 0x6f7261636c65u),
                          .quiet = scramble(seed ^ 0x7175696574u) & 1,
                          .most = count < OPS_MOST ? count : OPS_MOST};
    program->seed = seed;
    program->count = 0;
    begin(&maker);
    while (program->count < maker.most)
        step(&maker);
    free(maker.order);
}
