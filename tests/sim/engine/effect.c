/* effect.c: what an operation does to memory when its time has come.
 *
 * Addresses are looked up at that moment, so that memory freed meanwhile is not touched.
 * Thread rule: sim_lock, except that sim_op_apply of a slow operation runs without it.
 * Failure rule: an address that is not live makes the context's error sticky, like a real fault.
 */
#include "engine.h"

#include <string.h>

#define SLOW_BYTES  65536
#define SAMPLE_EDGE 4096

static void fault(struct sim_op *op)
{
    if (op->context->sticky == CUDA_SUCCESS)
        op->context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
}

static size_t copy_bytes(const struct sim_copy *copy)
{
    return copy->width * copy->height * copy->depth;
}

/* One run of bytes; with sampled bytes only both ends of a large one move. */
static void move_run(char *dst, const char *src, size_t bytes)
{
    if (sim.sampled && bytes >= SLOW_BYTES) {
        memmove(dst, src, SAMPLE_EDGE);
        memmove(dst + bytes - SAMPLE_EDGE, src + bytes - SAMPLE_EDGE, SAMPLE_EDGE);
    } else {
        memmove(dst, src, bytes);
    }
}

bool sim_copy_move(const struct sim_copy *copy)
{
    for (size_t z = 0; z < copy->depth; z++) {
        for (size_t y = 0; y < copy->height; y++) {
            char *dst =
                sim_memory_at(copy->dst + z * copy->dst_slice + y * copy->dst_pitch, copy->width);
            uint64_t from = copy->owned ? (uint64_t)(uintptr_t)copy->owned : copy->src;
            char *src =
                sim_memory_at(from + z * copy->src_slice + y * copy->src_pitch, copy->width);
            if (!dst || !src)
                return false;
            move_run(dst, src, copy->width);
        }
    }
    return true;
}

/* In one piece: another thread or process may be waiting for it. */
static bool store(const struct sim_write *write)
{
    char *at = sim_memory_at(write->dst, write->bytes);
    if (at && write->bytes == 4)
        __atomic_store_n((uint32_t *)at, (uint32_t)write->value, __ATOMIC_RELEASE);
    else if (at)
        __atomic_store_n((uint64_t *)at, write->value, __ATOMIC_RELEASE);
    return at != NULL;
}

static bool holds(const struct sim_wait *wait, uint64_t found)
{
    bool narrow = wait->bytes == 4;
    int64_t ahead = narrow ? (int32_t)(found - wait->value) : (int64_t)(found - wait->value);
    switch (wait->condition) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return ahead == 0;
    case CU_STREAM_WAIT_VALUE_AND:
        return (found & wait->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return narrow ? (uint32_t) ~(found | wait->value) != 0 : ~(found | wait->value) != 0;
    default: /* a cyclic comparison */
        return ahead >= 0;
    }
}

bool sim_wait_met(struct sim_op *op)
{
    const struct sim_wait *wait = &op->wait;
    const char *at = sim_memory_at(wait->src, wait->bytes);
    if (!at) {
        fault(op);
        return true;
    }
    uint64_t found = wait->bytes == 4 ? __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE)
                                      : __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
    bool met = holds(wait, found);
    if (!met && wait->asked_for)
        *wait->asked_for = wait->value;
    return met;
}

static void fill_row(char *row, const struct sim_fill *fill)
{
    if (fill->unit_bytes == 1) {
        memset(row, (int)(fill->value & 0xFF), fill->width);
        return;
    }
    for (size_t x = 0; x + fill->unit_bytes <= fill->width; x += fill->unit_bytes)
        memcpy(row + x, &fill->value, fill->unit_bytes);
}

static bool apply_fill(const struct sim_fill *fill)
{
    for (size_t y = 0; y < fill->height; y++) {
        char *row = sim_memory_at(fill->dst + y * fill->pitch, fill->width);
        if (!row)
            return false;
        fill_row(row, fill);
    }
    return true;
}

void sim_op_apply(struct sim_op *op)
{
    switch (op->kind) {
    case SIM_OP_KERNEL:
        if (op->kernel->op.action == SIM_KERNEL_UNKNOWN)
            sim_truth_unknown_kernel(op->kernel->name);
        else
            sim_kernel_execute(&op->kernel->op);
        break;
    case SIM_OP_COPY:
        if (copy_bytes(&op->copy) && !sim_copy_move(&op->copy))
            fault(op);
        break;
    case SIM_OP_FILL:
        if (op->fill.width && !apply_fill(&op->fill))
            fault(op);
        break;
    case SIM_OP_WRITE:
        if (!store(&op->write))
            fault(op);
        break;
    case SIM_OP_FREE:
        sim_memory_free(op->free);
        break;
    default:
        break;
    }
}

bool sim_op_is_slow(const struct sim_op *op)
{
    switch (op->kind) {
    case SIM_OP_KERNEL:
        return op->kernel->op.action != SIM_KERNEL_UNKNOWN &&
               op->kernel->op.action != SIM_KERNEL_SPIN;
    case SIM_OP_COPY:
        return copy_bytes(&op->copy) >= SLOW_BYTES && !sim.sampled;
    case SIM_OP_FILL:
        return op->fill.width * op->fill.height >= SLOW_BYTES;
    default:
        return false;
    }
}

/* The adversary's first half of a copy: the destination changes as early as it may. Device memory
 * gets what the source holds now, page-locked host memory gets bytes that nobody sent. */
void sim_op_begin_early(struct sim_op *op)
{
    if (op->kind != SIM_OP_COPY)
        return;
    struct sim_copy *copy = &op->copy;
    if (sim_is_device_address(copy->dst)) {
        if (!sim_is_device_address(copy->src)) /* within a device both may overlap */
            sim_copy_move(copy);
    } else if (copy->early) {
        for (size_t z = 0; z < copy->depth; z++)
            for (size_t y = 0; y < copy->height; y++)
                memset((char *)(copy->dst + z * copy->dst_slice + y * copy->dst_pitch), 0xA5,
                       copy->width);
    }
}
