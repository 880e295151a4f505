/* stall.c: accounting of blocked and idle time. See stall.h for the model and its rules. */
#include "stall/stall.h"

#include "gpu/ranges.h"
#include "options/config.h"
#include "policies/policy.h"
#include "record/record.h"
#include "stall/site.h"
#include "stall/stamp.h"
#include "stall/transfer_rate.h"

#define UNKNOWN UINT64_MAX

static struct {
    gb_counter first_kernel_ns, last_dry_ns, idle_ns, cost_ns, stamp_cost_ps;
    gb_counter forwarded_copies, forwarded_bytes, unseen_copies;
} totals;

/* ---- charging ---- */

static void say(const struct gb_stall_event *event)
{
    if (event->blocked_ns >= gb_config.stall_ns || event->idle_ns >= gb_config.stall_ns)
        gb_record_stall(event);
}

static struct gb_site *site_of(struct gb_call *call)
{
    gb_call_stack(call);
    return gb_site_find(call->hook, call->stack_id, call->caller);
}

struct split {
    uint64_t queued_ns, transfer_ns; /* UNKNOWN: not known */
};

static void charge_blocked(struct gb_call *call, struct gb_site *site, uint64_t bytes,
                           struct split split, uint64_t idle_ns)
{
    uint64_t blocked = call->end_ns - call->start_ns;
    GB_COUNT(site->calls, 1);
    GB_COUNT(site->bytes, bytes);
    GB_COUNT(site->blocked_ns, blocked);
    if (split.queued_ns == UNKNOWN) {
        GB_COUNT(site->unsplit_ns, blocked);
    } else {
        GB_COUNT(site->queued_ns, split.queued_ns);
        GB_COUNT(site->transfer_ns, split.transfer_ns);
    }
    if (call->staged)
        GB_COUNT(site->staged, 1);
    if (blocked > GB_READ(site->max_blocked_ns))
        __atomic_store_n(&site->max_blocked_ns, blocked, __ATOMIC_RELAXED);
    if (blocked >= gb_config.stall_ns)
        gb_site_native(site);
    say(&(struct gb_stall_event){.start_ns = call->start_ns,
                                 .blocked_ns = blocked,
                                 .queued_ns = split.queued_ns,
                                 .transfer_ns = split.transfer_ns,
                                 .idle_ns = idle_ns,
                                 .bytes = bytes,
                                 .site = site->id,
                                 .tid = gb_thread_id()});
}

static void charge_idle(struct gb_site *site, uint64_t ns)
{
    GB_COUNT(site->idle_ns, ns);
    GB_COUNT(totals.idle_ns, ns);
}

/* Charges the time since the GPU ran dry up to `now` to who made it so. */
static void charge_bubble(struct gb_gpu *gpu, uint64_t now)
{
    struct gb_site *site = gpu->dry_site;
    uint64_t since = gpu->dry_ns;
    if (!site || now <= since)
        return;
    charge_idle(site, now - since);
    GB_COUNT(site->bubbles, 1);
    say(&(struct gb_stall_event){.start_ns = since,
                                 .queued_ns = UNKNOWN,
                                 .transfer_ns = UNKNOWN,
                                 .idle_ns = now - since,
                                 .site = site->id,
                                 .tid = gb_thread_id()});
}

