/* careless.c: what the hazard scripts must catch: a preloaded library that stages pageable uploads
 * and owes nothing for the waits that it takes away.
 *
 * Every pageable upload goes through a ring of page-locked slots and returns at once; the
 * synchronisation that follows one is left out. A slot is used again when its copy is done.
 * Thread rule: one thread uploads. Failure rule: abort.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS      32
#define SLOT_BYTES (4u << 20)

static struct slot {
    void *memory;
    cudaEvent_t copied;
} slots[SLOTS];

static unsigned used;
static bool owed;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void check(cudaError_t error)
{
    if (error != cudaSuccess)
        abort();
}

static bool is_pageable(const void *at)
{
    struct cudaPointerAttributes what;
    check(cudaPointerGetAttributes(&what, at));
    return what.type == cudaMemoryTypeUnregistered;
}

static struct slot *next_slot(void)
{
    struct slot *slot = &slots[used++ % SLOTS];
    if (slot->memory) {
        check(cudaEventSynchronize(slot->copied));
        return slot;
    }
    check(cudaHostAlloc(&slot->memory, SLOT_BYTES, cudaHostAllocDefault));
    check(cudaEventCreateWithFlags(&slot->copied, cudaEventDisableTiming));
    return slot;
}

static cudaError_t upload(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    struct slot *slot = next_slot();
    memcpy(slot->memory, src, bytes);
    check(REAL(cudaMemcpyAsync)(dst, slot->memory, bytes, cudaMemcpyHostToDevice, stream));
    check(cudaEventRecord(slot->copied, stream));
    owed = true;
    return cudaSuccess;
}

static bool is_mine(const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice && bytes <= SLOT_BYTES && is_pageable(src);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    owed = false;
    return is_mine(src, bytes, kind) ? upload(dst, src, bytes, stream)
                                     : REAL(cudaMemcpyAsync)(dst, src, bytes, kind, stream);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    owed = false;
    return is_mine(src, bytes, kind) ? upload(dst, src, bytes, NULL)
                                     : REAL(cudaMemcpy)(dst, src, bytes, kind);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    bool leave_out = owed;
    owed = false;
    return leave_out ? cudaSuccess : REAL(cudaStreamSynchronize)(stream);
}
