/* device.c: what a device is and can do, versions, driver entry points, peers, profiler.
 *
 * Thread rule: none of its own. Failure rule: the driver's error; an attribute the driver does not
 * know is 0 in the properties.
 */
#include "runtime.h"

#include <stddef.h>
#include <string.h>

/* Properties that are one driver attribute each. */
struct property {
    CUdevice_attribute attribute;
    size_t offset;
    int wide; /* the field is a size_t */
};

#define INT(field, name)                                                                           \
    {                                                                                              \
        CU_DEVICE_ATTRIBUTE_##name, offsetof(struct cudaDeviceProp, field), 0                      \
    }
#define WIDE(field, name)                                                                          \
    {                                                                                              \
        CU_DEVICE_ATTRIBUTE_##name, offsetof(struct cudaDeviceProp, field), 1                      \
    }

static const struct property properties[] = {
    WIDE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    INT(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    INT(warpSize, WARP_SIZE),
    WIDE(memPitch, MAX_PITCH),
    INT(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    INT(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    INT(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    INT(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    INT(maxGridSize[0], MAX_GRID_DIM_X),
    INT(maxGridSize[1], MAX_GRID_DIM_Y),
    INT(maxGridSize[2], MAX_GRID_DIM_Z),
    INT(clockRate, CLOCK_RATE),
    WIDE(totalConstMem, TOTAL_CONSTANT_MEMORY),
    INT(major, COMPUTE_CAPABILITY_MAJOR),
    INT(minor, COMPUTE_CAPABILITY_MINOR),
    WIDE(textureAlignment, TEXTURE_ALIGNMENT),
    WIDE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    INT(deviceOverlap, GPU_OVERLAP),
    INT(multiProcessorCount, MULTIPROCESSOR_COUNT),
    INT(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
    INT(integrated, INTEGRATED),
    INT(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    INT(computeMode, COMPUTE_MODE),
    INT(concurrentKernels, CONCURRENT_KERNELS),
    INT(ECCEnabled, ECC_ENABLED),
    INT(pciBusID, PCI_BUS_ID),
    INT(pciDeviceID, PCI_DEVICE_ID),
    INT(pciDomainID, PCI_DOMAIN_ID),
    INT(asyncEngineCount, ASYNC_ENGINE_COUNT),
    INT(unifiedAddressing, UNIFIED_ADDRESSING),
    INT(memoryClockRate, MEMORY_CLOCK_RATE),
    INT(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    INT(l2CacheSize, L2_CACHE_SIZE),
    INT(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    INT(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    INT(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    INT(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    WIDE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    INT(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    INT(managedMemory, MANAGED_MEMORY),
    INT(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    INT(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    INT(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    INT(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    INT(cooperativeLaunch, COOPERATIVE_LAUNCH),
    WIDE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    INT(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    INT(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    INT(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    WIDE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    INT(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    INT(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    INT(clusterLaunch, CLUSTER_LAUNCH),
};

cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaGetDeviceProperties_v2(%d)", device);
    memset(prop, 0, sizeof(*prop));
    cudaError_t error = RT_CALL(cuDeviceGetName, prop->name, sizeof(prop->name), device);
    if (error == cudaSuccess)
        error = RT_CALL(cuDeviceTotalMem, &prop->totalGlobalMem, device);
    if (error != cudaSuccess)
        RT_RETURN(error);
    (void)RT_CALL(cuDeviceGetUuid, (CUuuid *)&prop->uuid, device);
    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
        int value = 0;
        (void)RT_CALL(cuDeviceGetAttribute, &value, properties[i].attribute, device);
        char *field = (char *)prop + properties[i].offset;
        if (properties[i].wide)
            *(size_t *)field = (size_t)value;
        else
            *(int *)field = value;
    }
    return cudaSuccess;
}

/* The attribute numbers of both layers are the same (driver_types.h). */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr name, int device)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaDeviceGetAttribute(%d, %d)", (int)name, device);
    RT_FORWARD(cuDeviceGetAttribute, value, (CUdevice_attribute)name, device);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaDeviceGetPCIBusId(%d)", device);
    RT_FORWARD(cuDeviceGetPCIBusId, id, bytes, device);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaDeviceGetStreamPriorityRange");
    RT_FORWARD(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaDeviceCanAccessPeer(%d, %d)", device, peer);
    RT_FORWARD(cuDeviceCanAccessPeer, can, device, peer);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaDeviceEnablePeerAccess(%d)", peer);
    CUcontext context;
    cudaError_t error = RT_CALL(cuDevicePrimaryCtxRetain, &context, peer);
    if (error != cudaSuccess)
        RT_RETURN(error);
    RT_FORWARD(cuCtxEnablePeerAccess, context, flags);
}

/* --- versions and entry points --- */

cudaError_t cudaDriverGetVersion(int *version)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaDriverGetVersion");
    RT_FORWARD(cuDriverGetVersion, version);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaGetDriverEntryPointByVersion(%s, %u)", symbol, version);
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = rt_driver.get_proc_address(symbol, function, (int)version, flags, &status);
    if (found)
        *found = (enum cudaDriverEntryPointQueryResult)status;
    /* Not found is success with a status (CUDA Runtime API, driver entry point access). */
    RT_RETURN(found && result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : rt_translate(result));
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, found);
}

#pragma GCC visibility push(default)
cudaError_t cudaProfilerStart(void); /* cuda_profiler_api.h, which the runtime's wheel lacks */
cudaError_t cudaProfilerStop(void);
#pragma GCC visibility pop

cudaError_t cudaProfilerStart(void)
{
    RT_LOG("cudaProfilerStart");
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    RT_LOG("cudaProfilerStop");
    return cudaSuccess;
}
