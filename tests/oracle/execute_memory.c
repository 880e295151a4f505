/* execute_memory.c: memory of the devices and of the host, and questions about it.
 *
 * Thread rule: the thread that has the turn. Failure rule: see oracle.h.
 */
#include "execute.h"

#include "gpusim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void fill_noted(void *at, size_t bytes, uint64_t value)
{
    gpusim_note_access(at, bytes, true);
    fill_bytes(at, bytes, value);
}

uint64_t hash_noted(uint64_t hash, const void *at, size_t bytes)
{
    gpusim_note_access(at, bytes, false);
    return hash_bytes(hash, at, bytes);
}

/* --- devices --- */

static int map_virtual(struct memory *memory, unsigned device)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)device}};
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int code = cuMemAddressReserve(&memory->address, memory->bytes, 0, 0, 0);
    if (code == 0)
        code = cuMemCreate(&memory->physical, memory->bytes, &prop, 0);
    if (code == 0)
        code = cuMemMap(memory->address, memory->bytes, 0, memory->physical, 0);
    return code ? code : (int)cuMemSetAccess(memory->address, memory->bytes, &access, 1);
}

void run_device_alloc(const struct op *op, struct result *result)
{
    struct memory *memory = &world.blocks[op->out[0]];
    *memory = (struct memory){.bytes = op->bytes, .kind = op->mode, .device = op->device};
    CUstream stream = handle_of(op);
    switch (op->mode) {
    case PLAIN:
        note(result, cuMemAlloc(&memory->address, op->bytes));
        break;
    case PLAIN_RUNTIME:
        note(result, (int)cudaMalloc((void **)&memory->address, op->bytes));
        break;
    case POOL:
        note(result, cuMemAllocAsync(&memory->address, op->bytes, stream));
        break;
    case POOL_RUNTIME:
        note(result, (int)cudaMallocAsync((void **)&memory->address, op->bytes, stream));
        break;
    default:
        note(result, map_virtual(memory, op->device));
    }
    if (result->code)
        give_up("no device memory: %d", result->code);
}

static void unmap_virtual(struct memory *memory, struct result *result)
{
    note(result, cuMemUnmap(memory->address, memory->bytes));
    note(result, cuMemRelease(memory->physical));
    note(result, cuMemAddressFree(memory->address, memory->bytes));
}

void run_device_free(const struct op *op, struct result *result)
{
    struct memory *memory = &world.blocks[op->out[0]];
    void *address = (void *)memory->address;
    if (op->sync && memory->kind == VIRTUAL)
        unmap_virtual(memory, result);
    else if (op->sync)
        note(result, op->form ? (int)cudaFree(address) : (int)cuMemFree(memory->address));
    else if (op->form)
        note(result, (int)cudaFreeAsync(address, handle_of(op)));
    else
        note(result, cuMemFreeAsync(memory->address, handle_of(op)));
    memory->address = 0;
}

/* --- the host --- */

static void *map_pages(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        give_up("out of memory");
    return at;
}

static void host_alloc(const struct op *op, struct result *result)
{
    struct memory *memory = &world.blocks[op->out[0]];
    size_t odd = op->mode == HEAP ? op->value % 61 : 0;
    *memory = (struct memory){.bytes = op->bytes, .kind = op->mode, .base_bytes = op->bytes + odd};
    switch (op->mode) {
    case HEAP:
        memory->base = malloc(memory->base_bytes);
        break;
    case PINNED:
        note(result, cuMemHostAlloc(&memory->base, op->bytes, 0));
        break;
    case PINNED_RUNTIME:
        note(result, (int)cudaHostAlloc(&memory->base, op->bytes, cudaHostAllocPortable));
        break;
    case REGISTERED:
        memory->base = map_pages(memory->base_bytes);
        note(result, cuMemHostRegister(memory->base, op->bytes, 0));
        break;
    default:
        memory->base = map_pages(memory->base_bytes);
    }
    if (!memory->base)
        give_up("no host memory: %d", result->code);
    memory->address = (CUdeviceptr)memory->base + odd;
    fill_noted(memory->base, memory->base_bytes, op->value);
}

