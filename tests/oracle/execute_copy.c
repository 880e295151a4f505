/* execute_copy.c: copies by every function that makes them, and calls that must fail.
 *
 * Thread rule: the thread that has the turn. Failure rule: see oracle.h.
 */
#include "execute.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What code built with per-thread default streams calls; cuda.h names them by macros only. */
extern CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t bytes);
extern CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t bytes);
extern CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes);
extern CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes);
extern CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void *, size_t, CUstream);
extern CUresult cuMemcpyDtoHAsync_v2_ptsz(void *, CUdeviceptr, size_t, CUstream);
extern CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
extern CUresult cuMemcpyAsync_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
extern cudaError_t cudaMemcpy_ptds(void *, const void *, size_t, enum cudaMemcpyKind);
extern cudaError_t cudaMemcpyAsync_ptsz(void *, const void *, size_t, enum cudaMemcpyKind,
                                        cudaStream_t);

struct copy {
    CUdeviceptr to, from;
    size_t bytes;
    enum cudaMemcpyKind kind;
    CUstream stream;
};

static int copy_driver(const struct op *op, const struct copy *c)
{
    void *to = (void *)c->to, *from = (void *)c->from;
    bool twin = op->twin;
    if (c->kind == cudaMemcpyHostToDevice && op->sync)
        return (twin ? cuMemcpyHtoD_v2_ptds : cuMemcpyHtoD)(c->to, from, c->bytes);
    if (c->kind == cudaMemcpyHostToDevice)
        return (twin ? cuMemcpyHtoDAsync_v2_ptsz : cuMemcpyHtoDAsync)(c->to, from, c->bytes,
                                                                      c->stream);
    if (c->kind == cudaMemcpyDeviceToHost && op->sync)
        return (twin ? cuMemcpyDtoH_v2_ptds : cuMemcpyDtoH)(to, c->from, c->bytes);
    if (c->kind == cudaMemcpyDeviceToHost)
        return (twin ? cuMemcpyDtoHAsync_v2_ptsz : cuMemcpyDtoHAsync)(to, c->from, c->bytes,
                                                                      c->stream);
    if (op->sync)
        return (twin ? cuMemcpyDtoD_v2_ptds : cuMemcpyDtoD)(c->to, c->from, c->bytes);
    if (op->kind == DEVICE_COPY && op->mode && !twin) {
        CUcontext to_context = world.contexts[world.blocks[op->out[0]].device];
        CUcontext from_context = world.contexts[world.blocks[op->in[0]].device];
        return cuMemcpyPeerAsync(c->to, to_context, c->from, from_context, c->bytes, c->stream);
    }
    return (twin ? cuMemcpyDtoDAsync_v2_ptsz : cuMemcpyDtoDAsync)(c->to, c->from, c->bytes,
                                                                  c->stream);
}

static int copy_any(const struct op *op, const struct copy *c)
{
    if (op->sync)
        return (op->twin ? cuMemcpy_ptds : cuMemcpy)(c->to, c->from, c->bytes);
    return (op->twin ? cuMemcpyAsync_ptsz : cuMemcpyAsync)(c->to, c->from, c->bytes, c->stream);
}

static int copy_runtime(const struct op *op, const struct copy *c)
{
    enum cudaMemcpyKind kind = op->form == RUNTIME ? c->kind : cudaMemcpyDefault;
    void *to = (void *)c->to, *from = (void *)c->from;
    if (op->sync)
        return (int)(op->twin ? cudaMemcpy_ptds : cudaMemcpy)(to, from, c->bytes, kind);
    return (int)(op->twin ? cudaMemcpyAsync_ptsz : cudaMemcpyAsync)(to, from, c->bytes, kind,
                                                                    c->stream);
}

/* Rows without gaps on both sides: the bytes lie as in the other forms. */
static int copy_2d(const struct op *op, const struct copy *c)
{
    size_t height = c->bytes % 4 == 0 ? 4 : c->bytes % 3 == 0 ? 3 : 1, width = c->bytes / height;
    CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = c->from,
                         .srcPitch = width,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = c->to,
                         .dstPitch = width,
                         .WidthInBytes = width,
                         .Height = height};
    void *to = (void *)c->to, *from = (void *)c->from;
    if (op->form == DRIVER_2D)
        return op->sync ? cuMemcpy2DUnaligned(&box) : cuMemcpy2DAsync(&box, c->stream);
    if (op->sync)
        return (int)cudaMemcpy2D(to, width, from, width, width, height, c->kind);
    return (int)cudaMemcpy2DAsync(to, width, from, width, width, height, c->kind, c->stream);
}

static int copy(const struct op *op, const struct copy *c)
{
    switch (op->form) {
    case DRIVER:
        return copy_driver(op, c);
    case DRIVER_ANY:
        return copy_any(op, c);
    case RUNTIME:
    case RUNTIME_DEFAULT:
        return copy_runtime(op, c);
    default:
        return copy_2d(op, c);
    }
}

