/* engine.h: what a simulated GPU is made of, and what the driver's entry points may ask of it.
 *
 * Work is a graph of operations: a stream is a chain of them, an event is a reference to one, a
 * wait is an edge. The real clock (timeline.c) or the adversary (adversary.c) decides when each
 * runs; effect.c does what it does.
 * Thread rule: one lock (sim_lock) guards everything but memory.c's table, which has its own.
 * Failure rule: an operation that fails leaves a sticky error in its context.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "../gpusim.h"
#include "kernel_model.h"
#include "settings.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_MAX_DEVICES  8
#define SIM_MAX_CONTEXTS 256
#define SIM_MAX_STREAMS  65536
#define SIM_MAX_EVENTS   (1u << 20)

/* --- operations --- */

enum sim_op_kind {
    SIM_OP_EMPTY,  /* a join, an event's mark, a wait */
    SIM_OP_KERNEL, /* sim_kernel */
    SIM_OP_COPY,   /* sim_copy */
    SIM_OP_FILL,   /* sim_fill */
    SIM_OP_HOST,   /* sim_host_call */
    SIM_OP_FREE,   /* memory freed in stream order */
    SIM_OP_WRITE,  /* a stream memory operation's store */
    SIM_OP_WAIT,   /* a stream memory operation's wait: until memory holds what it asks for */
};

enum sim_unit_kind { SIM_COMPUTE, SIM_H2D, SIM_D2H, SIM_D2D, SIM_UNITS, SIM_NO_UNIT = SIM_UNITS };

enum sim_op_state {
    SIM_WAITING, /* something before it is not done */
    SIM_READY,
    SIM_RUNNING, /* on its engine; virtual clock: begun */
    SIM_TIMED,   /* its time is over, its effect not yet applied */
    SIM_DONE,
};

struct sim_kernel {
    int refs;
    char *name;
    struct sim_kernel_op op;
};

/* A box of bytes: depth slices of height rows. Addresses are device addresses or host pointers. */
struct sim_copy {
    uint64_t src, dst;
    size_t width, height, depth;
    size_t src_pitch, dst_pitch, src_slice, dst_slice;
    void *owned; /* a source captured at the call, freed with the operation */
    bool early;  /* the adversary may write before the end: host destination is page-locked */
};

struct sim_fill {
    uint64_t dst;
    size_t width, height, pitch; /* width in bytes */
    uint32_t value, unit_bytes;
};

struct sim_host_call {
    void (*function)(void *);
    CUstreamCallback callback;
    CUstream stream;
    void *data;
};

struct sim_write {
    uint64_t dst, value;
    uint32_t bytes;
};

struct sim_wait {
    uint64_t src, value;
    uint32_t bytes, condition;   /* CU_STREAM_WAIT_VALUE_... */
    _Atomic uint64_t *asked_for; /* not NULL: tells the other process that its work is waited for */
};

struct sim_op_list {
    struct sim_op **items;
    unsigned count, capacity;
    struct sim_op *first[4];
};

struct sim_op {
    uint8_t kind, unit, state;
    bool blocking; /* of a stream that the legacy stream synchronises with */
    bool handed;   /* a host function given to its thread */
    bool applied;  /* real clock: its effect is there before its end */
    int device, refs;
    unsigned waiting, asked;
    uint32_t generation; /* of the stream's slot when it was submitted */
    uint64_t seq, duration_ns, ready_ns, start_ns, end_ns;
    struct sim_stream *stream;
    struct sim_context *context;
    struct sim_op_list before, after;
    struct sim_op *next;                        /* in the queue it is in */
    struct sim_op *older, *newer;               /* all unfinished ones, by age */
    struct sim_op *ready_previous, *ready_next; /* virtual clock: those that may run */
    struct sim_op *handed_next;                 /* host functions on their way to their thread */
    union {
        struct sim_kernel *kernel;
        struct sim_copy copy;
        struct sim_fill fill;
        struct sim_host_call host;
        struct sim_write write;
        struct sim_wait wait;
        CUdeviceptr free;
    };
};

