/* inflight.c: tables of GPUs, streams and events. See inflight.h for the rules. */
#include "gpu/inflight.h"

#include "base/lock.h"
#include "gpu/capture.h"
#include "record/counters.h"
#include "stall/call.h"

#include <string.h>

#define GPUS_MAX     16
#define STREAM_SLOTS 1024 /* power of two */
#define STREAMS_MAX  (STREAM_SLOTS * 3 / 4)
#define DEPTH_MAX    4 /* of waits for streams that wait themselves */

static struct gb_gpu gpus[GPUS_MAX];
static uint32_t gpu_count;
static struct gb_stream streams[STREAM_SLOTS];
static uint32_t stream_count;
struct gb_event gb_events[GB_EVENT_SLOTS];
static gb_lock lock; /* adding GPUs and streams, and every list of waits */

static uint32_t hash_of(const void *a, const void *b)
{
    uint64_t h = ((uintptr_t)a ^ (uintptr_t)b * 31) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 40);
}

/* ---- GPUs ---- */

static struct gb_gpu *find_gpu(CUcontext context)
{
    uint32_t count = __atomic_load_n(&gpu_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (gpus[i].context == context)
            return &gpus[i];
    return NULL;
}

static struct gb_gpu *add_gpu(CUcontext context)
{
    struct gb_gpu *gpu = find_gpu(context);
    if (gpu || gpu_count == GPUS_MAX)
        return gpu;
    gpu = &gpus[gpu_count];
    *gpu = (struct gb_gpu){.context = context, .dry = 1, .dry_ns = gb_now_ns()};
    __atomic_store_n(&gpu_count, gpu_count + 1, __ATOMIC_RELEASE);
    return gpu;
}

struct gb_gpu *gb_gpu_here(void)
{
    CUcontext context = gb_thread_context();
    struct gb_gpu *gpu = find_gpu(context);
    if (gpu || !context)
        return gpu;
    gb_lock_acquire(&lock);
    gpu = add_gpu(context);
    gb_lock_release(&lock);
    return gpu;
}

CUcontext gb_only_context(void)
{
    return __atomic_load_n(&gpu_count, __ATOMIC_ACQUIRE) == 1 ? gpus[0].context : NULL;
}

/* ---- streams ---- */

/* A slot of the key, or the empty one where it belongs. */
static struct gb_stream *probe(CUcontext context, CUstream handle, uint32_t tid)
{
    for (uint32_t i = hash_of(context, handle);; i++) {
        struct gb_stream *s = &streams[i & (STREAM_SLOTS - 1)];
        if (!__atomic_load_n(&s->used, __ATOMIC_ACQUIRE) ||
            (s->handle == handle && s->context == context && s->tid == tid))
            return s;
    }
}

GB_COLD static struct gb_stream *add_stream(CUcontext context, CUstream handle, uint32_t tid)
{
    gb_lock_acquire(&lock);
    struct gb_gpu *gpu = add_gpu(context);
    struct gb_stream *s = gpu ? probe(context, handle, tid) : NULL;
    if (s && !s->used) {
        if (stream_count < STREAMS_MAX) {
            s->context = context, s->handle = handle, s->tid = tid, s->gpu = gpu;
            s->next_of_gpu = gpu->streams;
            __atomic_store_n(&gpu->streams, s, __ATOMIC_RELEASE);
            stream_count++;
            __atomic_store_n(&s->used, 1, __ATOMIC_RELEASE);
        } else {
            gpu->streams_missing = 1;
            GB_COUNT(gb_counters.streams_full, 1);
            s = NULL;
        }
    }
    gb_lock_release(&lock);
    return s;
}

/* The first thread that uses a GPU is remembered, and that there was another. */
static void note_thread(struct gb_gpu *gpu)
{
    uint32_t tid = gb_thread_id(), known = __atomic_load_n(&gpu->tid, __ATOMIC_RELAXED);
    if (GB_UNLIKELY(known != tid && known != GB_MANY_THREADS))
        __atomic_store_n(&gpu->tid, known ? GB_MANY_THREADS : tid, __ATOMIC_RELAXED);
}

bool gb_gpus_are_shared(void)
{
    uint32_t count = __atomic_load_n(&gpu_count, __ATOMIC_ACQUIRE);
    uint32_t first = __atomic_load_n(&gpus[0].tid, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count && count > 1; i++)
        if (first == GB_MANY_THREADS || __atomic_load_n(&gpus[i].tid, __ATOMIC_RELAXED) != first)
            return true;
    return false;
}

struct gb_stream *gb_stream_of(CUstream handle)
{
    CUcontext context = gb_thread_context();
    if (!context)
        return NULL;
    uint32_t tid = 0;
    if (!handle)
        handle = CU_STREAM_LEGACY;
    else if (handle == CU_STREAM_PER_THREAD)
        tid = gb_thread_id();
    struct gb_stream *s = probe(context, handle, tid);
    if (GB_UNLIKELY(!s->used) && !(s = add_stream(context, handle, tid)))
        return NULL;
    note_thread(s->gpu);
    return s;
}

/* ---- events ---- */

bool gb_event_position(CUevent event, struct gb_stream **stream, uint64_t *seq)
{
    struct gb_event *e = gb_event_slot(event);
    if (!event || __atomic_load_n(&e->event, __ATOMIC_ACQUIRE) != event)
        return false;
    *stream = __atomic_load_n(&e->stream, __ATOMIC_RELAXED);
    *seq = __atomic_load_n(&e->seq, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&e->event, __ATOMIC_RELAXED) == event;
}

bool gb_event_is_done(CUevent event)
{
    struct gb_stream *stream;
    uint64_t seq;
    return gb_event_position(event, &stream, &seq) && stream->done >= seq;
}

static void add_wait(struct gb_stream *waiter, struct gb_stream *stream, uint64_t seq)
{
    for (uint32_t i = 0; i < GB_STREAM_DEPENDENCIES; i++)
        if (waiter->waits[i].stream == stream && waiter->waits[i].at <= waiter->done) {
            waiter->waits[i] = (struct gb_dependency){stream, seq, waiter->seq};
            return;
        }
    uint32_t next = waiter->wait_next++ % GB_STREAM_DEPENDENCIES;
    waiter->waits[next] = (struct gb_dependency){stream, seq, waiter->seq};
}

void gb_stream_waits(struct gb_stream *stream, CUevent event)
{
    struct gb_stream *other;
    uint64_t seq;
    if (!gb_event_position(event, &other, &seq) || other == stream)
        return;
    if (__atomic_load_n(&other->capturing, __ATOMIC_ACQUIRE) && seq > other->capture_seq)
        gb_capture_joins(stream, other);
    if (__atomic_load_n(&stream->capturing, __ATOMIC_ACQUIRE))
        return; /* captured: it orders nothing that runs */
    gb_stream_given_other(stream);
    gb_lock_acquire(&lock);
    add_wait(stream, other, seq);
    gb_lock_release(&lock);
}

/* ---- what is done ---- */

static void mark_done(struct gb_stream *stream, uint64_t seq, int depth)
{
    if (stream->done >= seq)
        return;
    stream->done = seq;
    for (uint32_t i = 0; i < GB_STREAM_DEPENDENCIES && depth < DEPTH_MAX; i++) {
        const struct gb_dependency *d = &stream->waits[i];
        if (d->stream && d->at <= seq)
            mark_done(d->stream, d->seq, depth + 1);
    }
}

void gb_stream_done(struct gb_stream *stream, uint64_t seq)
{
    gb_lock_acquire(&lock);
    mark_done(stream, seq, 0);
    gb_lock_release(&lock);
}

bool gb_gpu_is_done(const struct gb_gpu *gpu)
{
    const struct gb_stream *s = __atomic_load_n(&gpu->streams, __ATOMIC_ACQUIRE);
    for (; s; s = s->next_of_gpu)
        if (__atomic_load_n(&s->done, __ATOMIC_RELAXED) <
            __atomic_load_n(&s->kernel_seq, __ATOMIC_RELAXED))
            return false;
    return !gpu->streams_missing;
}

void gb_gpu_snapshot(struct gb_gpu *gpu, struct gb_snapshot *out)
{
    out->count = 0;
    struct gb_stream *s = __atomic_load_n(&gpu->streams, __ATOMIC_ACQUIRE);
    for (; s && out->count < GB_SNAPSHOT_MAX; s = s->next_of_gpu) {
        out->stream[out->count] = s;
        out->seq[out->count++] = s->seq;
    }
}

void gb_snapshot_done(const struct gb_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->count; i++)
        gb_stream_done(snapshot->stream[i], snapshot->seq[i]);
}

