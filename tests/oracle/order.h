/* order.h: the state of order.c and order_rules.c.
 *
 * Thread rule: none. Failure rule: see order.c.
 */
#ifndef ORACLE_ORDER_H
#define ORACLE_ORDER_H

#include "oracle.h"

/* What a copy has waited for when it returns. */
enum wait { WAIT_NONE, WAIT_EARLIER, WAIT_ALL };

/* Clocks: how many operations of each stream come before. */
struct stream {
    bool live, blocking;
    uint8_t device;
    uint32_t capture; /* the number of the capture it is in, 0: none */
    uint32_t count, clock[STREAMS];
};

struct event {
    bool live, recorded, timed;
    uint8_t device;
    uint32_t capture, clock[STREAMS];
    struct point mark;
};

struct block {
    bool live, shared; /* shared: agents without a stream may read it */
    uint8_t kind, device;
    uint32_t bytes;
    struct point writer; /* the last one */
    uint32_t read[STREAMS];
};

struct graph {
    bool live, stale; /* stale: something it uses is gone */
    uint8_t device;
    uint32_t read, write;
};

struct capture {
    uint32_t read[STREAMS], write[STREAMS];
};

struct order {
    struct stream streams[STREAMS];
    struct event events[EVENTS];
    struct block blocks[BLOCKS];
    struct graph graphs[GRAPHS];
    struct capture capture; /* at most one is open */
    bool open;
    uint8_t origin;            /* the stream it began in */
    uint32_t captures;         /* so far */
    uint32_t host[STREAMS];    /* what the host knows to be done */
    uint32_t freeing[STREAMS]; /* the last free in stream order */
    unsigned held;             /* the stream whose host function waits; STREAMS: none */
    uint32_t held_since;
    bool race;
};

/* Blocks as bits. */
struct touch {
    uint32_t read, write;           /* by the stream */
    uint32_t host_read, host_write; /* by the host, while the call runs */
};

struct touch order_touch_of(const struct order *order, const struct op *op);
/* Is it put into a stream? */
bool order_is_work(const struct order *order, const struct op *op);
static inline uint32_t bit(unsigned block)
{
    return 1u << block;
}

bool order_is_loose(const struct order *order, const struct op *op);
enum wait order_wait_of(const struct order *order, const struct op *op);
bool order_waits_for(const struct order *order, const struct op *op, struct point point);

#endif
