/* verify.c: see verify.h. */
#include "policies/verify.h"

#include "base/log.h"
#include "options/config.h"
#include "record/counters.h"

#include <string.h>

static gb_counter turn;
static uint32_t failed;

bool gb_verify_failed(void)
{
    return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

bool gb_verify_wants(void)
{
    return gb_config.verify_every && GB_COUNT(turn, 1) % gb_config.verify_every == 0;
}

static void switch_off(const struct gb_copy *copy, size_t at)
{
    GB_COUNT(gb_counters.verify_wrong, 1);
    if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED))
        gb_log(
            GB_LOG_WARN,
            "GPUBOOST_VERIFY: a staged copy of %zu bytes arrived wrong near byte %zu: made again "
            "by the driver, and staging is off from here on. Please report this",
            copy->bytes, at);
}

bool gb_verify_copy(struct gb_pinned_ring *ring, const struct gb_call *call,
                    const struct gb_copy *copy)
{
    uint8_t *back = ring->chunks[0].memory;
    const uint8_t *src = copy->src;
    for (size_t at = 0, bytes; at < copy->bytes; at += bytes) {
        bytes = copy->bytes - at < ring->chunk_bytes ? copy->bytes - at : ring->chunk_bytes;
        if (gb_real.f.cuMemcpyDtoHAsync_v2(back, (CUdeviceptr)(uintptr_t)copy->dst + at, bytes,
                                           call->handle) != CUDA_SUCCESS ||
            gb_real.f.cuStreamSynchronize(call->handle) != CUDA_SUCCESS) {
            GB_COUNT(gb_counters.verify_error, 1);
            return true;
        }
        if (memcmp(back, src + at, bytes) != 0) {
            switch_off(copy, at);
            return false;
        }
    }
    GB_COUNT(gb_counters.verified, 1);
    return true;
}
