/* debt.c: the ledger of owed waits. See debt.h for the model and the rules. */
#include "gpu/debt.h"

#include "base/lock.h"
#include "cuda/driver_api.h"
#include "options/config.h"
#include "record/counters.h"
#include "stall/call.h"
#include "stall/stamp.h"

#define DEBTS_MAX 64

struct gb_debts gb_debts;
static struct gb_stream *debtors[DEBTS_MAX];
static gb_lock lock;

/* A debt as it was when it was looked at; the stream may owe a newer one meanwhile. */
struct debt {
    struct gb_stream *stream;
    CUevent event;
    uint64_t id, seq;
};

/* Not in a forked child, and not when the process ends. */
static bool is_on(void)
{
    return __atomic_load_n(&gb_state, __ATOMIC_RELAXED) == GB_STATE_ARMED;
}

bool gb_debt_is_possible(void)
{
    return __atomic_load_n(&gb_state, __ATOMIC_RELAXED) != GB_STATE_OFF &&
           (gb_config_policy_on((enum gb_switch)gb_config.h2d, GB_PROFILE_SAFE) ||
            gb_config_policy_on((enum gb_switch)gb_config.elide, GB_PROFILE_SAFE));
}

/* ---- the table ---- */

static uint32_t read_open(struct debt *out, uint64_t newer_than)
{
    uint32_t count = 0;
    gb_lock_acquire(&lock);
    for (uint32_t i = 0; i < gb_debts.open; i++)
        if (debtors[i]->debt_id > newer_than)
            out[count++] = (struct debt){debtors[i], debtors[i]->debt_event, debtors[i]->debt_id,
                                         debtors[i]->debt_seq};
    gb_lock_release(&lock);
    return count;
}

static void close_debt(const struct debt *debt)
{
    gb_stream_done(debt->stream, debt->seq);
    gb_lock_acquire(&lock);
    for (uint32_t i = 0; i < gb_debts.open; i++)
        if (debtors[i] == debt->stream && debt->stream->debt_id == debt->id) {
            debtors[i] = debtors[gb_debts.open - 1];
            __atomic_store_n(&gb_debts.open, gb_debts.open - 1, __ATOMIC_RELEASE);
        }
    gb_lock_release(&lock);
}

/* Asks or waits for an event of ours whatever is being captured elsewhere: both would break a
 * global capture of another thread (CUDA driver API, cuThreadExchangeStreamCaptureMode: push and
 * pop). */
static CUresult relaxed(CUresult (*call)(CUevent event), CUevent event)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (gb_driver.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_READY;
    CUresult result = call(event);
    gb_driver.cuThreadExchangeStreamCaptureMode(&mode);
    return result;
}

/* Is it over? A wait of the program may have shown it; else the event is asked. */
static bool is_over(const struct debt *debt)
{
    return __atomic_load_n(&debt->stream->done, __ATOMIC_RELAXED) >= debt->seq ||
           relaxed(gb_real.f.cuEventQuery, debt->event) == CUDA_SUCCESS;
}

/* An event that cannot be waited for belongs to a lost context: nothing can be owed there. */
static void pay(const struct debt *debt)
{
    if (__atomic_load_n(&debt->stream->done, __ATOMIC_RELAXED) < debt->seq) {
        GB_COUNT(gb_counters.debts_paid, 1);
        relaxed(gb_real.f.cuEventSynchronize, debt->event);
    }
    close_debt(debt);
}

/* Debts that are over are closed when a new one is opened: whoever meets them meanwhile finds out
 * without a wait. */
static void sweep(void)
{
    struct debt debts[DEBTS_MAX];
    uint32_t count = read_open(debts, 0);
    for (uint32_t i = 0; i < count; i++)
        if (is_over(&debts[i]))
            close_debt(&debts[i]);
}

static bool add(struct gb_stream *stream, uint64_t seq)
{
    gb_lock_acquire(&lock);
    uint32_t i = 0;
    while (i < gb_debts.open && debtors[i] != stream)
        i++;
    bool fits = i < DEBTS_MAX;
    if (fits) {
        uint64_t id = gb_debts.last_id + 1;
        debtors[i] = stream;
        stream->debt_seq = seq;
        stream->debt_id = id;
        stream->debt_tid = gb_thread_id();
        /* It waits for all debts before this one, unless another thread has opened one since. */
        if (stream->fenced_id == id - 1)
            __atomic_store_n(&stream->fenced_id, id, __ATOMIC_RELAXED);
        __atomic_store_n(&gb_debts.last_id, id, __ATOMIC_RELEASE);
        if (i == gb_debts.open)
            __atomic_store_n(&gb_debts.open, i + 1, __ATOMIC_RELEASE);
    }
    gb_lock_release(&lock);
    return fits;
}

/* One event per stream: recorded again for each debt, which takes nothing away from waits that were
 * enqueued before (CUDA driver API, cuStreamWaitEvent: the state at the time of the call). */
