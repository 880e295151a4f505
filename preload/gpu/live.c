/* live.c: a probe of the driver layer. See live.h for the rules. */
#include "gpu/live.h"

#include "base/elf.h"

/* A wheel's library has a hash in its name. */
static const char *const runtimes[] = {"libcudart.so.11", "libcudart.so.12", "libcudart.so.13",
                                       "libcudart-"};

/* cudaError_t is an enumeration, cudaEvent_t and cudaStream_t are the driver's handles (CUDA
 * Runtime API, "Interactions with the CUDA Driver API"). */
typedef int create_fn(CUevent *event, unsigned flags);
typedef int record_fn(CUevent event, CUstream stream);
typedef int destroy_fn(CUevent event);

static bool reaches_us(const char *runtime, const struct gb_stream *stream, CUstream handle)
{
    create_fn *create = (create_fn *)gb_elf_find(runtime, "cudaEventCreateWithFlags");
    record_fn *record = (record_fn *)gb_elf_find(runtime, "cudaEventRecord");
    destroy_fn *destroy = (destroy_fn *)gb_elf_find(runtime, "cudaEventDestroy");
    CUevent event;
    struct gb_stream *seen = NULL;
    uint64_t seq;
    if (!create || !record || !destroy || create(&event, CU_EVENT_DISABLE_TIMING) != 0)
        return false;
    bool reached = record(event, handle) == 0 && gb_event_position(event, &seen, &seq);
    destroy(event);
    return reached && seen == stream;
}

static bool probe(const struct gb_stream *stream, CUstream handle)
{
    for (size_t i = 0; i < GB_ARRAY_LEN(runtimes); i++)
        if (gb_elf_is_loaded(runtimes[i]) && !reaches_us(runtimes[i], stream, handle))
            return false;
    return true;
}

static bool is_any_loaded(void)
{
    for (size_t i = 0; i < GB_ARRAY_LEN(runtimes); i++)
        if (gb_elf_is_loaded(runtimes[i]))
            return true;
    return false;
}

bool gb_live(const struct gb_call *call)
{
    static uint64_t probed_loads;
    static uint32_t answer;
    uint64_t loads = gb_elf_loads();
    if (GB_LIKELY(__atomic_load_n(&probed_loads, __ATOMIC_ACQUIRE) == loads))
        return __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (gb_hook_is_driver(call->hook) && is_any_loaded())
        return false;
    __atomic_store_n(&answer, probe(call->stream, call->handle), __ATOMIC_RELAXED);
    __atomic_store_n(&probed_loads, loads, __ATOMIC_RELEASE);
    return __atomic_load_n(&answer, __ATOMIC_RELAXED);
}
