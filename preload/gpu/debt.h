/* debt.h: what is owed for copies that returned before the native call would have.
 *
 * When a native copy of more than 64 KiB from pageable memory returns, all earlier work of its
 * stream is done and the host knows it, and its bytes are visible to every agent. A copy that
 * returns earlier owes both: a debt, one per stream (a later one on the stream covers the earlier),
 * closed when the event behind the copy is seen complete. Every hooked driver call has a class in
 * hooks.def:
 *   fence    gives work to a stream: a stream other than the debtor's waits for the event first
 *   stamp    the same, checked by the fast path of launches and event records
 *   pay      what no stream orders (free, unmap, export, capture ...): waits on the host first
 *   query    asks whether work is done: when it is not, pays what it asks about, and asks again
 *   neutral  cannot notice
 * Only driver wrappers do this: the runtime's calls reach them, as live.h proves.
 * Thread rule: any application thread; the lock is never held across a CUDA call. Failure rule: a
 * debt that cannot be opened is waited for by the copy itself; a stream that is not known pays.
 */
#ifndef GB_DEBT_H
#define GB_DEBT_H

#include "gpu/inflight.h"

struct gb_debts {
    uint64_t last_id; /* of the newest debt ever opened */
    uint32_t open;    /* how many there are */
};
extern struct gb_debts gb_debts;

static inline uint64_t gb_debt_last(void)
{
    return __atomic_load_n(&gb_debts.last_id, __ATOMIC_ACQUIRE);
}

/* Is a policy on that may owe anything? Not in a forked child either. */
bool gb_debt_is_possible(void);

/* The calling thread's work is on the stream; from now on its end is owed. False: it could not be
 * noted, and the caller must wait for the stream. */
bool gb_debt_open(struct gb_stream *stream, CUstream handle);

/* Before the real call, by class. Work is about to be given to the stream: */
void gb_debt_fence_slow(CUstream handle);
static inline void gb_debt_fence(CUstream handle)
{
    if (GB_UNLIKELY(__atomic_load_n(&gb_debts.open, __ATOMIC_ACQUIRE)))
        gb_debt_fence_slow(handle);
}
/* Something that no stream orders is about to happen: */
void gb_debt_pay_slow(void);
static inline void gb_debt_pay(void)
{
    if (GB_UNLIKELY(__atomic_load_n(&gb_debts.open, __ATOMIC_ACQUIRE)))
        gb_debt_pay_slow();
}
/* A query of the stream or the event answered "not ready". Pays the debts that the work it asks
 * about is older than; true when there was one, and the query must be asked again. */
bool gb_debt_pay_for_stream(CUstream handle);
bool gb_debt_pay_for_event(CUevent event);

/* A context is about to end: all debts are paid, and the events made anew. */
void gb_debt_context_ends(void);
void gb_debt_after_fork(void);

#endif