static bool has_event(struct gb_stream *stream)
{
    CUevent mine = NULL, none = NULL;
    if (__atomic_load_n(&stream->debt_event, __ATOMIC_ACQUIRE))
        return true;
    if (gb_driver.cuEventCreate(&mine, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return false;
    if (!__atomic_compare_exchange_n(&stream->debt_event, &none, mine, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        gb_driver.cuEventDestroy_v2(mine); /* another thread was first */
    return true;
}

bool gb_debt_open(struct gb_stream *stream, CUstream handle)
{
    gb_debt_fence(
        handle); /* what this stream itself still has to wait for comes before the event */
    sweep();
    uint64_t seq = gb_stream_given_marked(stream);
    if (!has_event(stream) || gb_real.f.cuEventRecord(stream->debt_event, handle) != CUDA_SUCCESS ||
        !add(stream, seq)) {
        GB_COUNT(gb_counters.debts_refused, 1);
        return false;
    }
    GB_COUNT(gb_counters.debts_opened, 1);
    return true;
}

/* ---- who may notice ---- */

/* A captured stream needs nothing: a capture begins with every debt paid, and none is opened while
 * one is open; a wait for an event of outside would end it (CUDA driver API, stream capture). */
void gb_debt_fence_slow(CUstream handle)
{
    struct debt debts[DEBTS_MAX];
    if (!is_on())
        return;
    struct gb_stream *stream = gb_stamp_other(handle);
    if (!stream) {
        gb_debt_pay_slow();
        return;
    }
    uint64_t last = gb_debt_last(), fenced = __atomic_load_n(&stream->fenced_id, __ATOMIC_RELAXED);
    if (fenced >= last || __atomic_load_n(&stream->capturing, __ATOMIC_ACQUIRE))
        return;
    uint32_t count = read_open(debts, fenced);
    for (uint32_t i = 0; i < count; i++) {
        if (debts[i].stream == stream)
            continue;
        if (is_over(&debts[i])) {
            close_debt(&debts[i]);
            continue;
        }
        GB_COUNT(gb_counters.debts_fenced, 1);
        if (gb_real.f.cuStreamWaitEvent(handle, debts[i].event, 0) != CUDA_SUCCESS)
            pay(&debts[i]);
    }
    __atomic_store_n(&stream->fenced_id, last, __ATOMIC_RELEASE);
}

/* A debt of another thread on another GPU may depend on what this thread has yet to do (two GPUs
 * that exchange data): natively this thread would not have waited for it either. */
static bool is_payable(const struct debt *debt, CUcontext context)
{
    return debt->stream->context == context || debt->stream->debt_tid == gb_thread_id();
}

void gb_debt_pay_slow(void)
{
    struct debt debts[DEBTS_MAX];
    if (!is_on())
        return;
    CUcontext context = gb_thread_context();
    uint32_t count = read_open(debts, 0);
    for (uint32_t i = 0; i < count; i++)
        if (is_payable(&debts[i], context))
            pay(&debts[i]);
}

/* Is the work older than the debt? On the debtor's own stream the count tells. On others it may be,
 * where the debtor waited for them: the legacy stream for all blocking ones, another for events. */
static bool covers(const struct debt *debt, const struct gb_stream *stream, uint64_t seq)
{
    if (debt->stream == stream)
        return seq <= debt->seq;
    return !stream || debt->stream->handle == CU_STREAM_LEGACY || debt->stream->wait_next;
}

/* NULL: of work that is not known. */
static bool pay_for(const struct gb_stream *stream, uint64_t seq)
{
    struct debt debts[DEBTS_MAX];
    CUcontext context = stream ? stream->context : gb_thread_context();
    uint32_t count = read_open(debts, 0);
    bool paid = false;
    for (uint32_t i = 0; i < count; i++)
        if (covers(&debts[i], stream, seq) && is_payable(&debts[i], context)) {
            pay(&debts[i]);
            paid = true;
        }
    return paid;
}

bool gb_debt_pay_for_stream(CUstream handle)
{
    const struct gb_stream *stream = gb_stream_of(handle);
    return pay_for(stream, stream ? stream->seq : 0);
}

/* Torch's allocators poll the events of blocks that wait to be used again: an answer of "not ready"
 * only keeps the block for later, and a wait here would be the one that was taken away. */
bool gb_debt_pay_for_event(CUevent event)
{
    struct gb_stream *stream = NULL;
    uint64_t seq = 0;
    if (gb_thread.polls)
        return false;
    if (!gb_event_position(event, &stream, &seq))
        stream = NULL;
    return pay_for(stream, seq);
}

/* ---- ends ---- */

/* Which one is not asked: there are few contexts, and they seldom end. */
void gb_debt_context_ends(void)
{
    struct debt debts[DEBTS_MAX];
    if (!is_on())
        return;
    uint32_t count = read_open(debts, 0);
    for (uint32_t i = 0; i < count; i++)
        pay(&debts[i]);
    gb_streams_forget_debt_events();
}

void gb_debt_after_fork(void)
{
    lock = (gb_lock){0};
    gb_debts.open = 0;
}
