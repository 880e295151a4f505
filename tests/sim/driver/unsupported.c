/* unsupported.c: entry points that must exist, since PyTorch asks for their addresses, but that
 * this device cannot do: multicast objects, linking, tensor maps.
 *
 * Thread rule: none needed. Failure rule: NOT_SUPPORTED, always.
 */
#include "entry.h"

#define UNSUPPORTED(name, params)                                                                  \
    CUresult drv_##name params                                                                     \
    {                                                                                              \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

UNSUPPORTED(cuMulticastCreate,
            (CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *prop))
UNSUPPORTED(cuMulticastAddDevice, (CUmemGenericAllocationHandle handle, CUdevice device))
UNSUPPORTED(cuMulticastBindMem,
            (CUmemGenericAllocationHandle handle, size_t at, CUmemGenericAllocationHandle memory,
             size_t memory_at, size_t bytes, unsigned long long flags))
UNSUPPORTED(cuMulticastUnbind,
            (CUmemGenericAllocationHandle handle, CUdevice device, size_t at, size_t bytes))
UNSUPPORTED(cuLinkCreate_v2,
            (unsigned count, CUjit_option *options, void **values, CUlinkState *state))
UNSUPPORTED(cuLinkAddData_v2,
            (CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
             unsigned count, CUjit_option *options, void **values))
UNSUPPORTED(cuLinkComplete, (CUlinkState state, void **cubin, size_t *bytes))
UNSUPPORTED(cuLinkDestroy, (CUlinkState state))
UNSUPPORTED(cuTensorMapEncodeTiled,
            (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address,
             const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
             const cuuint32_t *elements, CUtensorMapInterleave interleave,
             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
             CUtensorMapFloatOOBfill fill))
UNSUPPORTED(cuMemGetHandleForAddressRange, (void *handle, CUdeviceptr address, size_t bytes,
                                            CUmemRangeHandleType type, unsigned long long flags))
