/* stream_memory.c: stream memory operations: a stream waits for a value in memory, or writes one.
 *
 * Who writes a value that is waited for is not the driver's business: another stream, the host, a
 * device on the bus. A value that nobody writes is a deadlock, as documented.
 * Thread rule: sim_lock. Failure rule: INVALID_VALUE for memory that these operations cannot use,
 * and then nothing of a batch is enqueued.
 */
#include "entry.h"

#define MOST_OPERATIONS 255 /* "Must be less than 256", cuStreamBatchMemOp */
#define CONDITIONS      3u  /* the bits of CU_STREAM_WAIT_VALUE_GEQ, _EQ, _AND and _NOR */

/* Not managed memory; registered memory by its device address (cuStreamWaitValue32). */
static CUresult check_address(CUdeviceptr address, unsigned bytes)
{
    struct sim_range range;
    bool usable = address % bytes == 0 && sim_memory_find(address, &range) && !range.dead &&
                  range.kind != SIM_MANAGED && address + bytes <= range.base + range.bytes &&
                  sim_memory_at(address, bytes);
    return usable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_wait(CUdeviceptr address, unsigned bytes, unsigned flags)
{
    if (flags & CU_STREAM_WAIT_VALUE_FLUSH) /* the attribute CAN_FLUSH_REMOTE_WRITES says 0 */
        return CUDA_ERROR_NOT_SUPPORTED;
    return flags & ~CONDITIONS ? CUDA_ERROR_INVALID_VALUE : check_address(address, bytes);
}

static CUresult check_write(CUdeviceptr address, unsigned bytes, unsigned flags)
{
    return flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
               ? CUDA_ERROR_INVALID_VALUE
               : check_address(address, bytes);
}

static CUresult check(const CUstreamBatchMemOpParams *params)
{
    switch (params->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return check_wait(params->waitValue.address, 4, params->waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return check_wait(params->waitValue.address, 8, params->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return check_write(params->writeValue.address, 4, params->writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return check_write(params->writeValue.address, 8, params->writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
        return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static struct sim_op *operation(const CUstreamBatchMemOpParams *params)
{
    bool wide = params->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                params->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    struct sim_op *op;
    switch (params->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        op = sim_op_new(SIM_OP_WAIT, SIM_NO_UNIT, 0);
        op->wait.src = params->waitValue.address;
        op->wait.value = wide ? params->waitValue.value64 : params->waitValue.value;
        op->wait.bytes = wide ? 8 : 4;
        op->wait.condition = params->waitValue.flags & CONDITIONS;
        return op;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        op = sim_op_new(SIM_OP_WRITE, SIM_NO_UNIT, 0);
        op->write.dst = params->writeValue.address;
        op->write.value = wide ? params->writeValue.value64 : params->writeValue.value;
        op->write.bytes = wide ? 8 : 4;
        return op;
    default: /* operations of a stream are in order as it is */
        return sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0);
    }
}

CUresult drv_cuStreamBatchMemOp_v2(CUstream handle, unsigned count,
                                   CUstreamBatchMemOpParams *params, unsigned flags)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags || !params || count == 0 || count > MOST_OPERATIONS)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = check(&params[i]);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = sim_enqueue(stream, operation(&params[i]), NULL);
    return result;
}

static CUresult one(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address,
                    uint64_t value, unsigned flags)
{
    /* Waits and writes have the same fields (CUstreamBatchMemOpParams_union). */
    CUstreamBatchMemOpParams params = {.waitValue = {.operation = type, .address = address}};
    params.waitValue.value64 = value;
    params.waitValue.flags = flags;
    return drv_cuStreamBatchMemOp_v2(stream, 1, &params, 0);
}

CUresult drv_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                    unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult drv_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                    unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult drv_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                     unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CUresult drv_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned flags)
{
    return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}