static void host_free(struct memory *memory, bool runtime, struct result *result)
{
    switch (memory->kind) {
    case HEAP:
        free(memory->base);
        break;
    case PINNED:
    case PINNED_RUNTIME:
        note(result, runtime ? (int)cudaFreeHost(memory->base) : (int)cuMemFreeHost(memory->base));
        break;
    case REGISTERED:
        note(result, cuMemHostUnregister(memory->base));
        munmap(memory->base, memory->base_bytes);
        break;
    default:
        munmap(memory->base, memory->base_bytes);
    }
    memory->address = 0;
}

void run_host_memory(const struct op *op, struct result *result)
{
    struct memory *memory = &world.blocks[op->kind == HOST_READ ? op->in[0] : op->out[0]];
    switch (op->kind) {
    case HOST_ALLOC:
        host_alloc(op, result);
        break;
    case HOST_FREE:
        host_free(memory, op->form, result);
        break;
    case HOST_REGISTER:
        note(result, op->form ? (int)cudaHostRegister(memory->base, memory->bytes, 0)
                              : (int)cuMemHostRegister(memory->base, memory->bytes, 0));
        memory->kind = REGISTERED;
        break;
    case HOST_UNREGISTER:
        note(result, op->form ? (int)cudaHostUnregister(memory->base)
                              : (int)cuMemHostUnregister(memory->base));
        memory->kind = MAPPED;
        break;
    case HOST_FILL:
        fill_noted((void *)memory->address, memory->bytes, op->value);
        break;
    default:
        result->value = hash_noted(0, (void *)memory->address, memory->bytes);
    }
}

void free_block(unsigned block, struct result *result)
{
    struct memory *memory = &world.blocks[block];
    if (!is_device_block(block))
        host_free(memory, false, result);
    else if (memory->kind == VIRTUAL)
        unmap_virtual(memory, result);
    else
        note(result, cuMemFree(memory->address));
    memory->address = 0;
}

/* --- questions --- */

static void pointer_info(const struct op *op, struct result *result)
{
    const struct memory *memory = &world.blocks[op->in[0]];
    unsigned type = 0, managed = 0;
    int device = -1;
    CUdeviceptr at = memory->address + memory->bytes / 2;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &device};
    struct cudaPointerAttributes attributes = {0};
    note(result, cuPointerGetAttributes(3, names, values, at));
    result->value = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
    result->value = result->value << 8 | type << 4 | managed << 2 | (unsigned)(device + 1);
    note(result, (int)cudaPointerGetAttributes(&attributes, (void *)at));
    result->value = result->value << 8 | attributes.type;
}

/* Makes the bytes visible to agents that no stream orders: another process, a device on the bus. */
static void share(const struct op *op, struct result *result)
{
    CUdeviceptr address = world.blocks[op->in[0]].address;
    CUipcMemHandle handle;
    unsigned yes = 1;
    note(result, op->mode == 0
                     ? (int)cuIpcGetMemHandle(&handle, address)
                     : (int)cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address));
}

static void peek(const struct op *op, struct result *result)
{
    static char buffer[4 << 20];
    const struct memory *memory = &world.blocks[op->in[0]];
    note(result, gpusim_peek(memory->address, buffer, memory->bytes) ? 0 : -1);
    result->value = hash_bytes(0, buffer, memory->bytes);
}

void run_question(const struct op *op, struct result *result)
{
    size_t available = 0, total = 0;
    if (op->kind == POINTER_INFO)
        pointer_info(op, result);
    else if (op->kind == SHARE)
        share(op, result);
    else if (op->kind == PEEK)
        peek(op, result);
    if (op->kind != MEMORY_INFO)
        return;
    note(result, op->form ? (int)cudaMemGetInfo(&available, &total)
                          : (int)cuMemGetInfo(&available, &total));
    result->value = total ^ (world.free_bytes[op->device] - available);
}
