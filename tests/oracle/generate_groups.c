/* generate_groups.c: groups of operations that belong together: captures, a stream held by a host
 * function, what shows that a copy has waited, the renewal of memories and handles.
 *
 * Thread rule: none. Failure rule: what does not fit is left out of the group.
 */
#include "generate.h"

/* The fork and the join of a second stream in a capture. */
static void emit_branch(struct maker *maker, unsigned origin, unsigned branch, unsigned event)
{
    if (!emit(maker, (struct op){
                         .kind = EVENT_RECORD, .stream = (uint8_t)origin, .event = (uint8_t)event}))
        return;
    if (!emit(maker,
              (struct op){.kind = EVENT_WAIT, .stream = (uint8_t)branch, .event = (uint8_t)event}))
        return;
    for (unsigned i = draw(maker, 4); i > 0; i--) {
        struct op op = make_work(maker);
        op.stream = (uint8_t)branch;
        op.sync = false;
        emit(maker, op);
    }
    emit(maker,
         (struct op){.kind = EVENT_RECORD, .stream = (uint8_t)branch, .event = (uint8_t)event});
    emit(maker,
         (struct op){.kind = EVENT_WAIT, .stream = (uint8_t)origin, .event = (uint8_t)event});
}

/* Work for the graph, and now and then a copy elsewhere that must stay out of it. */
static void emit_captured(struct maker *maker, unsigned origin)
{
    struct op op = make_work(maker);
    if (chance(maker, 25)) {
        uint8_t thread = maker->thread;
        maker->thread = (uint8_t)draw(maker, THREADS);
        op = make_upload(maker, draw_stream(maker));
        op.twin = false;
        if (op.stream != origin)
            emit(maker, op);
        maker->thread = thread;
        return;
    }
    op.stream = (uint8_t)origin;
    op.sync = false;
    if (op.form >= DRIVER_2D || op.kind == HOST_CALL)
        op.form = 0;
    emit(maker, op);
}

void make_capture(struct maker *maker)
{
    unsigned origin = draw_stream(maker), branch = draw_stream(maker), event = draw(maker, EVENTS);
    struct op start = {
        .kind = CAPTURE_BEGIN, .stream = (uint8_t)origin, .mode = (uint8_t)draw(maker, 3)};
    struct op end = {
        .kind = CAPTURE_END, .stream = (uint8_t)origin, .graph = (uint8_t)draw(maker, GRAPHS)};
    if (order_graph_lives(maker->order, end.graph))
        emit(maker, (struct op){.kind = GRAPH_DESTROY, .graph = end.graph});
    if (maker->program->count + 40 > maker->most || !emit(maker, start))
        return;
    uint32_t begin = maker->program->count - 1;
    maker->tied = true;
    for (unsigned i = 1 + draw(maker, 6); i > 0; i--)
        emit_captured(maker, origin);
    if (branch >= FIRST_MADE && branch != origin && chance(maker, 40) &&
        order_stream_device(maker->order, branch) == order_stream_device(maker->order, origin) &&
        order_event_device(maker->order, event) == order_stream_device(maker->order, origin))
        emit_branch(maker, origin, branch, event);
    maker->tied = false;
    end.partner = begin;
    maker->program->ops[begin].partner = maker->program->count;
    if (!emit(maker, end))
        give_up("program %lu: a capture without an end", (unsigned long)maker->program->seed);
    for (unsigned i = 1 + draw(maker, 2); i > 0; i--)
        emit(maker, (struct op){.kind = GRAPH_LAUNCH,
                                .stream = (uint8_t)draw_stream(maker),
                                .graph = end.graph});
}

/* A host function waits for something that the host does later (A6: nothing may wait for it that
 * did not natively). */
