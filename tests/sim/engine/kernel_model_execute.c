/* kernel_model_execute.c: what a modelled kernel does to memory at its simulated time.
 *
 * One sampling rule for readers and writers, in bytes from the start of a run, so that what one
 * kernel writes another reads: up to DENSE_BYTES everything is written; beyond, the first
 * DENSE_BYTES, the last SPOT_BYTES, and SPOT_BYTES at every multiple of LATTICE_BYTES. Readers look
 * at the first FIRST_BYTES, the last SPOT_BYTES and at most SPOTS_MOST places whose distance is a
 * power of two, hence a multiple of the lattice where the writer was sparse. Contents only are
 * hashed, never addresses. Numbers written are finite, in (0.1, 1); integers are 0 or 1.
 * GPUSIM_BYTES=sampled: exact copies and fills of long runs do both ends only, as the engine's do.
 * Thread rule: the engine calls one execute at a time for overlapping memory. Failure rule: an
 * operand outside every live allocation is skipped, one that is cut short is used as far as it
 * goes.
 */
#include "kernel_model_parts.h"
#include "settings.h"

#include <string.h>

#define FIRST_BYTES   16384u
#define SPOT_BYTES    64u
#define SPOTS_MOST    128u
#define DENSE_BYTES   262144u
#define LATTICE_BYTES 16384u
#define PATTERN_BYTES 64u /* a multiple of every element size */
#define UNKNOWN_BYTES 64u /* looked at when an input's size is not known */
#define ELEMENTS_MOST 4096u

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (; count >= 8; at += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    uint64_t word = 0;
    memcpy(&word, at, count);
    return (hash ^ word ^ count) * 0x9E3779B97F4A7C15u;
}

/* --- reading --- */

static size_t spot_distance(size_t bytes)
{
    size_t distance = bytes > DENSE_BYTES ? LATTICE_BYTES : SPOT_BYTES;
    while (bytes / distance > SPOTS_MOST)
        distance *= 2;
    return distance;
}

static uint64_t hash_run(uint64_t hash, const char *run, size_t bytes)
{
    hash = hash_bytes(hash, run, bytes < FIRST_BYTES ? bytes : FIRST_BYTES);
    if (bytes <= FIRST_BYTES)
        return hash;
    size_t distance = spot_distance(bytes);
    for (size_t at = distance; at + SPOT_BYTES <= bytes; at += distance)
        hash = hash_bytes(hash, run + at, SPOT_BYTES);
    return hash_bytes(hash, run + bytes - SPOT_BYTES, SPOT_BYTES);
}

static uint64_t hash_elements(uint64_t hash, const char *base, size_t left,
                              const struct sim_view *view)
{
    size_t size = sim_type_bytes(view->type);
    uint64_t elements = sim_view_elements(view);
    uint64_t step = elements > ELEMENTS_MOST ? elements / ELEMENTS_MOST : 1;
    for (uint64_t i = 0; i < elements; i += step) {
        uint64_t offset = sim_view_offset(view, i);
        if (offset + size <= left)
            hash = hash_bytes(hash, base + offset, size);
    }
    return hash;
}

static uint64_t hash_input(uint64_t hash, const struct gpusim_operand *range,
                           const struct sim_view *view)
{
    size_t left;
    const char *base = sim_mem_alias(range->ptr, &left);
    if (!base)
        return mix(hash ^ 1);
    if (view->dims)
        return mix(hash_elements(hash, base, left, view));
    /* Blocks of PyTorch's allocator start at multiples of 512: do not look into the next one. */
    size_t bytes = 512 - range->ptr % 512 < UNKNOWN_BYTES ? 512 - range->ptr % 512 : UNKNOWN_BYTES;
    if (range->bytes)
        bytes = range->bytes;
    return mix(hash_run(hash, base, bytes < left ? bytes : left));
}

/* --- writing --- */

/* Numbers that are valid for the type: exponent bits stay within [0.125, 1). A float's low half is
 * a valid half too, for outputs whose type is only known to be four bytes wide. */