struct sim_op *sim_op_new(enum sim_op_kind kind, enum sim_unit_kind unit, uint64_t duration_ns);
struct sim_op *sim_op_clone(const struct sim_op *op);
void sim_op_hold(struct sim_op *op);
void sim_op_drop(struct sim_op *op);
void sim_op_after(struct sim_op *op, struct sim_op *before);
/* Puts an operation (owned by the call) at the end of a stream; *kept takes a reference. */
void sim_op_submit(struct sim_stream *stream, struct sim_op *op, struct sim_op **kept);
/* The same without the stream's own order: graph nodes. */
void sim_op_submit_loose(struct sim_stream *stream, struct sim_op *op);
/* What both clocks call when an operation's effect has been applied. */
void sim_op_finished(struct sim_op *op);
void sim_op_apply(struct sim_op *op);
bool sim_op_is_slow(const struct sim_op *op);
/* May the stream go on? An address that is no longer live lets it, as a fault. */
bool sim_wait_met(struct sim_op *op);
void sim_op_begin_early(struct sim_op *op);
bool sim_copy_move(const struct sim_copy *copy);

/* --- streams, events, contexts, devices --- */

struct sim_unit {
    struct sim_op *running, *ready; /* ready: by ready time */
    uint64_t free_ns;
};

struct sim_device {
    int ordinal;
    struct sim_unit units[SIM_UNITS];
    struct sim_context *primary;
    unsigned primary_retained, primary_flags;
    size_t used_bytes;
};

struct sim_stream {
    bool live, blocking;
    uint32_t generation, flags;
    int priority;
    uint64_t id, ordinal;
    struct sim_context *context;
    struct sim_op *tail;
    unsigned pending;
    struct sim_capture *capture;
    unsigned *capture_nodes, capture_node_count;
    struct sim_stream *next_in_context;
    pthread_t thread; /* of a per-thread stream */
};

struct sim_event {
    bool live, recorded, imported; /* imported: made by another process */
    uint32_t generation, flags;
    uint64_t ordinal;
    struct sim_context *context;
    struct sim_op *op;
    struct sim_mark *mark;       /* not NULL: other processes see it */
    struct sim_capture *capture; /* recorded in a capture: which, and after which nodes */
    uint64_t capture_id;
    unsigned *capture_nodes, capture_node_count;
};

struct sim_context {
    bool live, primary;
    uint32_t generation, flags;
    uint64_t id, ordinal;
    struct sim_device *device;
    struct sim_stream *legacy, *per_thread, *streams;
    unsigned blocking_pending;
    CUresult sticky;
};

struct sim {
    pthread_mutex_t lock;
    pthread_cond_t progress, engine_wake, callback_wake;
    bool virtual_clock, sampled, poison, engine_idle;
    unsigned waiters;
    const void *copying; /* GPUSIM_COPY_LOCKS: the thread whose copy keeps others out */
    int device_count;
    struct sim_device devices[SIM_MAX_DEVICES];
    struct sim_op *oldest, *newest;
    uint64_t next_seq, next_id;
};

extern struct sim sim;

enum sim_life { SIM_UNBORN, SIM_ALIVE, SIM_ENDED, SIM_FORKED };
extern _Atomic int sim_life;

void sim_lock(void);
void sim_unlock(void);
CUresult sim_start(void);
uint64_t sim_now(void);

/* A context as a thread keeps it: the slot and the generation it had. */
struct sim_context_ref {
    struct sim_context *context;
    uint32_t generation;
};

struct sim_thread {
    struct sim_context_ref stack[16];
    int depth; /* 0: stack[0] is what cuCtxSetCurrent gave, or nothing */
    CUstreamCaptureMode capture_mode;
    uint64_t ordinal;
    bool in_callback, per_thread_default, slack_set;
    char args[512];
};

extern __thread struct sim_thread sim_thread;

