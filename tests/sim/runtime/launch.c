/* launch.c: kernel launches, the <<< >>> call configuration, function attributes and occupancy.
 *
 * Thread rule: the call configuration is a per-thread stack. Failure rule: a host function that no
 * object registered answers cudaErrorInvalidDeviceFunction, as with a missing kernel image.
 */
#include "runtime.h"

#define MAX_CONFIGURATIONS 16

struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

static _Thread_local struct configuration configurations[MAX_CONFIGURATIONS];
static _Thread_local unsigned configuration_count;

#pragma GCC visibility push(default)
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
#pragma GCC visibility pop

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    if (configuration_count == MAX_CONFIGURATIONS)
        return 1;
    configurations[configuration_count++] =
        (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    if (configuration_count == 0)
        return rt_set_error(cudaErrorMissingConfiguration);
    struct configuration *top = &configurations[--configuration_count];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    *(cudaStream_t *)stream = top->stream;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *host_function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaLaunchKernel(%p, %p)", host_function, (void *)stream);
    CUfunction function = rt_function(host_function);
    if (!function)
        RT_RETURN(cudaErrorInvalidDeviceFunction);
    RT_FORWARD(cuLaunchKernel, function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
               (unsigned)shared_bytes, stream, arguments, NULL);
}

cudaError_t cudaLaunchCooperativeKernel(const void *host_function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaLaunchCooperativeKernel(%p, %p)", host_function,
             (void *)stream);
    CUfunction function = rt_function(host_function);
    if (!function)
        RT_RETURN(cudaErrorInvalidDeviceFunction);
    RT_FORWARD(cuLaunchCooperativeKernel, function, grid.x, grid.y, grid.z, block.x, block.y,
               block.z, (unsigned)shared_bytes, stream, arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host_function,
                                void **arguments)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaLaunchKernelExC(%p, %p)", host_function,
             (void *)config->stream);
    CUfunction function = rt_function(host_function);
    if (!function)
        RT_RETURN(cudaErrorInvalidDeviceFunction);
    CUlaunchConfig same = {
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = (CUlaunchAttribute *)config->attrs,
        .numAttrs = config->numAttrs,
    };
    RT_FORWARD(cuLaunchKernelEx, &same, function, arguments, NULL);
}

/* --- attributes --- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *host_function)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaFuncGetAttributes(%p)", host_function);
    CUfunction function = rt_function(host_function);
    if (!function)
        RT_RETURN(cudaErrorInvalidDeviceFunction);
    const struct {
        CUfunction_attribute name;
        int *value;
    } numbers[] = {
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attributes->maxThreadsPerBlock},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &attributes->numRegs},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &attributes->ptxVersion},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attributes->binaryVersion},
        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &attributes->maxDynamicSharedSizeBytes},
    };
    *attributes = (struct cudaFuncAttributes){0};
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && error == cudaSuccess; i++)
        error = RT_CALL(cuFuncGetAttribute, numbers[i].value, numbers[i].name, function);
    int shared_bytes = 0;
    if (error == cudaSuccess)
        error = RT_CALL(cuFuncGetAttribute, &shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                        function);
    attributes->sharedSizeBytes = (size_t)shared_bytes;
    RT_RETURN(error);
}

cudaError_t cudaFuncSetAttribute(const void *host_function, enum cudaFuncAttribute name, int value)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaFuncSetAttribute(%p, %d)", host_function, (int)name);
    CUfunction function = rt_function(host_function);
    if (!function)
        RT_RETURN(cudaErrorInvalidDeviceFunction);
    RT_FORWARD(cuFuncSetAttribute, function, (CUfunction_attribute)name, value);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *host_function, int block_size, size_t shared_bytes, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(%p)",
             host_function);
    CUfunction function = rt_function(host_function);
    if (!function)
        RT_RETURN(cudaErrorInvalidDeviceFunction);
    RT_FORWARD(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, function, block_size,
               shared_bytes, flags);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host_function,
                                                          int block_size, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host_function, block_size,
                                                                  shared_bytes, 0);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *host_function)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGetFuncBySymbol(%p)", host_function);
    *function = rt_function(host_function);
    RT_RETURN(*function ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
