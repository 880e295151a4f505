/* object.c: the simulator's life, its contexts, streams and events.
 *
 * Handles are slots that are reused at once, last freed first, as a driver may: whoever keeps a
 * handle too long meets a stranger.
 * Thread rule: sim_lock. Failure rule: NULL when the slots are used up.
 */
#include "engine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct sim sim = {.lock = PTHREAD_MUTEX_INITIALIZER};
_Atomic int sim_life;
__thread struct sim_thread sim_thread;

/* --- slots --- */

struct slots {
    char *memory;
    size_t size, limit, used;
    size_t *free;
    size_t free_count;
};

static struct slots contexts = {.size = sizeof(struct sim_context), .limit = SIM_MAX_CONTEXTS};
static struct slots streams = {.size = sizeof(struct sim_stream), .limit = SIM_MAX_STREAMS};
static struct slots events = {.size = sizeof(struct sim_event), .limit = SIM_MAX_EVENTS};
static uint64_t ordinals[3];

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool slots_start(struct slots *slots)
{
    slots->memory = map(slots->size * slots->limit);
    slots->free = map(sizeof(size_t) * slots->limit);
    return slots->memory && slots->free;
}

static void *slots_take(struct slots *slots)
{
    if (slots->free_count > 0)
        return slots->memory + slots->size * slots->free[--slots->free_count];
    return slots->used < slots->limit ? slots->memory + slots->size * slots->used++ : NULL;
}

static void slots_give(struct slots *slots, const void *slot)
{
    slots->free[slots->free_count++] = (size_t)((const char *)slot - slots->memory) / slots->size;
}

static bool slots_holds(const struct slots *slots, const void *slot)
{
    size_t offset = (size_t)((const char *)slot - slots->memory);
    return slots->memory && offset < slots->used * slots->size && offset % slots->size == 0;
}

/* --- life --- */

void sim_lock(void)
{
    pthread_mutex_lock(&sim.lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&sim.lock);
}

static void end(void)
{
    int alive = SIM_ALIVE;
    if (!atomic_compare_exchange_strong(&sim_life, &alive, SIM_ENDED))
        return;
    sim_lock();
    sim_timeline_stop();
    sim_unlock();
    sim_truth_end();
}

static void forked(void)
{
    if (sim_life == SIM_ALIVE)
        sim_life = SIM_FORKED;
}

static bool start_conditions(void)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    return pthread_cond_init(&sim.progress, &monotonic) == 0 &&
           pthread_cond_init(&sim.engine_wake, &monotonic) == 0 &&
           pthread_cond_init(&sim.callback_wake, &monotonic) == 0;
}

__attribute__((constructor)) static void load_settings(void)
{
    sim_settings_load();
    sim.virtual_clock = strcmp(SIM_TEXT(CLOCK), "virtual") == 0;
    sim.sampled = strcmp(SIM_TEXT(BYTES), "sampled") == 0;
    sim.poison = SIM_NUMBER(POISON) < 0 ? sim.virtual_clock : SIM_NUMBER(POISON) != 0;
    int count = (int)SIM_NUMBER(DEVICES);
    sim.device_count = count < 0 ? 0 : count > SIM_MAX_DEVICES ? SIM_MAX_DEVICES : count;
    for (int i = 0; i < sim.device_count; i++)
        sim.devices[i].ordinal = i;
    sim_log_start();
}