void make_hold(struct maker *maker)
{
    unsigned held = draw_stream(maker);
    if (held < FIRST_MADE || order_stream_blocks(maker->order, held) ||
        maker->program->count + 60 > maker->most)
        return;
    emit(maker, (struct op){.kind = CONTEXT_SYNC});
    emit(maker, (struct op){.kind = CONTEXT_SYNC, .device = 1});
    if (!emit(maker, (struct op){.kind = HOLD, .stream = (uint8_t)held, .form = chance(maker, 40)}))
        return;
    uint32_t begin = maker->program->count - 1;
    maker->tied = true;
    for (unsigned i = 2 + draw(maker, 14); i > 0; i--) {
        struct op op = make_work(maker);
        if (chance(maker, 60)) {
            op = make_upload(maker, chance(maker, 60) ? held : draw_stream(maker));
            if (op.stream == held && op.bytes > SMALL_BYTES)
                op.bytes = 1 + draw(maker, SMALL_BYTES);
        }
        emit(maker, op);
    }
    maker->tied = false;
    struct op release = {.kind = RELEASE, .partner = begin};
    maker->program->ops[begin].partner = maker->program->count;
    if (!emit(maker, release))
        give_up("program %lu: a hold without an end", (unsigned long)maker->program->seed);
}

/* What a program may do right after a blocking copy without another wait. */
void make_witness(struct maker *maker, struct op copy)
{
    struct point earlier;
    unsigned other = draw_stream(maker);
    if (chance(maker, 30)) {
        emit(maker,
             (struct op){.kind = STREAM_QUERY, .stream = copy.stream, .form = chance(maker, 40)});
        return;
    }
    if (order_is_shared(maker->order, copy.out[0]) && chance(maker, 60)) {
        struct op peek = {.kind = PEEK, .in = {copy.out[0]}, .in_count = 1};
        emit(maker, peek);
        return;
    }
    if (chance(maker, 20)) {
        emit(maker, (struct op){.kind = EVENT_QUERY, .event = (uint8_t)draw(maker, EVENTS)});
        return;
    }
    if (chance(maker, 30)) {
        for (int i = 0; i < 8; i++) { /* host memory that the stream's work has written */
            struct op read = {.kind = HOST_READ, .in_count = 1};
            read.in[0] = (uint8_t)draw_block(maker, false);
            if (read.in[0] < BLOCKS && !order_conflict(maker->order, &read, &earlier)) {
                emit(maker, read);
                return;
            }
        }
    }
    struct op read = {.kind = DEVICE_COPY, .stream = (uint8_t)other, .in_count = 1, .out_count = 1};
    read.in[0] = copy.out[0];
    read.host_offset = copy.offset;
    for (int i = 0; i < 8; i++) {
        read.out[0] = (uint8_t)draw_block(maker, true);
        if (read.out[0] == BLOCKS)
            return;
        uint32_t room = order_bytes(maker->order, read.out[0]);
        read.bytes = copy.bytes < room ? copy.bytes : room;
        if (order_is_legal(maker->order, &read) && !order_conflict(maker->order, &read, &earlier)) {
            emit(maker, read);
            return;
        }
    }
}

/* What a host function wrote is sent by a stream that comes after it. */
void make_chain(struct maker *maker, struct op call)
{
    unsigned to = draw_block(maker, true);
    uint32_t bytes = order_bytes(maker->order, call.out[0]);
    if (to == BLOCKS || order_bytes(maker->order, to) < bytes)
        return;
    struct op copy = {
        .kind = UPLOAD, .stream = call.stream, .bytes = bytes, .in_count = 1, .out_count = 1};
    copy.in[0] = call.out[0];
    copy.out[0] = (uint8_t)to;
    if (!order_stream_blocks(maker->order, call.stream) && chance(maker, 40))
        copy.stream = (uint8_t)draw_stream(maker);
    else if (order_stream_blocks(maker->order, call.stream) && chance(maker, 40))
        copy.stream = (uint8_t)order_stream_device(maker->order, call.stream); /* legacy */
    settle_copy_form(maker, &copy);
    emit(maker, copy);
}

/* --- renewal --- */

