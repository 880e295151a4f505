/* launch.c: kernel launches, function attributes and occupancy.
 *
 * What a kernel reads, writes and costs is decided here, while its arguments are readable
 * (kernel_model.h); it happens when the clock says so.
 * Thread rule: sim_lock. Failure rule: an unknown function answers INVALID_HANDLE, a shape no
 * device could run INVALID_VALUE.
 */
#include "entry.h"

#include "log_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MOST 1024u
#define BLOCKS_MOST  2u /* per multiprocessor, whatever the block */

/* GPUSIM_KERNEL_TIMES: the first part that the name contains decides. */
static uint64_t duration_of(const struct sim_kernel *kernel)
{
    const char *rule = SIM_TEXT(KERNEL_TIMES);
    while (*rule) {
        char part[128];
        double ns;
        int used = 0;
        if (sscanf(rule, "%127[^:,]:%lf%n", part, &ns, &used) != 2 || ns < 0)
            break;
        if (strstr(kernel->name, part))
            return (uint64_t)ns;
        rule += used;
        rule += *rule == ',';
    }
    return kernel->op.duration_ns;
}

struct sim_op *sim_kernel_operation(CUfunction function, void **params, uint64_t blocks,
                                    uint64_t threads)
{
    const char *name = sim_function_name(function);
    struct sim_kernel *kernel = calloc(1, sizeof(*kernel));
    if (!kernel)
        return NULL;
    kernel->refs = 1;
    sim_kernel_decode(name, params, blocks, threads, &kernel->op);
    for (uint32_t i = 0; i < kernel->op.input_count + kernel->op.output_count; i++)
        sim_log_range(i < kernel->op.input_count ? "reads" : "writes", kernel->op.ranges[i].ptr,
                      kernel->op.ranges[i].bytes);
    /* A library's operation is counted by its own name. */
    kernel->name = strdup(strcmp(name, "gpusim::op") == 0 && params
                              ? ((const struct gpusim_op *)params[0])->name
                              : name);
    struct sim_op *op = sim_op_new(SIM_OP_KERNEL, SIM_COMPUTE, duration_of(kernel));
    op->kernel = kernel;
    return op;
}

static CUresult launch(CUfunction function, const unsigned shape[6], CUstream handle, void **params)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream || !sim_function_name(function))
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t blocks = (uint64_t)shape[0] * shape[1] * shape[2];
    uint64_t threads = (uint64_t)shape[3] * shape[4] * shape[5];
    if (blocks == 0 || threads == 0 || threads > THREADS_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_op *op = sim_kernel_operation(function, params, blocks, threads);
    return op ? sim_enqueue(stream, op, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult drv_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, CUstream stream, void **params, void **extra)
{
    (void)shared_bytes;
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned shape[6] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
    return launch(function, shape, stream, params);
}

CUresult drv_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                              void **extra)
{
    return drv_cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                              config->blockDimX, config->blockDimY, config->blockDimZ,
                              config->sharedMemBytes, config->hStream, params, extra);
}

CUresult drv_cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared_bytes, CUstream stream,
                                       void **params)
{
    return drv_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                              shared_bytes, stream, params, NULL);
}

/* --- attributes: the same for every function --- */

CUresult drv_cuFuncGetAttribute(int *value, CUfunction_attribute name, CUfunction function)
{
    if (!sim_function_name(function))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (name) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = THREADS_MOST;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 86;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = 49152;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult drv_cuFuncSetAttribute(CUfunction function, CUfunction_attribute name, int value)
{
    (void)name, (void)value;
    return sim_function_name(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult drv_cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    (void)config;
    return sim_function_name(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult drv_cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
    (void)config;
    return sim_function_name(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult drv_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                  int block_size,
                                                                  size_t shared_bytes,
                                                                  unsigned flags)
{
    (void)shared_bytes, (void)flags;
    if (!sim_function_name(function) || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = BLOCKS_MOST;
    return CUDA_SUCCESS;
}

CUresult drv_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                         int block_size, size_t shared_bytes)
{
    return drv_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                    shared_bytes, 0);
}

CUresult drv_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                              CUoccupancyB2DSize shared_of_block,
                                              size_t shared_bytes, int limit)
{
    (void)shared_of_block, (void)shared_bytes;
    if (!sim_function_name(function))
        return CUDA_ERROR_INVALID_VALUE;
    *grid = 56;
    *block = limit > 0 && limit < 256 ? limit : 256;
    return CUDA_SUCCESS;
}

CUresult drv_cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
                                                     int block_size)
{
    (void)blocks, (void)block_size;
    if (!sim_function_name(function))
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = 49152;
    return CUDA_SUCCESS;
}
