/* entry.c: the exported functions of libcuda.so.1, made from entry.def. See entry.h.
 *
 * Exported functions never call each other: a library that interposes them must see only what
 * the program called.
 * Thread rule: any thread. Failure rule: the first check that fails is the answer.
 */
#include "entry.h"

#include "log_args.h"

#include <stdatomic.h>
#include <stdio.h>

static const char *const names[SIM_ENTRY_COUNT] = {
#define ENTRY(symbol, name, version, twin, need, params, args) #symbol,
#include "entry.def"
#undef ENTRY
};

static _Atomic uint64_t counts[SIM_ENTRY_COUNT];

const char *sim_entry_name(unsigned id)
{
    return names[id];
}

uint64_t sim_entry_count(unsigned id)
{
    return counts[id];
}

unsigned sim_entry_total(void)
{
    return SIM_ENTRY_COUNT;
}

static CUresult check_life(enum sim_need need)
{
    if (need == SIM_NEED_PURE)
        return CUDA_SUCCESS;
    int life = sim_life;
    if (life == SIM_ENDED)
        return CUDA_ERROR_DEINITIALIZED;
    if (life == SIM_FORKED || (life == SIM_UNBORN && need != SIM_NEED_START))
        return CUDA_ERROR_NOT_INITIALIZED;
    return sim_thread.in_callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

static CUresult check_context(void)
{
    struct sim_context *context = sim_current();
    if (context)
        return context->sticky;
    return sim_thread.stack[sim_thread.depth].context ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                      : CUDA_ERROR_INVALID_CONTEXT;
}

static void wait_for_copy(void)
{
    sim.waiters++;
    while (sim.copying && sim.copying != &sim_thread)
        pthread_cond_wait(&sim.progress, &sim.lock);
    sim.waiters--;
}

/* Locks, whatever it answers. */
static CUresult enter(enum sim_entry id, enum sim_need need)
{
    CUresult result = check_life(need);
    sim_thread.args[0] = 0;
    if (sim_life == SIM_FORKED)
        return result; /* the lock may have been held by a thread that does not exist here */
    sim_lock();
    if (sim.copying && need >= SIM_NEED_CTX && !sim_thread.in_callback)
        wait_for_copy();
    counts[id]++;
    if (sim.virtual_clock)
        sim_adversary_tick();
    if (result == CUDA_SUCCESS && !sim_fault_for(id, &result) && need >= SIM_NEED_CTX)
        result = check_context();
    if (result == CUDA_SUCCESS && need == SIM_NEED_UNSAFE)
        result = sim_capture_allows_unsafe();
    return result;
}

static CUresult leave(enum sim_entry id, CUresult result)
{
    if (sim_life == SIM_FORKED)
        return result;
    if (sim_log_on)
        sim_log_line("drv", names[id], sim_thread.args, result);
    sim_thread.per_thread_default = false;
    sim_unlock();
    return result;
}

#define PUBLIC __attribute__((visibility("default")))

#define BODY(symbol, need, args)                                                                   \
    CUresult result = enter(SIM_ENTRY_##symbol, SIM_NEED_##need);                                  \
    if (sim_log_on) {                                                                              \
        SIM_LOG_ARGS args                                                                          \
    }                                                                                              \
    if (result == CUDA_SUCCESS)                                                                    \
        result = drv_##symbol args;                                                                \
    if (sim_log_addresses && result == CUDA_SUCCESS) {                                             \
        sim_log_results(true);                                                                     \
        SIM_LOG_ARGS args;                                                                         \
        sim_log_results(false);                                                                    \
    }

#define TWIN_NONE(symbol, need, params, args)
#define TWIN(symbol, suffix, need, params, args)                                                   \
    PUBLIC CUresult symbol##suffix params;                                                         \
    CUresult symbol##suffix params                                                                 \
    {                                                                                              \
        sim_thread.per_thread_default = true;                                                      \
        BODY(symbol, need, args)                                                                   \
        return leave(SIM_ENTRY_##symbol, result);                                                  \
    }
#define TWIN_PTSZ(symbol, need, params, args) TWIN(symbol, _ptsz, need, params, args)
#define TWIN_PTDS(symbol, need, params, args) TWIN(symbol, _ptds, need, params, args)

#define ENTRY(symbol, name, version, twin, need, params, args)                                     \
    PUBLIC CUresult symbol params;                                                                 \
    CUresult symbol params                                                                         \
    {                                                                                              \
        BODY(symbol, need, args)                                                                   \
        return leave(SIM_ENTRY_##symbol, result);                                                  \
    }                                                                                              \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), PFN_##name##_v##version),     \
                   "the type of " #symbol " is not that of cudaTypedefs.h");                       \
    TWIN_##twin(symbol, need, params, args)
#include "entry.def"
#undef ENTRY

#define ROW_NONE(symbol) NULL
#define ROW_PTSZ(symbol) (void *)symbol##_ptsz
#define ROW_PTDS(symbol) (void *)symbol##_ptds

const struct sim_symbol sim_symbols[SIM_ENTRY_COUNT] = {
#define ENTRY(symbol, name, version, twin, need, params, args)                                     \
    {#name, version, (void *)symbol, ROW_##twin(symbol)},
#include "entry.def"
#undef ENTRY
};
