/* order_touch.c: which memory an operation reads and writes, who does it, and what a copy has
 * waited for when it returns (CUDA Runtime API, "API synchronization behavior").
 *
 * Thread rule: none. Failure rule: see order.c.
 */
#include "order.h"

static uint32_t bits(const uint8_t *blocks, unsigned count)
{
    uint32_t all = 0;
    for (unsigned i = 0; i < count; i++)
        all |= bit(blocks[i]);
    return all;
}

/* A pageable source is read while the call runs: of a large copy after the stream's earlier work,
 * of a small one at once. */
static struct touch touch_of_upload(const struct order *order, const struct op *op)
{
    struct touch touch = {.write = bits(op->out, op->out_count)};
    bool pageable = is_pageable((enum host_memory)order->blocks[op->in[0]].kind);
    bool captured = order->streams[op->stream].capture != 0;
    if (pageable && !captured && op->bytes <= SMALL_BYTES)
        touch.host_read = bit(op->in[0]);
    else
        touch.read = bit(op->in[0]);
    return touch;
}

static struct touch touch_of_free(const struct order *order, const struct op *op)
{
    const struct block *block = &order->blocks[op->out[0]];
    bool pool = block->kind == POOL || block->kind == POOL_RUNTIME;
    if (pool && !op->sync)
        return (struct touch){.write = bit(op->out[0])};
    return (struct touch){.host_write = bit(op->out[0])};
}

struct touch order_touch_of(const struct order *order, const struct op *op)
{
    uint32_t in = bits(op->in, op->in_count), out = bits(op->out, op->out_count);
    switch (op->kind) {
    case UPLOAD:
        return touch_of_upload(order, op);
    case DEVICE_FREE:
        return touch_of_free(order, op);
    case HOST_READ:
    case PEEK:
        return (struct touch){.host_read = in};
    case HOST_FREE:
    case HOST_REGISTER:
    case HOST_UNREGISTER:
    case HOST_FILL:
        return (struct touch){.host_write = out};
    case UPLOAD_FRESH:
    case DOWNLOAD_FRESH:
    case DOWNLOAD:
    case DEVICE_COPY:
    case DEVICE_FILL:
    case KERNEL:
    case HOST_CALL:
    case WRITE_VALUE:
        return (struct touch){.read = in, .write = out};
    case GRAPH_LAUNCH:
        return (struct touch){.read = order->graphs[op->graph].read,
                              .write = order->graphs[op->graph].write};
    default:
        return (struct touch){0};
    }
}

bool order_is_work(const struct order *order, const struct op *op)
{
    switch (op->kind) {
    case DEVICE_ALLOC:
        return op->mode == POOL || op->mode == POOL_RUNTIME;
    case DEVICE_FREE:
        return touch_of_free(order, op).write != 0;
    case UPLOAD_FRESH:
    case UPLOAD:
    case DOWNLOAD_FRESH:
    case DOWNLOAD:
    case DEVICE_COPY:
    case DEVICE_FILL:
    case KERNEL:
    case HOST_CALL:
    case WRITE_VALUE:
    case GRAPH_LAUNCH:
    case HOLD:
        return true;
    default:
        return false;
    }
}

/* --- waiting --- */

enum wait order_wait_of(const struct order *order, const struct op *op)
{
    enum host_memory kind;
    switch (op->kind) {
    case UPLOAD_FRESH:
        return op->bytes > SMALL_BYTES ? WAIT_ALL : op->sync ? WAIT_EARLIER : WAIT_NONE;
    case UPLOAD:
        kind = (enum host_memory)order->blocks[op->in[0]].kind;
        if (!is_pageable(kind))
            return op->sync ? WAIT_ALL : WAIT_NONE;
        return op->bytes > SMALL_BYTES ? WAIT_ALL : op->sync ? WAIT_EARLIER : WAIT_NONE;
    case DOWNLOAD_FRESH:
        return WAIT_ALL;
    case DOWNLOAD:
        kind = (enum host_memory)order->blocks[op->out[0]].kind;
        return op->sync || is_pageable(kind) ? WAIT_ALL : WAIT_NONE;
    default:
        return WAIT_NONE;
    }
}
