/* elide.c: the wait that PyTorch puts right behind its blocking copy to the GPU is owed, not made.
 *
 * `x.to('cuda')` copies with cudaMemcpyAsync and then synchronises the stream, so that the source
 * may be reused; but a pageable source has been read when the copy returns, whatever its size. What
 * else the wait promises is owed (debt.h). Only the wait of that very call site is left out: the
 * same thread and stream, nothing given to the stream between, both calls close together in torch's
 * own code (the pairs in libtorch_cuda 2.9 lie 10 to 72 bytes apart).
 * Thread rule: the application's thread. Failure rule: the wait is made.
 */
#include "policies/policy.h"

#include "base/elf.h"
#include "cuda/driver_api.h"
#include "gpu/debt.h"
#include "gpu/proven.h"
#include "options/config.h"
#include "policies/owe.h"
#include "policies/verify.h"
#include "record/counters.h"

#define PAIR_BYTES 128 /* most between the return addresses of the copy and the wait */

/* These read and write device memory in ways that no stream orders. */
static bool is_library_loaded(void)
{
    static const char *const names[] = {"libmpi.so", "libmpi_cuda", "libucp.so", "libgdrapi.so"};
    static uint64_t seen_loads;
    static uint32_t answer;
    uint64_t loads = gb_elf_loads();
    if (__atomic_load_n(&seen_loads, __ATOMIC_ACQUIRE) == loads)
        return __atomic_load_n(&answer, __ATOMIC_RELAXED);
    bool found = false;
    for (size_t i = 0; i < GB_ARRAY_LEN(names); i++)
        found = found || gb_elf_is_loaded(names[i]);
    __atomic_store_n(&answer, found, __ATOMIC_RELAXED);
    __atomic_store_n(&seen_loads, loads, __ATOMIC_RELEASE);
    return found;
}

static bool is_pair(const struct gb_call *call, const struct gb_copied *copied)
{
    uintptr_t distance = (uintptr_t)call->caller - (uintptr_t)copied->caller;
    if (!call->stream || copied->stream != call->stream || copied->seq != call->seq)
        return false;
    return gb_config.elide == GB_SWITCH_WIDE ||
           (distance - 1 < PAIR_BYTES && gb_call_is_of_torch(copied->caller));
}

/* A forwarded copy was not looked at: is it one that we could have served? */
static bool owes(const struct gb_call *call, const struct gb_copied *copied)
{
    if (copied->owed)
        return true;
    if (gb_why_not_place(call, &copied->copy))
        return gb_declines(&gb_counters.elide_place);
    return gb_debt_open(call->stream, call->handle);
}

bool gb_elide_wait(struct gb_call *call, const struct gb_copied *copied)
{
    if (!gb_config_policy_on((enum gb_switch)gb_config.elide, GB_PROFILE_SAFE) ||
        gb_verify_failed() || !is_pair(call, copied) || !gb_may_owe_here(call))
        return false;
    if (gb_config.elide == GB_SWITCH_AUTO && is_library_loaded())
        return gb_declines(&gb_counters.elide_library);
    if (gb_config.elide == GB_SWITCH_AUTO && !gb_is_proven())
        return gb_declines(&gb_counters.elide_off);
    if (!owes(call, copied))
        return false;
    GB_COUNT(gb_counters.elided, 1);
    return true;
}