/* --- memory that lives for one copy --- */

struct fresh {
    char *base, *at;
    size_t bytes;
    bool mapped;
};

static struct fresh fresh_take(const struct op *op, enum source_end end)
{
    size_t odd = op->value % 61;
    struct fresh fresh = {.bytes = op->bytes + odd, .mapped = end >= UNMAPPED};
    if (fresh.mapped)
        fresh.base =
            mmap(NULL, fresh.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        fresh.base = malloc(fresh.bytes);
    if (!fresh.base || fresh.base == MAP_FAILED)
        give_up("out of memory");
    fresh.at = fresh.base + odd;
    return fresh;
}

static void fresh_end(struct fresh fresh, enum source_end end)
{
    if (end != UNMAPPED)
        memset(fresh.base, 0x55, fresh.bytes);
    if (end == PROTECTED) {
        mprotect(fresh.base, fresh.bytes, PROT_NONE);
        world.kept[world.kept_count] = fresh.base;
        world.kept_bytes[world.kept_count++] = fresh.bytes;
    } else if (end == UNMAPPED) {
        munmap(fresh.base, fresh.bytes);
    } else {
        free(fresh.base);
    }
}

static void upload_fresh(const struct op *op, struct copy c, struct result *result)
{
    struct fresh fresh = fresh_take(op, op->mode);
    fill_bytes(fresh.at, op->bytes, op->value);
    c.from = (CUdeviceptr)fresh.at;
    c.to = world.blocks[op->out[0]].address + op->offset;
    note(result, copy(op, &c));
    fresh_end(fresh, op->mode);
}

static void download_fresh(const struct op *op, struct copy c, struct result *result)
{
    struct fresh fresh = fresh_take(op, FREED);
    memset(fresh.base, 0x33, fresh.bytes);
    c.from = world.blocks[op->in[0]].address + op->offset;
    c.to = (CUdeviceptr)fresh.at;
    note(result, copy(op, &c));
    result->value = hash_bytes(result->value, fresh.base, fresh.bytes);
    fresh_end(fresh, FREED);
}

void run_copy(const struct op *op, struct result *result)
{
    struct copy c = {.bytes = op->bytes, .stream = handle_of(op)};
    c.kind = op->kind == DEVICE_COPY                          ? cudaMemcpyDeviceToDevice
             : op->kind == UPLOAD || op->kind == UPLOAD_FRESH ? cudaMemcpyHostToDevice
                                                              : cudaMemcpyDeviceToHost;
    if (op->kind == UPLOAD_FRESH) {
        upload_fresh(op, c, result);
        return;
    }
    if (op->kind == DOWNLOAD_FRESH) {
        download_fresh(op, c, result);
        return;
    }
    bool down = op->kind == DOWNLOAD;
    c.from = world.blocks[op->in[0]].address + (down ? op->offset : op->host_offset);
    c.to = world.blocks[op->out[0]].address + (down ? op->host_offset : op->offset);
    note(result, copy(op, &c));
    if (down && (op->sync || is_pageable(world.blocks[op->out[0]].kind))) /* it is there now */
        result->value = hash_noted(result->value, (void *)c.to, c.bytes);
}

/* --- what must fail --- */

void run_wrong(const struct op *op, struct result *result)
{
    size_t bytes = op->bytes, room = world.blocks[op->in[0]].bytes;
    CUdeviceptr to = world.blocks[op->in[0]].address;
    if (op->mode == TOO_LONG)
        bytes = room + 4096 > bytes ? room + 4096 : bytes;
    else if (op->mode == NO_TARGET)
        to = 64; /* no memory of any device */
    char *source = calloc(1, bytes);
    switch (op->mode) {
    case NO_TARGET:
    case TOO_LONG:
        note(result, cuMemcpyHtoDAsync(to, source, bytes, NULL));
        result->value = (uint64_t)cudaMemcpy((void *)to, source, bytes, cudaMemcpyHostToDevice);
        break;
    case ZERO_BYTES:
        note(result, cuMemcpyHtoDAsync(to, source, 0, NULL));
        result->value = (uint64_t)cudaMemcpy((void *)to, NULL, 0, cudaMemcpyHostToDevice);
        break;
    case NULL_SOURCE:
        note(result, cuMemcpyHtoDAsync(to, NULL, room, NULL));
        result->value = (uint64_t)cudaMemcpy((void *)to, NULL, room, cudaMemcpyHostToDevice);
        break;
    case BAD_KIND:
        note(result, (int)cudaMemcpy((void *)to, source, room < bytes ? room : bytes,
                                     (enum cudaMemcpyKind)77));
        break;
    default:
        note(result, cuEventQuery(NULL));
        result->value = (uint64_t)cudaEventSynchronize(NULL);
    }
    result->value =
        result->value << 32 | (uint64_t)cudaGetLastError() << 16 | (uint64_t)cudaGetLastError();
    free(source);
}