/* With the lock held, at the first cuInit. */
CUresult sim_start(void)
{
    if (sim_life != SIM_UNBORN)
        return CUDA_SUCCESS;
    if (sim.device_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    if (!start_conditions() || !slots_start(&contexts) || !slots_start(&streams) ||
        !slots_start(&events) || !sim_memory_start())
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_life = SIM_ALIVE;
    sim_adversary_reseed((uint64_t)SIM_NUMBER(SEED));
    sim_timeline_start();
    pthread_atfork(NULL, NULL, forked);
    atexit(end);
    return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) uint64_t gpusim_now_ns(void)
{
    sim_lock();
    uint64_t now_ns = sim_now();
    sim_unlock();
    return now_ns;
}

__attribute__((visibility("default"))) void gpusim_reseed(uint64_t seed)
{
    sim_lock();
    if (sim_life == SIM_ALIVE && sim.virtual_clock)
        sim_adversary_reseed(seed);
    sim_unlock();
}

/* --- streams --- */

struct sim_stream *sim_stream_new(struct sim_context *context, unsigned flags, int priority)
{
    struct sim_stream *stream = slots_take(&streams);
    if (!stream)
        return NULL;
    uint32_t generation = stream->generation + 1;
    memset(stream, 0, sizeof(*stream));
    stream->generation = generation;
    stream->live = true;
    stream->flags = flags;
    stream->blocking = !(flags & CU_STREAM_NON_BLOCKING);
    stream->priority = priority;
    stream->id = ++sim.next_id;
    stream->ordinal = ++ordinals[0];
    stream->context = context;
    stream->next_in_context = context->streams;
    context->streams = stream;
    return stream;
}

/* What is queued still runs (CUDA Driver API, cuStreamDestroy). */
void sim_stream_end(struct sim_stream *stream)
{
    sim_capture_stream_gone(stream);
    struct sim_stream **at = &stream->context->streams;
    while (*at && *at != stream)
        at = &(*at)->next_in_context;
    if (*at)
        *at = stream->next_in_context;
    if (stream->tail)
        sim_op_drop(stream->tail);
    stream->tail = NULL;
    stream->live = false;
    stream->generation++;
    slots_give(&streams, stream);
}

static struct sim_stream *per_thread_stream(struct sim_context *context)
{
    pthread_t self = pthread_self();
    for (struct sim_stream *stream = context->per_thread; stream; stream = stream->next_in_context)
        if (pthread_equal(stream->thread, self))
            return stream;
    struct sim_stream *stream = sim_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (!stream)
        return NULL;
    context->streams = stream->next_in_context;
    stream->next_in_context = context->per_thread;
    context->per_thread = stream;
    stream->thread = self;
    return stream;
}

struct sim_stream *sim_stream_of(CUstream handle)
{
    if (!handle)
        handle = sim_thread.per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        struct sim_context *context = sim_current();
        if (!context)
            return NULL;
        return handle == CU_STREAM_LEGACY ? context->legacy : per_thread_stream(context);
    }
    struct sim_stream *stream = (struct sim_stream *)handle;
    return slots_holds(&streams, stream) && stream->live ? stream : NULL;
}

/* --- events --- */

struct sim_event *sim_event_new(struct sim_context *context, unsigned flags)
{
    struct sim_event *event = slots_take(&events);
    if (!event)
        return NULL;
    uint32_t generation = event->generation + 1;
    memset(event, 0, sizeof(*event));
    event->generation = generation;
    event->live = true;
    event->flags = flags;
    event->context = context;
    event->ordinal = ++ordinals[1];
    return event;
}

void sim_event_end(struct sim_event *event)
{
    if (event->op)
        sim_op_drop(event->op);
    free(event->capture_nodes);
    event->capture_nodes = NULL;
    event->op = NULL;
    event->live = false;
    slots_give(&events, event);
}

struct sim_event *sim_event_of(CUevent handle)
{
    struct sim_event *event = (struct sim_event *)handle;
    return slots_holds(&events, event) && event->live ? event : NULL;
}

static void end_events_of(const struct sim_context *context)
{
    for (size_t i = 0; i < events.used; i++) {
        struct sim_event *event = (struct sim_event *)(events.memory + i * events.size);
        if (event->live && event->context == context)
            sim_event_end(event);
    }
}

/* --- contexts --- */

struct sim_context *sim_context_new(struct sim_device *device, unsigned flags)
{
    struct sim_context *context = slots_take(&contexts);
    if (!context)
        return NULL;
    uint32_t generation = context->generation + 1;
    memset(context, 0, sizeof(*context));
    context->generation = generation;
    context->live = true;
    context->flags = flags;
    context->device = device;
    context->id = ++sim.next_id;
    context->ordinal = ++ordinals[2];
    context->legacy = sim_stream_new(context, CU_STREAM_DEFAULT, 0);
    if (!context->legacy)
        return NULL;
    context->legacy->blocking = false;
    context->streams = NULL;
    return context;
}

/* Its work is waited for, its memory, streams and events go with it. */
void sim_context_end(struct sim_context *context)
{
    sim_wait_context(context);
    end_events_of(context);
    while (context->streams)
        sim_stream_end(context->streams);
    while (context->per_thread) {
        struct sim_stream *stream = context->per_thread;
        context->per_thread = stream->next_in_context;
        sim_stream_end(stream);
    }
    sim_stream_end(context->legacy);
    sim_memory_remove_context(context);
    context->live = false;
    context->generation++;
    slots_give(&contexts, context);
}

bool sim_context_valid(const struct sim_context *context)
{
    return slots_holds(&contexts, context) && context->live;
}

struct sim_context *sim_current(void)
{
    struct sim_context_ref top = sim_thread.stack[sim_thread.depth];
    return top.context && top.context->live && top.context->generation == top.generation
               ? top.context
               : NULL;
}

bool sim_object_name(uint64_t handle, char *text, size_t size)
{
    const void *slot = (const void *)handle;
    if (slots_holds(&streams, slot))
        snprintf(text, size, "s%lu", ((const struct sim_stream *)slot)->ordinal);
    else if (slots_holds(&events, slot))
        snprintf(text, size, "e%lu", ((const struct sim_event *)slot)->ordinal);
    else if (slots_holds(&contexts, slot))
        snprintf(text, size, "c%lu", ((const struct sim_context *)slot)->ordinal);
    else
        return false;
    return true;
}