static void renew_device_block(struct maker *maker, unsigned block)
{
    static const uint32_t sizes[] = {4096, 66000, 70000, 80000, 80000, 100000, 132000};
    struct op op = {.kind = DEVICE_ALLOC, .stream = (uint8_t)draw_stream(maker), .out_count = 1};
    uint32_t kind = draw(maker, 100);
    op.mode = kind < 45 ? PLAIN : kind < 60 ? PLAIN_RUNTIME : kind < 80 ? POOL : POOL_RUNTIME;
    op.bytes = sizes[draw(maker, sizeof(sizes) / sizeof(*sizes))];
    if (chance(maker, 4))
        op.bytes = chance(maker, 80) ? 300000 : 1200000; /* more than one piece of a ring */
    if (kind == 99 && chance(maker, 50)) {
        op.mode = VIRTUAL;
        op.bytes = 2 << 20;
    }
    op.out[0] = (uint8_t)block;
    op.device = (uint8_t)order_stream_device(maker->order, op.stream);
    if (emit(maker, op))
        emit(maker, make_fill(maker, block));
}

static void free_device_block(struct maker *maker, unsigned block)
{
    unsigned memory = order_memory(maker->order, block);
    struct op op = {.kind = DEVICE_FREE, .stream = (uint8_t)draw_stream(maker), .out_count = 1};
    op.out[0] = (uint8_t)block;
    op.sync = (memory != POOL && memory != POOL_RUNTIME) || chance(maker, 20);
    op.form = chance(maker, 40);
    emit(maker, op);
}

static void renew_host_block(struct maker *maker, unsigned block)
{
    static const uint32_t sizes[] = {512, 4096, 65536, 65537, 70000, 100000, 140001};
    struct op op = {
        .kind = HOST_ALLOC, .mode = (uint8_t)draw(maker, HOST_MEMORIES), .out_count = 1};
    op.bytes = sizes[draw(maker, sizeof(sizes) / sizeof(*sizes))];
    op.out[0] = (uint8_t)block;
    emit(maker, op);
}

static void change_host_block(struct maker *maker, unsigned block)
{
    struct op op = {.kind = HOST_FREE, .out_count = 1};
    op.out[0] = (uint8_t)block;
    op.form = chance(maker, 40);
    if (order_memory(maker->order, block) == MAPPED && chance(maker, 50))
        op.kind = HOST_REGISTER;
    else if (order_memory(maker->order, block) == REGISTERED && chance(maker, 70))
        op.kind = HOST_UNREGISTER;
    emit(maker, op);
}

void make_block(struct maker *maker, unsigned block)
{
    if (!order_block_lives(maker->order, block))
        (is_device_block(block) ? renew_device_block : renew_host_block)(maker, block);
}

void give_block_back(struct maker *maker, unsigned block)
{
    (is_device_block(block) ? free_device_block : change_host_block)(maker, block);
    if (chance(maker, 80))
        make_block(maker, block);
}

/* What is freed is mostly had again at once, often at the same address. */
void renew_block(struct maker *maker)
{
    unsigned block = draw(maker, BLOCKS);
    if (order_block_lives(maker->order, block))
        give_block_back(maker, block);
    else if (chance(maker, 80))
        make_block(maker, block);
}

void renew_stream(struct maker *maker)
{
    unsigned stream = FIRST_MADE + draw(maker, STREAMS - FIRST_MADE);
    struct op op = {.kind = STREAM_DESTROY, .stream = (uint8_t)stream, .form = chance(maker, 40)};
    if (!order_stream_lives(maker->order, stream)) {
        op.kind = STREAM_CREATE;
        op.mode = chance(maker, 60);
        op.device = chance(maker, 20);
    } else if (stream < FIRST_MADE + 2) {
        return; /* some always are */
    }
    emit(maker, op);
}

void renew_event(struct maker *maker)
{
    unsigned event = draw(maker, EVENTS);
    struct op op = {.kind = EVENT_DESTROY, .event = (uint8_t)event};
    if (emit(maker, op)) {
        op.kind = EVENT_CREATE;
        op.mode = chance(maker, 30);
        op.device = event >= 6;
        emit(maker, op);
    }
}