static void make_pattern(char pattern[PATTERN_BYTES], enum sim_type type, uint64_t hash)
{
    for (size_t at = 0, size = sim_type_bytes(type); at < PATTERN_BYTES; at += size) {
        uint64_t random = mix(hash + at);
        uint16_t half = (uint16_t)(0x3000 + random % 0x0C00);
        uint16_t brain = (uint16_t)(0x3E00 + random % 0x0180);
        uint32_t single = (uint32_t)brain << 16 | (0x3000u + (uint32_t)(random >> 32) % 0x0C00);
        uint64_t number = 0x3FC0000000000000u + random % 0x0030000000000000u;
        uint64_t whole = random & 1;
        switch (type) {
        case SIM_TYPE_F16:
            memcpy(pattern + at, &half, 2);
            break;
        case SIM_TYPE_BF16:
            memcpy(pattern + at, &brain, 2);
            break;
        case SIM_TYPE_F64:
            memcpy(pattern + at, &number, 8);
            break;
        case SIM_TYPE_C128:
            memcpy(pattern + at, &number, 8);
            memcpy(pattern + at + 8, &number, 8);
            break;
        case SIM_TYPE_F32:
        case SIM_TYPE_NONE:
            memcpy(pattern + at, &single, 4);
            break;
        case SIM_TYPE_C64:
            memcpy(pattern + at, &single, 4);
            memcpy(pattern + at + 4, &single, 4);
            break;
        default: /* integers: little-endian 0 or 1 */
            memcpy(pattern + at, &whole, size);
        }
    }
}

/* Writes the pattern at [at, at + count) of a run, in phase with the run's start. */
static void write_pattern(char *run, size_t at, size_t count, const char *pattern)
{
    while (count) {
        size_t phase = at % PATTERN_BYTES;
        size_t part = PATTERN_BYTES - phase < count ? PATTERN_BYTES - phase : count;
        memcpy(run + at, pattern + phase, part);
        at += part;
        count -= part;
    }
}

static void write_run(char *run, size_t bytes, const char *pattern)
{
    if (bytes <= DENSE_BYTES) {
        write_pattern(run, 0, bytes, pattern);
        return;
    }
    write_pattern(run, 0, DENSE_BYTES, pattern);
    for (size_t at = DENSE_BYTES; at + SPOT_BYTES <= bytes; at += LATTICE_BYTES)
        write_pattern(run, at, SPOT_BYTES, pattern);
    write_pattern(run, bytes - SPOT_BYTES, SPOT_BYTES, pattern);
}

static void write_elements(char *base, size_t left, const struct sim_view *view,
                           const char *pattern)
{
    size_t size = sim_type_bytes(view->type);
    uint64_t elements = sim_view_elements(view);
    for (uint64_t i = 0; i < elements; i++) {
        uint64_t offset = sim_view_offset(view, i);
        if (offset + size <= left)
            memcpy(base + offset, pattern + i * size % PATTERN_BYTES, size);
    }
}

static void write_output(const struct gpusim_operand *range, const struct sim_view *view,
                         uint64_t hash)
{
    size_t left;
    char *base = sim_mem_alias(range->ptr, &left);
    if (!base)
        return;
    char pattern[PATTERN_BYTES];
    make_pattern(pattern, view->type, hash);
    if (view->dims) {
        write_elements(base, left, view, pattern);
        return;
    }
    size_t bytes = range->bytes ? range->bytes : sim_type_bytes(view->type);
    write_run(base, bytes < left ? bytes : left, pattern);
}

