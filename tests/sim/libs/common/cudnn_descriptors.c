/* cudnn_descriptors.c: see the header. Linked into all library stand-ins, exported by cuDNN's only.
 *
 * Thread rule: none of its own. Failure rule: see the header.
 */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* most of the interface's are */
#include "cudnn_descriptors.h"

#include "modelled.h"

#include <stdlib.h>
#include <string.h>

#define DESCRIPTOR(Name)                                                                           \
    cudnnStatus_t cudnnCreate##Name##Descriptor(cudnn##Name##Descriptor_t *desc)                   \
    {                                                                                              \
        *desc = calloc(1, sizeof(**desc));                                                         \
        return *desc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;  \
    }                                                                                              \
    cudnnStatus_t cudnnDestroy##Name##Descriptor(cudnn##Name##Descriptor_t desc)                   \
    {                                                                                              \
        free(desc);                                                                                \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }

DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
DESCRIPTOR(Activation)
DESCRIPTOR(Pooling)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type,
                                         int count, const int dims[], const int strides[])
{
    if (count > MAX_DIMS)
        return CUDNN_STATUS_NOT_SUPPORTED;
    desc->shape.type = type;
    desc->shape.count = count;
    memcpy(desc->shape.dims, dims, (size_t)count * sizeof(int));
    memcpy(desc->shape.strides, strides, (size_t)count * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
}

static int at_most(int wanted, int have)
{
    return wanted < have ? wanted : have;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t desc, int wanted,
                                         cudnnDataType_t *type, int *count, int dims[],
                                         int strides[])
{
    int copied = at_most(wanted, desc->shape.count);
    *type = desc->shape.type;
    *count = desc->shape.count;
    memcpy(dims, desc->shape.dims, (size_t)copied * sizeof(int));
    memcpy(strides, desc->shape.strides, (size_t)copied * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int count, const int dims[])
{
    if (count > MAX_DIMS)
        return CUDNN_STATUS_NOT_SUPPORTED;
    desc->shape.type = type;
    desc->shape.format = format;
    desc->shape.count = count;
    memcpy(desc->shape.dims, dims, (size_t)count * sizeof(int));
    int stride = 1; /* filters are dense in either format */
    for (int i = count; i-- > 0;) {
        desc->shape.strides[i] = stride;
        stride *= dims[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t desc, int wanted,
                                         cudnnDataType_t *type, cudnnTensorFormat_t *format,
                                         int *count, int dims[])
{
    *type = desc->shape.type;
    *format = desc->shape.format;
    *count = desc->shape.count;
    memcpy(dims, desc->shape.dims, (size_t)at_most(wanted, desc->shape.count) * sizeof(int));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t desc, int count,
                                              const int pads[], const int strides[],
                                              const int dilations[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type)
{
    desc->groups = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups)
{
    desc->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t type)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coefficient)
{
    desc->mode = mode;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int height, int width,
                                          int vertical_padding, int horizontal_padding,
                                          int vertical_stride, int horizontal_stride)
{
    desc->mode = mode;
    return CUDNN_STATUS_SUCCESS;
}

cudaDataType_t shape_type(const struct shape *shape)
{
    switch (shape->type) {
    case CUDNN_DATA_HALF:
        return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16:
        return CUDA_R_16BF;
    case CUDNN_DATA_DOUBLE:
        return CUDA_R_64F;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
        return CUDA_R_8I;
    default:
        return CUDA_R_32F;
    }
}

uint64_t shape_elements(const struct shape *shape)
{
    uint64_t count = 1;
    for (int i = 0; i < shape->count; i++)
        count *= (uint64_t)shape->dims[i];
    return count;
}

/* From the first byte to the last, holes included. */
size_t shape_bytes(const struct shape *shape)
{
    size_t last = 0;
    for (int i = 0; i < shape->count; i++)
        last += (size_t)(shape->dims[i] - 1) * (size_t)shape->strides[i];
    return (last + 1) * modelled_type_bytes(shape_type(shape));
}