struct sim_context *sim_context_new(struct sim_device *device, unsigned flags);
void sim_context_end(struct sim_context *context);
bool sim_context_valid(const struct sim_context *context);
struct sim_context *sim_current(void);
struct sim_stream *sim_stream_new(struct sim_context *context, unsigned flags, int priority);
void sim_stream_end(struct sim_stream *stream);
/* The stream a handle means in this thread; NULL when it means none. */
struct sim_stream *sim_stream_of(CUstream handle);
struct sim_event *sim_event_new(struct sim_context *context, unsigned flags);
void sim_event_end(struct sim_event *event);
struct sim_event *sim_event_of(CUevent handle);
/* "s3", "e7", "c1" if the number is such a handle. */
bool sim_object_name(uint64_t handle, char *text, size_t size);

/* --- waiting (with the lock held; it is given up meanwhile) --- */

void sim_wait_op(struct sim_op *op);
void sim_wait_stream(struct sim_stream *stream);
void sim_wait_context(struct sim_context *context); /* NULL: everything */
void sim_wait_device(struct sim_device *device);
bool sim_query_op(struct sim_op *op);
/* An operation that is done when everything submitted so far to the stream is; NULL: it is. */
struct sim_op *sim_stream_last(struct sim_stream *stream);
/* One of those that a query of the stream is about and that is not done; NULL: it is. */
struct sim_op *sim_stream_pending(const struct sim_stream *stream);

/* --- the two clocks --- */

void sim_timeline_submit(struct sim_op *op);
void sim_timeline_wait(struct sim_op *op);
bool sim_timeline_query(struct sim_op *op);
void sim_timeline_host_done(struct sim_op *op);
void sim_timeline_start(void);
void sim_timeline_stop(void);

void sim_adversary_submit(struct sim_op *op);
void sim_adversary_wait(struct sim_op *op);
bool sim_adversary_query(struct sim_op *op);
void sim_adversary_reseed(uint64_t seed);
void sim_adversary_host_done(struct sim_op *op);
void sim_adversary_tick(void);
uint64_t sim_adversary_now(void);

void sim_callback_hand(struct sim_op *op);
/* A thread that takes no signals: those are the program's. */
bool sim_thread_create(pthread_t *thread, void *(*run)(void *));

/* --- memory (memory.c, own lock) --- */

enum sim_memory_kind {
    SIM_UNKNOWN, /* pageable, or nothing */
    SIM_DEVICE,
    SIM_POOL,
    SIM_VMM,
    SIM_MANAGED,
    SIM_IMPORTED, /* another process's */
    SIM_PINNED,
    SIM_REGISTERED,
};

struct sim_range {
    uint64_t base, bytes;
    char *alias;
    uint8_t kind;
    bool readable, dead; /* dead: freed in stream order, still mapped until then */
    bool sync_memops;
    int device;
    unsigned flags;
    uint64_t ordinal;
    uint64_t arena, arena_bytes;
    struct sim_context *context;
};

bool sim_memory_start(void);
/* CUDA_ERROR_OUT_OF_MEMORY when the device is full. */
CUresult sim_memory_alloc(struct sim_context *context, size_t bytes, enum sim_memory_kind kind,
                          CUdeviceptr *address);
bool sim_memory_free(uint64_t base);
/* Freed in stream order: calls may not name it any more. */
void sim_memory_mark_dead(uint64_t base);
void sim_memory_set_sync(uint64_t address, bool on);
bool sim_memory_find(uint64_t address, struct sim_range *range);
bool sim_memory_overlaps(uint64_t base, uint64_t bytes);
uint64_t sim_memory_add(struct sim_range range);
bool sim_memory_remove(uint64_t base, struct sim_range *removed);
void sim_memory_remove_context(struct sim_context *context);
bool sim_memory_set_access(uint64_t base, uint64_t bytes, bool readable);
/* Physical memory without an address, for cuMemCreate. */
CUresult sim_memory_create(int device, size_t bytes, uint64_t *arena);
void sim_memory_release(int device, uint64_t arena, size_t bytes);
char *sim_memory_arena(int device, uint64_t arena);
CUresult sim_memory_reserve(size_t bytes, size_t alignment, CUdeviceptr *address);
bool sim_memory_unreserve(CUdeviceptr address, size_t bytes);
bool sim_memory_reserved(CUdeviceptr address, size_t bytes);
/* Shows a part of a file, this process's or another's, at a reserved address. */
bool sim_memory_map(int file, uint64_t offset, CUdeviceptr address, size_t bytes);
int sim_memory_file(int device);
/* Where the host finds [address, address + bytes): NULL if that is device memory and not live. */
char *sim_memory_at(uint64_t address, size_t bytes);
bool sim_is_device_address(uint64_t address);
void sim_memory_info(int device, size_t *free_bytes, size_t *total_bytes);

