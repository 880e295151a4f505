/* program.c: a program as text, and a program of which a part is left out.
 *
 * Thread rule: none. Failure rule: see oracle.h.
 */
#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[OP_KINDS] = {
#define KIND(name, text) [name] = text,
    KINDS(KIND)
#undef KIND
};

static const char *const form_names[COPY_FORMS] = {"driver",           "driver, any", "runtime",
                                                   "runtime, default", "driver 2D",   "runtime 2D"};

static void print_stream(unsigned stream)
{
    if (stream <= LEGACY_1)
        printf(" legacy%u", stream);
    else if (stream < FIRST_MADE)
        printf(" of_thread%u", stream - OF_THREAD_0);
    else
        printf(" s%u", stream);
}

static void print_blocks(const char *word, const uint8_t *blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        printf("%s%s%u", i ? "," : word, is_device_block(blocks[i]) ? "d" : "h", blocks[i]);
}

static bool is_copy(const struct op *op)
{
    return op->kind >= UPLOAD_FRESH && op->kind <= DEVICE_COPY;
}

static void print_numbers(const struct op *op)
{
    if (op->bytes)
        printf(" bytes=%u", op->bytes);
    if (op->offset)
        printf(" offset=%u", op->offset);
    if (op->host_offset)
        printf(" host_offset=%u", op->host_offset);
    if (op->mode)
        printf(" mode=%u", op->mode);
    if (op->device)
        printf(" device=%u", op->device);
    if (op->kind == CAPTURE_END || op->kind == GRAPH_LAUNCH || op->kind == GRAPH_DESTROY)
        printf(" graph=%u", op->graph);
    if (op->kind >= EVENT_CREATE && op->kind <= EVENT_ELAPSED)
        printf(" e%u", op->event);
    if (op->kind == EVENT_ELAPSED)
        printf(" e%u", op->event2);
    if (is_copy(op))
        printf(" by %s%s%s", form_names[op->form], op->sync ? "" : ", async",
               op->twin ? ", per thread" : "");
    else if (op->form)
        printf(" form=%u", op->form);
    if (!is_copy(op) && op->sync)
        printf(" sync");
}

void op_print(const struct op *op, uint32_t index)
{
    static const char *const ends[SOURCE_ENDS] = {"overwritten", "freed", "unmapped", "protected"};
    printf("%4u t%u %s:", index, op->thread, kind_names[op->kind]);
    print_stream(op->stream);
    print_blocks(" from ", op->in, op->in_count);
    print_blocks(" to ", op->out, op->out_count);
    print_numbers(op);
    if (op->kind == UPLOAD_FRESH)
        printf(", then %s", ends[op->mode]);
}

/* Both of a pair are there, or neither. */
static void drop_unpaired(struct program *program, const bool *keep)
{
    for (uint32_t i = 0; i < program->count; i++) {
        struct op *op = &program->ops[i];
        bool paired = op->kind == HOLD || op->kind == RELEASE || op->kind == CAPTURE_BEGIN ||
                      op->kind == CAPTURE_END;
        if (keep && (!keep[i] || (paired && !keep[op->partner])))
            op->kind = NOTHING;
    }
}

bool program_prepare(struct program *program, const bool *keep, uint32_t without)
{
    struct order *order = order_new();
    drop_unpaired(program, keep);
    for (uint32_t i = 0; i < program->count; i++) {
        struct op *op = &program->ops[i];
        bool wanted = op->kind != WRONG || !(without & 1u << op->mode);
        if (wanted && order_is_legal(order, op))
            order_apply(order, op);
        else
            op->kind = NOTHING;
    }
    bool tidy = !order_has_race(order);
    free(order);
    return tidy;
}

/* --- small things --- */

/* Four lanes: one would wait for its own multiplications. */
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t lanes[4] = {hash ^ 1, hash ^ 2, hash ^ 3, hash ^ 4}, words[4] = {0};
    size_t left = count;
    for (; left >= sizeof(words); at += sizeof(words), left -= sizeof(words)) {
        memcpy(words, at, sizeof(words));
        for (int i = 0; i < 4; i++) {
            lanes[i] = (lanes[i] ^ words[i]) * 0x9E3779B97F4A7C15u;
            lanes[i] ^= lanes[i] >> 29;
        }
    }
    memset(words, 0, sizeof(words));
    memcpy(words, at, left);
    hash = count;
    for (int i = 0; i < 4; i++)
        hash = scramble(hash ^ lanes[i] ^ words[i]);
    return hash;
}

void fill_bytes(void *bytes, size_t count, uint64_t value)
{
    unsigned char *at = bytes;
    uint64_t word = scramble(value);
    for (; count >= 8; at += 8, count -= 8, word += 0x9E3779B97F4A7C15u)
        memcpy(at, &word, 8);
    memcpy(at, &word, count);
}

_Noreturn void give_up(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("oracle: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}