/* One thread takes the bubble; the others find the GPU busy already. */
GB_COLD void gb_stall_ends_bubble(struct gb_gpu *gpu)
{
    uint32_t dry = 1;
    if (!__atomic_compare_exchange_n(&gpu->dry, &dry, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    uint64_t now = gb_now_ns(), never = 0;
    __atomic_compare_exchange_n(&totals.first_kernel_ns, &never, now, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    charge_bubble(gpu, now);
}

/* Work that a wait has shown to be done may have been the GPU's last: then it is dry since `now`.
 */
static bool ran_dry(struct gb_gpu *gpu, struct gb_site *site, uint64_t now)
{
    if (__atomic_load_n(&gpu->dry, __ATOMIC_RELAXED) || !gb_gpu_is_done(gpu))
        return false;
    gpu->dry_ns = now;
    gpu->dry_site = site;
    __atomic_store_n(&totals.last_dry_ns, now, __ATOMIC_RELAXED);
    __atomic_store_n(&gpu->dry, 1, __ATOMIC_SEQ_CST);
    if (!gb_gpu_is_done(gpu)) /* another thread gave it work meanwhile */
        __atomic_store_n(&gpu->dry, 0, __ATOMIC_RELAXED);
    return true;
}

/* ---- copies ---- */

bool gb_copy_is_background(const struct gb_copy *copy)
{
    if (copy->direction == GB_COPY_D2D)
        return true; /* the synchronous form does not wait either ("API synchronization behavior")
                      */
    if (!copy->async)
        return false;
    switch (copy->direction) {
    case GB_COPY_H2D:
        return copy->bytes <= GB_SMALL_COPY_BYTES ||
               gb_ranges_touch(copy->src, copy->bytes) != GB_RANGE_NONE;
    case GB_COPY_D2H:
        return gb_ranges_touch(copy->dst, copy->bytes) != GB_RANGE_NONE;
    case GB_COPY_OTHER: /* the driver knows, and a policy asks it */
        return copy->bytes <= GB_SMALL_COPY_BYTES;
    default:
        return true;
    }
}

/* A call of which it is not known what it waited for. */
static void account_late(struct gb_call *call, uint64_t bytes)
{
    if (GB_LIKELY(!gb_call_is_late(call)))
        return;
    gb_call_times(call);
    charge_blocked(call, site_of(call), bytes, (struct split){UNKNOWN, UNKNOWN}, 0);
}

/* A copy that was given to the stream and is not done: device to device ones use the compute
 * engine's memory path and end a bubble, the others leave it running. */
static void account_background(struct gb_call *call, const struct gb_copy *copy)
{
    struct gb_stream *stream = call->stream;
    if (stream && copy->direction == GB_COPY_D2D) {
        gb_stamp_kernel(call->handle);
    } else if (copy->direction == GB_COPY_D2H || copy->direction == GB_COPY_OTHER) {
        gb_stream_host_sees(stream);
    } else if (stream) {
        gb_stream_given_other(stream);
    }
    account_late(call, copy->bytes);
}

static const void *host_end(const struct gb_copy *copy)
{
    return copy->direction == GB_COPY_D2H ? copy->dst : copy->src;
}

static struct split split_copy(const struct gb_call *call, const struct gb_copy *copy)
{
    uint64_t blocked = call->end_ns - call->start_ns;
    uint64_t transfer;
    if (!call->staged && gb_ranges_touch(host_end(copy), copy->bytes) == GB_RANGE_NONE)
        gb_rate_learn(copy->direction, copy->bytes, blocked, !call->was_done);
    if (call->staged) {
        transfer = blocked > call->queued_ns ? blocked - call->queued_ns : 0;
    } else if (call->was_done) {
        transfer = blocked;
    } else if (copy->bytes <= GB_SMALL_COPY_BYTES) {
        transfer = 0;
    } else if (!gb_rate_estimate(copy->direction, copy->bytes, &transfer)) {
        return (struct split){UNKNOWN, UNKNOWN};
    }
    if (transfer > blocked)
        transfer = blocked;
    return (struct split){blocked - transfer, transfer};
}

/* Idle time in a copy that is done when it returns, and with it all earlier work of its stream. On
 * a dry GPU the whole copy is idle time, and the bubble goes on behind it in its name. Before the
 * first kernel nobody is charged: start-up is not a stall. */
static uint64_t idle_in_copy(const struct gb_call *call, struct gb_site *site, struct split split)
{
    struct gb_gpu *gpu = call->stream->gpu;
    gb_stream_done(call->stream, call->seq);
    if (!call->was_dry || !__atomic_load_n(&gpu->dry, __ATOMIC_RELAXED))
        return ran_dry(gpu, site, call->end_ns) && split.transfer_ns != UNKNOWN ? split.transfer_ns
                                                                                : 0;
    if (!gpu->dry_site)
        return 0;
    charge_bubble(gpu, call->start_ns);
    /* The copy of another thread may have been charged with a part of it. */
    uint64_t since = gpu->dry_ns > call->start_ns ? gpu->dry_ns : call->start_ns;
    gpu->dry_ns = call->end_ns;
    gpu->dry_site = site;
    __atomic_store_n(&totals.last_dry_ns, call->end_ns, __ATOMIC_RELAXED);
    return call->end_ns > since ? call->end_ns - since : 0;
}

static void account_blocking(struct gb_call *call, const struct gb_copy *copy)
{
    gb_call_times(call);
    struct gb_site *site = site_of(call);
    struct split split = split_copy(call, copy);
    uint64_t idle = call->stream ? idle_in_copy(call, site, split) : 0;
    charge_idle(site, idle);
    charge_blocked(call, site, copy->bytes, split, idle);
}

/* A staged copy that has returned early. On a dry GPU the bubble goes on in its name; what it and
 * the work behind it wait for later is not seen from here. */
static void account_owed(struct gb_call *call, const struct gb_copy *copy)
{
    gb_call_times(call);
    struct gb_site *site = site_of(call);
    struct gb_gpu *gpu = call->stream->gpu;
    uint64_t blocked = call->end_ns - call->start_ns;
    uint64_t queued = call->queued_ns < blocked ? call->queued_ns : blocked;
    if (call->was_dry && gpu->dry_site && __atomic_load_n(&gpu->dry, __ATOMIC_RELAXED)) {
        GB_COUNT(totals.unseen_copies, 1);
        charge_bubble(gpu, call->start_ns);
        gpu->dry_ns = call->start_ns;
        gpu->dry_site = site;
    }
    charge_blocked(call, site, copy->bytes, (struct split){queued, blocked - queued}, 0);
}

/* Was all earlier work of its stream done when it returned? Not where it may have been a device to
 * device copy, nor where it was captured. */
static bool has_waited(const struct gb_call *call, const struct gb_copy *copy)
{
    if (call->staged)
        return true;
    return !call->background && copy->direction != GB_COPY_OTHER &&
           !(call->stream && __atomic_load_n(&call->stream->capturing, __ATOMIC_RELAXED));
}

void gb_stall_copy(struct gb_call *call, const struct gb_copy *copy, bool ok)
{
    gb_call_returns(call);
    if (ok && !copy->bytes)
        ok = false; /* nothing was copied and nothing waited for */
    if (ok && !call->background && !call->staged && copy->direction == GB_COPY_H2D &&
        copy->bytes > GB_SMALL_COPY_BYTES &&
        gb_ranges_touch(copy->src, copy->bytes) == GB_RANGE_NONE) {
        GB_COUNT(totals.forwarded_copies, 1);
        GB_COUNT(totals.forwarded_bytes, copy->bytes);
    }
    if (call->owed)
        account_owed(call, copy);
    else if (ok && has_waited(call, copy))
        account_blocking(call, copy);
    else if (ok)
        account_background(call, copy);
    gb_call_leave(call);
}

/* ---- waits ---- */

static void account_wait(struct gb_call *call, struct gb_gpu *gpu, bool was_done)
{
    if (was_done && !gb_call_is_late(call))
        return; /* it had nothing to wait for */
    gb_call_times(call);
    struct gb_site *site = site_of(call);
    uint64_t blocked = call->end_ns - call->start_ns;
    charge_blocked(call, site, 0, (struct split){blocked, 0}, 0);
    if (gpu)
        ran_dry(gpu, site, call->end_ns);
}

void gb_stall_stream(struct gb_call *call, bool ok)
{
    gb_call_returns(call);
    if (ok && call->stream) {
        gb_stream_done(call->stream, call->seq);
        account_wait(call, call->stream->gpu, call->was_done);
    }
    gb_call_leave(call);
}

void gb_stall_elided(struct gb_call *call)
{
    gb_call_returns(call);
    GB_COUNT(site_of(call)->elided, 1);
    gb_call_leave(call);
}

void gb_stall_event(struct gb_call *call, CUevent event, bool ok)
{
    struct gb_stream *stream;
    uint64_t seq;
    gb_call_returns(call);
    if (ok && gb_event_position(event, &stream, &seq)) {
        bool was_done = stream->done >= seq;
        gb_stream_done(stream, seq);
        account_wait(call, stream->gpu, was_done);
    } else if (ok) {
        account_wait(call, NULL, true);
    }
    gb_call_leave(call);
}

void gb_stall_gpu(struct gb_call *call, struct gb_gpu *gpu, const struct gb_snapshot *snapshot,
                  bool ok)
{
    gb_call_returns(call);
    if (ok && gpu) {
        gb_snapshot_done(snapshot);
        account_wait(call, gpu, call->was_dry);
    }
    gb_call_leave(call);
}

void gb_stall_query(struct gb_call *call, struct gb_stream *stream, uint64_t seq)
{
    gb_call_returns(call);
    if (stream && stream->done < seq) {
        gb_stream_done(stream, seq);
        gb_call_times(call);
        if (!__atomic_load_n(&stream->gpu->dry, __ATOMIC_RELAXED) && gb_gpu_is_done(stream->gpu))
            ran_dry(stream->gpu, site_of(call), call->end_ns);
    }
    gb_call_leave(call);
}

void gb_stall_other(struct gb_call *call, uint64_t bytes)
{
    gb_call_returns(call);
    account_late(call, bytes);
    gb_call_leave(call);
}

/* ---- our own cost, totals ---- */

void gb_stall_cost(uint64_t ns)
{
    GB_COUNT(totals.cost_ns, ns);
}

/* Times the stamp of a kernel on a stream and a GPU of its own, since measuring it in place would
 * cost more than the stamp does. */
void gb_stall_calibrate(void)
{
    enum { ROUNDS = 2000 };
    static struct gb_gpu gpu;
    static struct gb_stream stream = {.gpu = &gpu};
    struct gb_thread *t = &gb_thread;
    CUstream handle = t->last_stream;
    struct gb_stream *slot = t->last_slot;
    t->last_slot = &stream;
    uint64_t start = gb_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        (void)gb_stamp_kernel_fast(handle);
        __asm__ volatile("" ::: "memory");
    }
    uint64_t spent = gb_now_ns() - start;
    t->last_slot = slot;
    __atomic_store_n(&totals.stamp_cost_ps, spent * 1000 / ROUNDS, __ATOMIC_RELAXED);
}

void gb_totals_read(struct gb_totals *out)
{
    *out = (struct gb_totals){
        .first_enqueue_ns = GB_READ(totals.first_kernel_ns),
        .last_drain_ns = GB_READ(totals.last_dry_ns),
        .idle_ns = GB_READ(totals.idle_ns),
        .launches = gb_kernels_total(),
        .forwarded_copies = GB_READ(totals.forwarded_copies),
        .forwarded_bytes = GB_READ(totals.forwarded_bytes),
        .unseen_copies = GB_READ(totals.unseen_copies),
    };
    out->hook_ns = GB_READ(totals.cost_ns) + out->launches * GB_READ(totals.stamp_cost_ps) / 1000;
    gb_policy_totals(out);
}
