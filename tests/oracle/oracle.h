/* oracle.h: what a random CUDA program is made of: numbered streams, events, memories and graphs,
 * and a list of operations on them.
 *
 * A program is a function of its seed and its length. generate.c writes it, order.c knows what is
 * ordered after what (from NVIDIA's text, not from the simulator), execute.c runs it.
 * Thread rule: one program at a time; its threads take turns. Failure rule: an answer of CUDA is a
 * result like any other; what the oracle itself cannot do ends the process with a message.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREADS       3
#define SMALL_BYTES   65536u /* a pageable copy to the device of more blocks its caller */
#define EVENTS        8
#define GRAPHS        4
#define DEVICE_BLOCKS 14
#define HOST_BLOCKS   8
#define BLOCKS        (DEVICE_BLOCKS + HOST_BLOCKS) /* memories: the device's first */
#define OPS_MOST      4096

/* Streams: the legacy one of each device, the per-thread ones of device 0, and made ones. */
enum { LEGACY_0, LEGACY_1, OF_THREAD_0, OF_THREAD_2 = OF_THREAD_0 + THREADS - 1, FIRST_MADE };
#define STREAMS 14

#define KINDS(KIND)                                                                                \
    KIND(NOTHING, "nothing")                                                                       \
    KIND(STREAM_CREATE, "stream create")                                                           \
    KIND(STREAM_DESTROY, "stream destroy")                                                         \
    KIND(STREAM_SYNC, "stream synchronize")                                                        \
    KIND(STREAM_QUERY, "stream query")                                                             \
    KIND(CONTEXT_SYNC, "context synchronize")                                                      \
    KIND(EVENT_CREATE, "event create")                                                             \
    KIND(EVENT_DESTROY, "event destroy")                                                           \
    KIND(EVENT_RECORD, "event record")                                                             \
    KIND(EVENT_WAIT, "stream waits for event")                                                     \
    KIND(EVENT_SYNC, "event synchronize")                                                          \
    KIND(EVENT_QUERY, "event query")                                                               \
    KIND(EVENT_ELAPSED, "event elapsed time")                                                      \
    KIND(DEVICE_ALLOC, "device alloc")                                                             \
    KIND(DEVICE_FREE, "device free")                                                               \
    KIND(HOST_ALLOC, "host alloc")                                                                 \
    KIND(HOST_FREE, "host free")                                                                   \
    KIND(HOST_REGISTER, "host register")                                                           \
    KIND(HOST_UNREGISTER, "host unregister")                                                       \
    KIND(HOST_FILL, "host fills")                                                                  \
    KIND(HOST_READ, "host reads")                                                                  \
    KIND(UPLOAD_FRESH, "copy from fresh pageable memory")                                          \
    KIND(UPLOAD, "copy from host memory")                                                          \
    KIND(DOWNLOAD_FRESH, "copy to fresh pageable memory")                                          \
    KIND(DOWNLOAD, "copy to host memory")                                                          \
    KIND(DEVICE_COPY, "copy within devices")                                                       \
    KIND(DEVICE_FILL, "memset")                                                                    \
    KIND(KERNEL, "kernel")                                                                         \
    KIND(HOST_CALL, "host function")                                                               \
    KIND(WRITE_VALUE, "stream writes value")                                                       \
    KIND(CAPTURE_BEGIN, "capture begin")                                                           \
    KIND(CAPTURE_END, "capture end")                                                               \
    KIND(GRAPH_LAUNCH, "graph launch")                                                             \
    KIND(GRAPH_DESTROY, "graph destroy")                                                           \
    KIND(HOLD, "host function that waits for the host")                                            \
    KIND(RELEASE, "the host lets it go")                                                           \
    KIND(MEMORY_INFO, "memory info")                                                               \
    KIND(POINTER_INFO, "pointer attributes")                                                       \
    KIND(SHARE, "memory is shared")                                                                \
    KIND(PEEK, "another agent reads")                                                              \
    KIND(WRONG, "a call that must fail")

enum op_kind {
#define KIND(name, text) name,
    KINDS(KIND)
#undef KIND
        OP_KINDS
};