/* --- capture and graphs (capture.c, graph.c) --- */

struct sim_node {
    struct sim_op *op; /* a template, cloned at each launch; owned by the graph */
    CUgraphNodeType type;
    unsigned index, *before, before_count;
    struct sim_graph *graph, *child;
    struct sim_event *event;
    bool removed;
};

struct sim_graph {
    uint32_t magic;
    struct sim_node **nodes;
    unsigned count, capacity;
    uint64_t ordinal;
};

struct sim_exec {
    uint32_t magic;
    struct sim_graph *graph;
    struct sim_op *last;
    uint64_t ordinal;
};

struct sim_capture {
    struct sim_capture *next;
    struct sim_stream *origin;
    struct sim_graph *graph;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool own_graph;   /* ended with the capture when that fails */
    CUresult failure; /* CUDA_SUCCESS while it may go on */
    uint64_t id;
};

struct sim_graph *sim_graph_new(void);
/* The graph a handle means; NULL: none. */
struct sim_graph *sim_graph_of(CUgraph handle);
void sim_graph_end(struct sim_graph *graph);
bool sim_graph_is_leaf(const struct sim_graph *graph, unsigned index);
struct sim_graph *sim_graph_copy(const struct sim_graph *graph);
struct sim_node *sim_graph_add(struct sim_graph *graph, struct sim_op *op, CUgraphNodeType type,
                               const unsigned *before, unsigned before_count);
void sim_graph_submit(struct sim_stream *stream, const struct sim_graph *graph,
                      struct sim_op *after, struct sim_op **last);
CUresult sim_capture_begin(struct sim_stream *stream, CUstreamCaptureMode mode,
                           struct sim_graph *into, const unsigned *after, unsigned after_count);
CUresult sim_capture_end(struct sim_stream *stream, struct sim_graph **graph);
CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, bool external);
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event);
void sim_capture_set(struct sim_stream *stream, const unsigned *nodes, unsigned count, bool add);
/* Is a call that might be unsafe under capture allowed now? Invalidates what it would break. */
CUresult sim_capture_allows_unsafe(void);
/* May this stream be used now? The legacy stream may not while a blocking stream captures. */
CUresult sim_capture_allows_stream(struct sim_stream *stream);
/* Is this the legacy stream while a blocking stream of its context captures? Breaks nothing. */
bool sim_capture_blocks_legacy(const struct sim_stream *stream);
void sim_capture_fail(struct sim_capture *capture, CUresult failure);
/* The first active capture of the context's streams; NULL: none. */
struct sim_capture *sim_capture_in(struct sim_context *context);
void sim_capture_stream_gone(struct sim_stream *stream);

/* Submits to the stream, or adds a node to the graph it is being captured into. *kept (may be
 * NULL) takes a reference to the operation where it really runs. */
CUresult sim_enqueue(struct sim_stream *stream, struct sim_op *op, struct sim_op **kept);

/* --- truth and log --- */

void sim_truth_interval(int device, enum sim_unit_kind unit, uint64_t start_ns, uint64_t end_ns);
void sim_truth_unknown_kernel(const char *name);
void sim_truth_end(void);
const char *sim_entry_name(unsigned id);
uint64_t sim_entry_count(unsigned id); /* calls so far */
unsigned sim_entry_total(void);
extern bool sim_log_on;
void sim_log_start(void);
void sim_log_line(const char *layer, const char *name, const char *args, int result);

#endif
