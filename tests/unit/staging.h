/* staging.h: a program that copies through the exported wrappers, on the fake driver. Included
 * once, by the tests of the staging policy. */
#ifndef STAGING_H
#define STAGING_H

#include "fake_driver.h"
#include "options/config.h"
#include "policies/policy.h"
#include "record/counters.h"
#include "stall/call.h"
#include "transfer/budget.h"
#include "transfer/pinned.h"

#include <sys/mman.h>

#define KIB     ((size_t)1 << 10)
#define MIB     ((size_t)1 << 20)
#define CONTEXT ((CUcontext)0xc0)

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *h, size_t n, CUstream s);
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *h, size_t n);
CUresult cuMemHostAlloc(void **p, size_t n, unsigned f);

static uint64_t budget_bytes = UINT64_MAX;

uint64_t gb_budget_pinned_bytes(uint64_t want_bytes)
{
    return want_bytes < budget_bytes ? want_bytes : budget_bytes;
}

static uint8_t *device, *host; /* of BUFFER_BYTES each */
#define BUFFER_BYTES (65 * MIB)

static uint8_t *new_buffer(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* An armed process with one context, default options. */
static void start_program(void)
{
    fake_begin(CONTEXT);
    gb_config.policy = GB_PROFILE_SAFE;
    gb_config.h2d = GB_SWITCH_AUTO;
    gb_config.chunk_bytes = 4 * MIB;
    gb_config.ring_bytes = 64 * MIB;
    gb_config.stall_ns = UINT64_MAX;
    gb_config.early = false;
    budget_bytes = UINT64_MAX;
    gb_state = GB_STATE_ARMED;
    gb_thread_context_set(CONTEXT);
    if (!device)
        device = new_buffer(BUFFER_BYTES), host = new_buffer(BUFFER_BYTES);
    fake.device = (struct fake_range){device, device + BUFFER_BYTES};
}

__attribute__((unused)) static CUresult copy(void *dst, const void *src, size_t bytes)
{
    return cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)dst, src, bytes, FAKE_STREAM);
}

/* The form without a stream: on the legacy default one. */
__attribute__((unused)) static CUresult copy_now(void *dst, const void *src, size_t bytes)
{
    return cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)dst, src, bytes);
}

__attribute__((unused)) static void fill(uint8_t *p, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        p[i] = (uint8_t)(seed >> 56);
    }
}

/* The program has copied so much already that its copies may be staged. */
__attribute__((unused)) static void warm_up(void)
{
    for (int i = 0; i < 8; i++)
        copy(device, host, 65 * KIB);
    memset(&gb_counters, 0, sizeof gb_counters);
    fake.logged = fake.calls = 0;
    memset(fake.count, 0, sizeof fake.count);
}

/* The context's ring with chunks for `bytes`, as a copy takes it that has waited for its stream. */
__attribute__((unused)) static enum gb_pinned_answer take_ring(CUcontext context, uint64_t bytes,
                                                               struct gb_pinned_ring **ring)
{
    enum gb_pinned_answer answer = gb_pinned_take(context, ring);
    if (answer != GB_PINNED_TAKEN || gb_pinned_grow(*ring, bytes))
        return answer;
    gb_pinned_put(*ring);
    return GB_PINNED_NONE;
}

__attribute__((unused)) static uint64_t staged_copies(void)
{
    struct gb_totals totals = {0};
    gb_policy_totals(&totals);
    return totals.staged_copies;
}

/* All of them: gb_counters has nothing but counters. */
__attribute__((unused)) static uint64_t declined(void)
{
    return gb_counters.h2d_warming + gb_counters.h2d_registered + gb_counters.h2d_destination +
           gb_counters.h2d_context + gb_counters.h2d_capture + gb_counters.h2d_coherent +
           gb_counters.h2d_busy + gb_counters.h2d_ring + gb_counters.h2d_error;
}

#endif