static void execute_hash(const struct sim_kernel_op *op, const struct sim_view *views)
{
    uint64_t hash = op->salt;
    for (uint32_t i = 0; i < op->input_count; i++)
        hash = hash_input(hash, &op->ranges[i], &views[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        write_output(&op->ranges[op->input_count + i], &views[op->input_count + i], mix(hash + i));
}

/* --- exact --- */

/* How much of the middle of a run is left out. */
static size_t skipped(size_t bytes)
{
    return SIM_TEXT(BYTES)[0] == 's' && bytes > 2 * FIRST_BYTES ? bytes - 2 * FIRST_BYTES : 0;
}

static void copy_elements(char *to, size_t to_left, const struct sim_view *out, const char *from,
                          size_t from_left, const struct sim_view *in, uint64_t elements)
{
    size_t to_bytes = sim_type_bytes(out->type), from_bytes = sim_type_bytes(in->type);
    for (uint64_t i = 0; i < elements; i++) {
        uint64_t to_at = out->dims ? sim_view_offset(out, i) : i * to_bytes;
        uint64_t from_at = in->dims ? sim_view_offset(in, i) : i * from_bytes;
        if (to_at + to_bytes > to_left || from_at + from_bytes > from_left)
            continue;
        if (out->type == in->type)
            memcpy(to + to_at, from + from_at, to_bytes);
        else
            sim_convert(to + to_at, out->type, from + from_at, in->type);
    }
}

static uint64_t elements_of(const struct gpusim_operand *range, const struct sim_view *view)
{
    return view->dims ? sim_view_elements(view) : range->bytes / sim_type_bytes(view->type);
}

static void execute_copy(const struct sim_kernel_op *op, const struct sim_view *views)
{
    const struct gpusim_operand *in = &op->ranges[0], *out = &op->ranges[op->input_count];
    const struct sim_view *in_view = &views[0], *out_view = &views[op->input_count];
    size_t from_left, to_left;
    const char *from = sim_mem_alias(in->ptr, &from_left);
    char *to = sim_mem_alias(out->ptr, &to_left);
    if (!from || !to)
        return;
    if (!in_view->dims && !out_view->dims && in_view->type == out_view->type) {
        size_t bytes = in->bytes < out->bytes ? in->bytes : out->bytes;
        bytes = bytes < from_left ? bytes : from_left;
        bytes = bytes < to_left ? bytes : to_left;
        size_t hole = skipped(bytes), first = hole ? FIRST_BYTES : bytes;
        memmove(to, from, first);
        memmove(to + first + hole, from + first + hole, bytes - first - hole);
        return;
    }
    copy_elements(to, to_left, out_view, from, from_left, in_view, elements_of(out, out_view));
}

/* Repeats the value by doubling what is already written. */
static void fill_run(char *to, size_t bytes, const uint8_t *value, size_t value_bytes)
{
    size_t done = value_bytes < bytes ? value_bytes : bytes;
    memcpy(to, value, done);
    while (done && done < bytes) {
        size_t part = done < bytes - done ? done : bytes - done;
        memcpy(to + done, to, part);
        done += part;
    }
}

static void execute_fill(const struct sim_kernel_op *op, const struct sim_view *views)
{
    const struct gpusim_operand *out = &op->ranges[op->input_count];
    const struct sim_view *view = &views[op->input_count];
    size_t left;
    char *to = sim_mem_alias(out->ptr, &left);
    if (!to || op->fill_bytes == 0)
        return;
    if (!view->dims) {
        size_t bytes = out->bytes < left ? out->bytes : left;
        size_t hole = skipped(bytes), first = hole ? FIRST_BYTES : bytes;
        fill_run(to, first, op->fill, op->fill_bytes);
        fill_run(to + first + hole, bytes - first - hole, op->fill, op->fill_bytes);
        return;
    }
    uint64_t elements = sim_view_elements(view);
    for (uint64_t i = 0; i < elements; i++) {
        uint64_t at = sim_view_offset(view, i);
        if (at + op->fill_bytes <= left)
            memcpy(to + at, op->fill, op->fill_bytes);
    }
}

void sim_kernel_execute(const struct sim_kernel_op *op)
{
    const struct sim_view *views = op->views;
    if (op->action == SIM_KERNEL_HASH)
        execute_hash(op, views);
    else if (op->action == SIM_KERNEL_COPY && op->input_count && op->output_count)
        execute_copy(op, views);
    else if (op->action == SIM_KERNEL_FILL && op->output_count)
        execute_fill(op, views);
}