/* Which function makes a copy; sync and twin say which of its forms. */
enum copy_form { DRIVER, DRIVER_ANY, RUNTIME, RUNTIME_DEFAULT, DRIVER_2D, RUNTIME_2D, COPY_FORMS };
/* What becomes of a fresh source when its copy has returned. */
enum source_end { OVERWRITTEN, FREED, UNMAPPED, PROTECTED, SOURCE_ENDS };
enum device_memory { PLAIN, PLAIN_RUNTIME, POOL, POOL_RUNTIME, VIRTUAL, DEVICE_MEMORIES };
enum host_memory { HEAP, MAPPED, PINNED, PINNED_RUNTIME, REGISTERED, HOST_MEMORIES };
enum wrong_call { NO_TARGET, TOO_LONG, ZERO_BYTES, NULL_SOURCE, BAD_KIND, NO_EVENT, WRONG_CALLS };

struct op {
    uint8_t kind, form, thread, stream;
    bool sync, twin; /* returns when done by its text; the _ptsz/_ptds function */
    uint8_t mode;    /* by kind: memory, capture mode, source_end, wrong_call, flags */
    uint8_t device, event, event2, graph;
    uint8_t stream_device; /* set by order.c */
    uint8_t in[3], out[2], in_count, out_count;
    uint32_t bytes, offset, host_offset, value;
    uint32_t partner; /* of HOLD/RELEASE and CAPTURE_BEGIN/_END: the index of the other one */
    bool loose;       /* natively either answer is right: not compared (set by order.c) */
};

struct program {
    uint64_t seed;
    uint32_t count;
    struct op ops[OPS_MOST];
};

/* What the host saw of an operation. */
struct result {
    int32_t code;
    uint64_t value;
};

/* --- order.c --- */

struct point {
    uint8_t stream;
    uint32_t index;
};

struct order;
struct order *order_new(void);
/* Does it mean something where it stands? */
bool order_is_legal(const struct order *order, const struct op *op);
/* Is there an earlier access to the same memory that nothing orders before this operation? */
bool order_conflict(const struct order *order, const struct op *op, struct point *earlier);
void order_apply(struct order *order, struct op *op);

/* What the generator asks. */
bool order_block_lives(const struct order *order, unsigned block);
bool order_stream_lives(const struct order *order, unsigned stream);
bool order_stream_can_be_made(const struct order *order, unsigned stream);
bool order_stream_captures(const struct order *order, unsigned stream);
bool order_stream_blocks(const struct order *order, unsigned stream);
bool order_event_lives(const struct order *order, unsigned event);
bool order_graph_lives(const struct order *order, unsigned graph);
unsigned order_stream_device(const struct order *order, unsigned stream);
unsigned order_event_device(const struct order *order, unsigned event);
uint32_t order_bytes(const struct order *order, unsigned block);
/* device_memory or host_memory */
unsigned order_memory(const struct order *order, unsigned block);
bool order_is_shared(const struct order *order, unsigned block);
bool order_has_race(const struct order *order);

/* --- program.c --- */

void program_generate(struct program *program, uint64_t seed, uint32_t count);
/* Leaves out what is not kept (NULL: all is) and wrong calls of some modes (a mask), makes nothing
 * of what then means nothing; false when what remains has a race. */
bool program_prepare(struct program *program, const bool *keep, uint32_t without);
void op_print(const struct op *op, uint32_t index);

/* --- execute.c --- */

void execute_start(void);
/* Runs a program under an adversary; returns the hash of all that was seen. */
uint64_t execute(const struct program *program, uint64_t adversary, bool trace);

/* --- small things --- */

static inline uint64_t scramble(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u; /* splitmix64, Steele et al. 2014 */
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count);
void fill_bytes(void *bytes, size_t count, uint64_t value);
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline bool is_device_block(unsigned block)
{
    return block < DEVICE_BLOCKS;
}

static inline bool is_pageable(enum host_memory kind)
{
    return kind == HEAP || kind == MAPPED;
}

#endif
