/* inflight.h: what has been given to each stream, what is known to be done, when a GPU runs dry.
 *
 * Every stream counts its operations (seq) and remembers up to which one a wait has seen it done
 * (done). An event remembers the stream and count it was recorded at, so that waiting for it proves
 * as much; a stream that waits for an event inherits it when it is itself seen done. A GPU (one per
 * context) is dry when all kernels of all its streams are known to be done; copies do not count:
 * what is measured is the idle time of the compute engine.
 * Thread rule: counting is a plain add without a lock, a lost update between two threads that use
 * one stream at once costs accuracy only; the tables take one short lock. Failure rule: a full
 * table makes the GPU look busy, so that no idle time is charged that was not seen.
 */
#ifndef GB_INFLIGHT_H
#define GB_INFLIGHT_H

#include "cuda/hooks.h"

#define GB_STREAM_DEPENDENCIES 8
/* No stream has this handle: the cache of a thread is empty. */
#define GB_NO_STREAM ((CUstream) ~(uintptr_t)0)
/* Stands for those that were destroyed with work the host may notice. */
#define GB_ORPHANS ((CUstream)(~(uintptr_t)0 - 1))

struct gb_site;

struct gb_gpu {
    CUcontext context;
    uint32_t dry;             /* all kernels are known to be done */
    uint32_t streams_missing; /* the table of streams was full: never dry */
    uint64_t dry_ns;          /* since when; idle time before it is already charged */
    struct gb_site *dry_site; /* who made it so; NULL: there was no kernel yet */
    uint32_t tid;             /* of the only thread that has used it; GB_MANY_THREADS */
    struct gb_stream *streams;
};
#define GB_MANY_THREADS UINT32_MAX

struct gb_dependency {
    struct gb_stream *stream;
    uint64_t seq; /* of that stream */
    uint64_t at;  /* of the waiting stream */
};

struct gb_stream {
    CUcontext context;
    CUstream handle;
    uint32_t tid; /* of the thread, for the per-thread default stream */
    uint32_t used;
    struct gb_gpu *gpu;
    uint64_t seq;           /* operations given to it */
    uint64_t kernel_seq;    /* seq of the last one that runs on the compute engine */
    uint64_t done;          /* operations known to be done */
    uint64_t not_kernels;   /* operations among seq that are copies and waits */
    uint64_t host_sees_seq; /* seq of the last one that writes host memory */
    uint64_t host_runs_seq; /* ... that runs host code, or waits for the host */
    /* What is owed for copies on it (debt.h): up to which operation, the event behind it, the
     * number of the debt and the thread it began in; and the newest debt of others that it waits
     * for. */
    uint64_t debt_seq, debt_id, fenced_id;
    CUevent debt_event;
    uint32_t debt_tid;
    struct gb_stream *capturing; /* capture.c: the stream on which the capture began that it takes
                                  * part in, or NULL; and the counts from before */
    uint64_t capture_seq, capture_kernel_seq, capture_not_kernels;
    struct gb_stream *next_of_gpu;
    struct gb_dependency waits[GB_STREAM_DEPENDENCIES];
    uint32_t wait_next;
};

/* An operation was given to the stream: a kernel, or anything else. */
static inline void gb_stream_given_kernel(struct gb_stream *stream)
{
    uint64_t seq = stream->seq + 1;
    stream->seq = seq;
    stream->kernel_seq = seq;
}

static inline void gb_stream_given_other(struct gb_stream *stream)
{
    stream->seq++;
    stream->not_kernels++;
}

/* The same for an operation that must not be taken for done, also where two threads counted at once
 * and an update was lost. Called behind the real call; gives its number. */
static inline uint64_t gb_stream_given_marked(struct gb_stream *stream)
{
    uint64_t seq = __atomic_load_n(&stream->seq, __ATOMIC_ACQUIRE),
             done = __atomic_load_n(&stream->done, __ATOMIC_ACQUIRE);
    seq = (seq > done ? seq : done) + 1;
    __atomic_store_n(&stream->seq, seq, __ATOMIC_RELEASE);
    stream->not_kernels++;
    return seq;
}

/* What the host may notice of work that is not known to be done, on any stream of any GPU. It tells
 * whether a copy may be taken before the work ahead of it is done (GB_HOST_RUNS: somebody may still
 * write its source), and whether the call may return before (GB_HOST_SEES: the program may look at
 * what that work writes). Captured operations do not run; the launch of their graph does. */
enum { GB_HOST_SEES = 1, GB_HOST_RUNS = 2 };
uint32_t gb_outstanding(void);

/* Something of this kind has been given to the stream; NULL: the stream is not known, and from now
 * on everything is outstanding. */
void gb_stream_host_sees(struct gb_stream *stream);
void gb_stream_host_runs(struct gb_stream *stream);
/* Kernels may share memory with the host from now on (managed or mapped memory): no wait that the
 * hooks see tells when the host may look. */
void gb_host_shares_memory(void);

/* The stream with this handle in the calling thread's context; NULL when the table is full. */
struct gb_stream *gb_stream_of(CUstream handle);
/* The GPU of the calling thread's context. */
struct gb_gpu *gb_gpu_here(void);

/* Direct-mapped: a collision forgets the older event. */
#define GB_EVENT_SLOTS 4096 /* power of two */
struct gb_event {
    CUevent event;
    struct gb_stream *stream;
    uint64_t seq;
};
extern struct gb_event gb_events[GB_EVENT_SLOTS];

static inline struct gb_event *gb_event_slot(CUevent event)
{
    uint64_t h = (uintptr_t)event * UINT64_C(0x9e3779b97f4a7c15);
    return &gb_events[h >> 52];
}

/* The event was recorded on the stream. Readers check the handle before and after, so that a
 * half-written slot is not believed. */
static inline void gb_event_recorded(CUevent event, struct gb_stream *stream)
{
    struct gb_event *e = gb_event_slot(event);
    __atomic_store_n(&e->event, NULL, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&e->stream, stream, __ATOMIC_RELAXED);
    __atomic_store_n(&e->seq, stream->seq, __ATOMIC_RELAXED);
    __atomic_store_n(&e->event, event, __ATOMIC_RELEASE);
}
/* The stream waits for the event. */
void gb_stream_waits(struct gb_stream *stream, CUevent event);
/* What a wait for the event proves: false when nothing is known about it. */
bool gb_event_position(CUevent event, struct gb_stream **stream, uint64_t *seq);
bool gb_event_is_done(CUevent event);

/* A wait has shown that the stream's operations up to seq are done. */
void gb_stream_done(struct gb_stream *stream, uint64_t seq);
/* Are all kernels of the GPU known to be done? */
bool gb_gpu_is_done(const struct gb_gpu *gpu);
/* Everything given to the streams of the GPU so far, and that all of it is done. At most
 * GB_SNAPSHOT_MAX streams; the others stay as they are. */
#define GB_SNAPSHOT_MAX 256
struct gb_snapshot {
    uint32_t count;
    struct gb_stream *stream[GB_SNAPSHOT_MAX];
    uint64_t seq[GB_SNAPSHOT_MAX];
};
void gb_gpu_snapshot(struct gb_gpu *gpu, struct gb_snapshot *out);
void gb_snapshot_done(const struct gb_snapshot *snapshot);

/* The events of debt.h go with their contexts. */
void gb_streams_forget_debt_events(void);

/* The stream is about to be destroyed: what it still has to do goes on, and its handle may be given
 * out again. */
void gb_stream_ends(CUstream handle);

/* Do several threads give work to several GPUs? */
bool gb_gpus_are_shared(void);

uint64_t gb_kernels_total(void);

#endif
