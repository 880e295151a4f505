/* ipc.c: device memory and events shared with other processes by a handle (CUDA Driver API,
 * cuIpc*).
 *
 * Closing a mapping waits for the work of this process, like a free; GPUSIM_FREE_DRAINS=0 does not.
 * Thread rule: sim_lock. Failure rule: INVALID_VALUE for what cannot be shared or is no handle.
 */
#include "entry.h"

#include "../engine/shared.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_MAGIC 0x6970636du
#define EVENT_MAGIC  0x69706365u
#define PAGE         4096u
#define ALIGNMENT    (2u << 20)
#define LOOK_NS      200000

_Static_assert(sizeof(struct sim_shared) <= sizeof(CUipcMemHandle), "a handle holds it");
_Static_assert(sizeof(struct sim_shared) <= sizeof(CUipcEventHandle), "a handle holds it");

struct opened {
    struct sim_shared what;
    struct sim_context *context;
    CUdeviceptr address, reserved;
    size_t reserved_bytes;
    unsigned refs;
    struct opened *next;
};

static struct opened *opened;

/* --- memory --- */

CUresult drv_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    struct sim_range range;
    if (!handle || !sim_memory_find(address, &range) || range.kind != SIM_DEVICE || range.dead)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_shared shared = {.magic = MEMORY_MAGIC,
                                .device = range.device,
                                .offset = range.arena,
                                .bytes = range.bytes,
                                .ordinal = range.ordinal};
    sim_shared_fill(&shared, sim_memory_file(range.device));
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &shared, sizeof(shared));
    return CUDA_SUCCESS;
}

static struct opened *find_opened(const struct sim_shared *shared)
{
    struct opened *at = opened;
    while (at && (at->context != sim_current() || memcmp(&at->what, shared, sizeof(*shared)) != 0))
        at = at->next;
    return at;
}

/* Whole pages of the other process's file; allocations may begin in the middle of one. */
static bool map(struct opened *new, int file)
{
    uint64_t start = new->what.offset / PAGE *PAGE;
    new->reserved_bytes = (new->what.offset + new->what.bytes - start + PAGE - 1) / PAGE *PAGE;
    if (sim_memory_reserve(new->reserved_bytes, ALIGNMENT, &new->reserved) != CUDA_SUCCESS)
        return false;
    if (!sim_memory_map(file, start, new->reserved, new->reserved_bytes)) {
        sim_memory_unreserve(new->reserved, new->reserved_bytes);
        return false;
    }
    new->address = new->reserved + (new->what.offset - start);
    sim_memory_add((struct sim_range){.base = new->address,
                                      .bytes = new->what.bytes,
                                      .kind = SIM_IMPORTED,
                                      .readable = true,
                                      .device = new->what.device,
                                      .context = new->context});
    return true;
}

static CUresult open_new(CUdeviceptr *address, const struct sim_shared *shared)
{
    struct opened *new = calloc(1, sizeof(*new));
    int file = new ? sim_shared_open(shared) : -1;
    if (file >= 0) {
        new->what = *shared;
        new->context = sim_current();
        new->refs = 1;
    }
    bool mapped = file >= 0 && map(new, file);
    if (file >= 0)
        close(file);
    if (!mapped) {
        free(new);
        return CUDA_ERROR_MAP_FAILED;
    }
    new->next = opened;
    opened = new;
    *address = new->address;
    return CUDA_SUCCESS;
}

CUresult drv_cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    struct sim_shared shared;
    memcpy(&shared, &handle, sizeof(shared));
    if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || shared.magic != MEMORY_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    if (shared.process == getpid() || !sim_device_of(shared.device))
        return CUDA_ERROR_INVALID_CONTEXT;
    struct opened *known = find_opened(&shared);
    if (!known)
        return open_new(address, &shared);
    known->refs++;
    *address = known->address;
    return CUDA_SUCCESS;
}

CUresult drv_cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct opened **at = &opened;
    while (*at && (*at)->address != address)
        at = &(*at)->next;
    struct opened *closed = *at;
    if (!closed)
        return CUDA_ERROR_INVALID_VALUE;
    if (--closed->refs > 0)
        return CUDA_SUCCESS;
    *at = closed->next;
    if (SIM_NUMBER(FREE_DRAINS) != 0)
        sim_drain();
    struct sim_range removed;
    sim_memory_remove(closed->address, &removed);
    sim_memory_unreserve(closed->reserved, closed->reserved_bytes);
    free(closed);
    return CUDA_SUCCESS;
}

/* --- events --- */

CUresult drv_cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event_handle)
{
    struct sim_event *event = sim_event_of(event_handle);
    struct sim_shared shared = {.magic = EVENT_MAGIC};
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!handle || !(event->flags & CU_EVENT_INTERPROCESS) || event->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_mark_share(event, &shared))
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &shared, sizeof(shared));
    return CUDA_SUCCESS;
}

CUresult drv_cuIpcOpenEventHandle(CUevent *event_handle, CUipcEventHandle handle)
{
    struct sim_shared shared;
    memcpy(&shared, &handle, sizeof(shared));
    if (!event_handle || shared.magic != EVENT_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    if (shared.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    struct sim_mark *mark = sim_mark_open(&shared);
    if (!mark)
        return CUDA_ERROR_MAP_FAILED;
    struct sim_event *event = sim_event_new(sim_current(), CU_EVENT_DISABLE_TIMING);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->mark = mark;
    event->imported = true;
    *event_handle = (CUevent)event;
    return CUDA_SUCCESS;
}

/* The other process's work: nothing here brings it on. */
void sim_event_wait_for_others(struct sim_event *event)
{
    struct timespec pause = {.tv_nsec = LOOK_NS};
    uint64_t records = event->mark->recorded;
    uint32_t generation = event->generation;
    while (event->live && event->generation == generation && !sim_mark_done(event, records)) {
        sim_unlock();
        nanosleep(&pause, NULL);
        sim_lock();
    }
}