/* ---- what the host may notice ---- */

static uint32_t always_outstanding;

void gb_host_shares_memory(void)
{
    __atomic_store_n(&always_outstanding, GB_HOST_SEES | GB_HOST_RUNS, __ATOMIC_RELEASE);
}

static bool runs(const struct gb_stream *stream)
{
    return !__atomic_load_n(&stream->capturing, __ATOMIC_ACQUIRE);
}

void gb_stream_host_sees(struct gb_stream *stream)
{
    if (GB_UNLIKELY(!stream))
        gb_host_shares_memory();
    else if (runs(stream))
        __atomic_store_n(&stream->host_sees_seq, gb_stream_given_marked(stream), __ATOMIC_RELEASE);
}

void gb_stream_host_runs(struct gb_stream *stream)
{
    gb_stream_host_sees(stream);
    if (GB_LIKELY(stream != NULL) && runs(stream))
        __atomic_store_n(&stream->host_runs_seq, stream->host_sees_seq, __ATOMIC_RELEASE);
}

uint32_t gb_outstanding(void)
{
    uint32_t found = __atomic_load_n(&always_outstanding, __ATOMIC_ACQUIRE);
    uint32_t count = __atomic_load_n(&gpu_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        const struct gb_stream *s = __atomic_load_n(&gpus[i].streams, __ATOMIC_ACQUIRE);
        for (; s; s = s->next_of_gpu) {
            uint64_t done = __atomic_load_n(&s->done, __ATOMIC_RELAXED);
            if (__atomic_load_n(&s->host_sees_seq, __ATOMIC_ACQUIRE) > done)
                found |= GB_HOST_SEES;
            if (__atomic_load_n(&s->host_runs_seq, __ATOMIC_ACQUIRE) > done)
                found |= GB_HOST_RUNS;
        }
    }
    return found;
}

void gb_streams_forget_debt_events(void)
{
    for (uint32_t i = 0; i < STREAM_SLOTS; i++)
        __atomic_store_n(&streams[i].debt_event, NULL, __ATOMIC_RELEASE);
}

/* Only a wait for the whole context tells when the work of such a stream is done. */
void gb_stream_ends(CUstream handle)
{
    struct gb_stream *stream = gb_stream_of(handle);
    if (!stream || !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return;
    if (stream->host_runs_seq > stream->done)
        gb_stream_host_runs(gb_stream_of(GB_ORPHANS));
    else if (stream->host_sees_seq > stream->done)
        gb_stream_host_sees(gb_stream_of(GB_ORPHANS));
    stream->host_sees_seq = stream->host_runs_seq = 0;
}

uint64_t gb_kernels_total(void)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < STREAM_SLOTS; i++)
        total += streams[i].used ? streams[i].seq - streams[i].not_kernels : 0;
    return total;
}
