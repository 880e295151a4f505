/* cudnn.c: stand-in for libcudnn.so.9: convolutions, batch normalisation and pooling.
 *
 * PyTorch takes this (v7 style) interface when TORCH_CUDNN_V8_API_DISABLED=1; each call becomes one
 * modelled operation whose operand sizes come from the descriptors. One algorithm is offered.
 * Thread rule: handles and descriptors belong to their creator. Failure rule: what is not modelled
 * (RNN, CTC, the backend interface) answers CUDNN_STATUS_NOT_SUPPORTED.
 */
#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include "common/modelled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIMS 8

struct cudnnContext {
    cudaStream_t stream;
};

struct shape {
    cudnnDataType_t type;
    cudnnTensorFormat_t format;
    int count;
    int dims[MAX_DIMS], strides[MAX_DIMS];
};

struct cudnnTensorStruct {
    struct shape shape;
};
struct cudnnFilterStruct {
    struct shape shape;
};
struct cudnnConvolutionStruct {
    int groups;
};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
};
struct cudnnPoolingStruct {
    cudnnPoolingMode_t mode;
};

/* --- the library and its handle --- */

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION   ? CUDNN_MAJOR
             : type == MINOR_VERSION ? CUDNN_MINOR
                                     : CUDNN_PATCHLEVEL;
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS         ? "CUDNN_STATUS_SUCCESS"
           : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                  : "CUDNN_STATUS_EXECUTION_FAILED";
}

void cudnnGetLastErrorString(char *message, size_t bytes)
{
    snprintf(message, bytes, "the simulated cuDNN does not model this operation");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = calloc(1, sizeof(**handle));
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

/* --- descriptors --- */

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
    (void)count, (void)pads, (void)strides, (void)dilations, (void)mode, (void)type;
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
    (void)desc, (void)type;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coefficient)
{
    (void)nan, (void)coefficient;
    desc->mode = mode;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int height, int width,
                                          int vertical_padding, int horizontal_padding,
                                          int vertical_stride, int horizontal_stride)
{
    (void)nan, (void)height, (void)width, (void)vertical_padding, (void)horizontal_padding;
    (void)vertical_stride, (void)horizontal_stride;
    desc->mode = mode;
    return CUDNN_STATUS_SUCCESS;
}

/* --- operations --- */

static cudaDataType_t type_of(const struct shape *shape)
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

static uint64_t elements(const struct shape *shape)
{
    uint64_t count = 1;
    for (int i = 0; i < shape->count; i++)
        count *= (uint64_t)shape->dims[i];
    return count;
}

/* From the first byte to the last, holes included. */
static size_t span_bytes(const struct shape *shape)
{
    size_t last = 0;
    for (int i = 0; i < shape->count; i++)
        last += (size_t)(shape->dims[i] - 1) * (size_t)shape->strides[i];
    return (last + 1) * modelled_type_bytes(type_of(shape));
}

static void input(struct gpusim_op *op, const struct shape *shape, const void *pointer)
{
    modelled_input(op, pointer, span_bytes(shape));
}

static void output(struct gpusim_op *op, const struct shape *shape, void *pointer)
{
    modelled_output(op, pointer, span_bytes(shape));
}

/* cuDNN's beta is float for all types but double (cuDNN developer guide, "Scaling parameters"). */
static void accumulated(struct gpusim_op *op, const struct shape *shape, const void *beta,
                        const void *pointer)
{
    if (modelled_nonzero(beta, shape->type == CUDNN_DATA_DOUBLE ? CUDA_R_64F : CUDA_R_32F))
        input(op, shape, pointer);
}

static cudnnStatus_t launch(cudnnHandle_t handle, const struct gpusim_op *op)
{
    return modelled_launch(op, (CUstream)handle->stream) ? CUDNN_STATUS_SUCCESS
                                                         : CUDNN_STATUS_EXECUTION_FAILED;
}

/* A multiplication and an addition per output element and filter tap of its output channel. */
static uint64_t convolution_flops(const struct shape *y, const struct shape *w)
{
    return 2 * elements(y) * (elements(w) / (uint64_t)w->dims[0]);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void *x,
                                      const cudnnFilterDescriptor_t w_desc, const void *w,
                                      const cudnnConvolutionDescriptor_t desc,
                                      cudnnConvolutionFwdAlgo_t algo, void *workspace,
                                      size_t workspace_bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y_desc, void *y)
{
    (void)alpha, (void)desc, (void)algo, (void)workspace, (void)workspace_bytes;
    struct gpusim_op op;
    modelled_begin(&op, "conv_fwd", type_of(&y_desc->shape));
    input(&op, &x_desc->shape, x);
    input(&op, &w_desc->shape, w);
    accumulated(&op, &y_desc->shape, beta, y);
    output(&op, &y_desc->shape, y);
    op.flops = convolution_flops(&y_desc->shape, &w_desc->shape);
    return launch(handle, &op);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void *w,
                                           const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           const cudnnConvolutionDescriptor_t desc,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *workspace,
                                           size_t workspace_bytes, const void *beta,
                                           const cudnnTensorDescriptor_t dx_desc, void *dx)
{
    (void)alpha, (void)desc, (void)algo, (void)workspace, (void)workspace_bytes;
    struct gpusim_op op;
    modelled_begin(&op, "conv_bwd_data", type_of(&dx_desc->shape));
    input(&op, &w_desc->shape, w);
    input(&op, &dy_desc->shape, dy);
    accumulated(&op, &dx_desc->shape, beta, dx);
    output(&op, &dx_desc->shape, dx);
    op.flops = convolution_flops(&dy_desc->shape, &w_desc->shape);
    return launch(handle, &op);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void *x,
                                             const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             const cudnnConvolutionDescriptor_t desc,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
                                             size_t workspace_bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw_desc, void *dw)
{
    (void)alpha, (void)desc, (void)algo, (void)workspace, (void)workspace_bytes;
    struct gpusim_op op;
    modelled_begin(&op, "conv_bwd_filter", type_of(&dw_desc->shape));
    input(&op, &x_desc->shape, x);
    input(&op, &dy_desc->shape, dy);
    accumulated(&op, &dw_desc->shape, beta, dw);
    output(&op, &dw_desc->shape, dw);
    op.flops = convolution_flops(&dy_desc->shape, &dw_desc->shape);
    return launch(handle, &op);
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnFilterDescriptor_t w_desc, const void *w, const cudnnConvolutionDescriptor_t desc,
    cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t workspace_bytes, const void *alpha2,
    const cudnnTensorDescriptor_t z_desc, const void *z, const cudnnTensorDescriptor_t bias_desc,
    const void *bias, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y_desc, void *y)
{
    (void)alpha1, (void)desc, (void)algo, (void)workspace, (void)workspace_bytes, (void)activation;
    struct gpusim_op op;
    modelled_begin(&op, "conv_bias_act", type_of(&y_desc->shape));
    input(&op, &x_desc->shape, x);
    input(&op, &w_desc->shape, w);
    input(&op, &bias_desc->shape, bias);
    accumulated(&op, &z_desc->shape, alpha2, z);
    output(&op, &y_desc->shape, y);
    op.flops = convolution_flops(&y_desc->shape, &w_desc->shape);
    return launch(handle, &op);
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t desc,
                                  const void *alpha, const cudnnTensorDescriptor_t x_desc,
                                  const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t y_desc, void *y)
{
    (void)desc, (void)alpha;
    struct gpusim_op op;
    modelled_begin(&op, "pool_fwd", type_of(&y_desc->shape));
    input(&op, &x_desc->shape, x);
    accumulated(&op, &y_desc->shape, beta, y);
    output(&op, &y_desc->shape, y);
    return launch(handle, &op);
}

/* --- batch normalisation --- */

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnTensorDescriptor_t z_desc, const void *z, const cudnnTensorDescriptor_t y_desc,
    void *y, const cudnnTensorDescriptor_t p_desc, const void *scale, const void *bias,
    double factor, void *running_mean, void *running_variance, double epsilon, void *mean,
    void *inverse_variance, cudnnActivationDescriptor_t activation, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    (void)mode, (void)ops, (void)alpha, (void)beta, (void)z_desc, (void)z, (void)factor;
    (void)epsilon, (void)activation, (void)workspace, (void)workspace_bytes, (void)reserve;
    (void)reserve_bytes;
    const struct shape *p = &p_desc->shape;
    struct gpusim_op op;
    modelled_begin(&op, "bn_fwd", type_of(&y_desc->shape));
    input(&op, &x_desc->shape, x);
    input(&op, p, scale);
    input(&op, p, bias);
    input(&op, p, running_mean);
    input(&op, p, running_variance);
    output(&op, &y_desc->shape, y);
    cudnnStatus_t status = launch(handle, &op);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    /* The statistics are float whatever x is: a second operation with its own type. */
    op.output_count = 0;
    snprintf(op.name, sizeof(op.name), "bn_stats:%s", p->type == CUDNN_DATA_DOUBLE ? "f64" : "f32");
    output(&op, p, running_mean);
    output(&op, p, running_variance);
    output(&op, p, mean);
    output(&op, p, inverse_variance);
    return launch(handle, &op);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t x_desc, const void *x, const cudnnTensorDescriptor_t y_desc,
    void *y, const cudnnTensorDescriptor_t p_desc, const void *scale, const void *bias,
    const void *mean, const void *variance, double epsilon)
{
    (void)mode, (void)alpha, (void)beta, (void)epsilon;
    struct gpusim_op op;
    modelled_begin(&op, "bn_infer", type_of(&y_desc->shape));
    input(&op, &x_desc->shape, x);
    input(&op, &p_desc->shape, scale);
    input(&op, &p_desc->shape, bias);
    input(&op, &p_desc->shape, mean);
    input(&op, &p_desc->shape, variance);
    output(&op, &y_desc->shape, y);
    return launch(handle, &op);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void *alpha_data, const void *beta_data, const void *alpha_parameter,
    const void *beta_parameter, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnTensorDescriptor_t y_desc, const void *y, const cudnnTensorDescriptor_t dy_desc,
    const void *dy, const cudnnTensorDescriptor_t dz_desc, void *dz,
    const cudnnTensorDescriptor_t dx_desc, void *dx, const cudnnTensorDescriptor_t p_desc,
    const void *scale, const void *bias, void *d_scale, void *d_bias, double epsilon,
    const void *mean, const void *inverse_variance, cudnnActivationDescriptor_t activation,
    void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    (void)mode, (void)ops, (void)alpha_data, (void)beta_data, (void)alpha_parameter;
    (void)beta_parameter, (void)y_desc, (void)y, (void)dz_desc, (void)dz, (void)bias, (void)epsilon;
    (void)activation, (void)workspace, (void)workspace_bytes, (void)reserve, (void)reserve_bytes;
    const struct shape *p = &p_desc->shape;
    struct gpusim_op op;
    modelled_begin(&op, "bn_bwd", type_of(&dx_desc->shape));
    input(&op, &x_desc->shape, x);
    input(&op, &dy_desc->shape, dy);
    input(&op, p, scale);
    input(&op, p, mean);
    input(&op, p, inverse_variance);
    output(&op, &dx_desc->shape, dx);
    cudnnStatus_t status = launch(handle, &op);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    op.output_count = 0;
    snprintf(op.name, sizeof(op.name), "bn_grads:%s", p->type == CUDNN_DATA_DOUBLE ? "f64" : "f32");
    output(&op, p, d_scale);
    output(&op, p, d_bias);
    return launch(handle, &op);
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t p,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)x, (void)z, (void)y, (void)p, (void)activation;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t p,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)x, (void)y, (void)dy, (void)dz, (void)dx, (void)p;
    (void)activation;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x, size_t *bytes)
{
    (void)handle, (void)mode, (void)ops, (void)activation, (void)x;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

/* --- algorithms: one for each direction, without workspace --- */

#define ONE_ALGORITHM(Perf, results, requested, returned, choice)                                  \
    *(returned) = (requested) > 0;                                                                 \
    if ((requested) > 0)                                                                           \
        *(results) = (Perf){.algo = (choice),                                                      \
                            .status = CUDNN_STATUS_SUCCESS,                                        \
                            .time = 0.1f,                                                          \
                            .determinism = CUDNN_DETERMINISTIC,                                    \
                            .mathType = CUDNN_DEFAULT_MATH};                                       \
    return CUDNN_STATUS_SUCCESS

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t desc, const cudnnTensorDescriptor_t y, const int requested,
    int *returned, cudnnConvolutionFwdAlgoPerf_t *results)
{
    (void)handle, (void)x, (void)w, (void)desc, (void)y;
    ONE_ALGORITHM(cudnnConvolutionFwdAlgoPerf_t, results, requested, returned,
                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnFilterDescriptor_t w_desc, const void *w, const cudnnConvolutionDescriptor_t desc,
    const cudnnTensorDescriptor_t y_desc, void *y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *results, void *workspace, size_t bytes)
{
    (void)x, (void)w, (void)y, (void)workspace, (void)bytes;
    return cudnnGetConvolutionForwardAlgorithm_v7(handle, x_desc, w_desc, desc, y_desc, requested,
                                                  returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t desc, const cudnnTensorDescriptor_t dx, const int requested,
    int *returned, cudnnConvolutionBwdDataAlgoPerf_t *results)
{
    (void)handle, (void)w, (void)dy, (void)desc, (void)dx;
    ONE_ALGORITHM(cudnnConvolutionBwdDataAlgoPerf_t, results, requested, returned,
                  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w_desc, const void *w,
    const cudnnTensorDescriptor_t dy_desc, const void *dy, const cudnnConvolutionDescriptor_t desc,
    const cudnnTensorDescriptor_t dx_desc, void *dx, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *results, void *workspace, size_t bytes)
{
    (void)w, (void)dy, (void)dx, (void)workspace, (void)bytes;
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w_desc, dy_desc, desc, dx_desc,
                                                       requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t desc, const cudnnFilterDescriptor_t dw, const int requested,
    int *returned, cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
    (void)handle, (void)x, (void)dy, (void)desc, (void)dw;
    ONE_ALGORITHM(cudnnConvolutionBwdFilterAlgoPerf_t, results, requested, returned,
                  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnTensorDescriptor_t dy_desc, const void *dy, const cudnnConvolutionDescriptor_t desc,
    const cudnnFilterDescriptor_t dw_desc, void *dw, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *results, void *workspace, size_t bytes)
{
    (void)x, (void)dy, (void)dw, (void)workspace, (void)bytes;
    return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x_desc, dy_desc, desc, dw_desc,
                                                         requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle,
                                                      const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t desc,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t *bytes)
{
    (void)handle, (void)x, (void)w, (void)desc, (void)y, (void)algo;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t desc, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes)
{
    (void)handle, (void)w, (void)dy, (void)desc, (void)dx, (void)algo;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t desc, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
    (void)handle, (void)x, (void)dy, (void)desc, (void)dw, (void)algo;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}

/* --- imported, but not modelled --- */

__attribute__((used)) static cudnnStatus_t not_supported(void)
{
    return CUDNN_STATUS_NOT_SUPPORTED;
}

#define REFUSE(name) __asm__(".globl cudnn" #name "\n.set cudnn" #name ", not_supported");

REFUSE(BackendCreateDescriptor)
REFUSE(BackendDestroyDescriptor) REFUSE(BackendExecute) REFUSE(BackendFinalize) REFUSE(
    BackendGetAttribute) REFUSE(BackendSetAttribute) REFUSE(CTCLoss) REFUSE(CTCLoss_v8)
    REFUSE(CreateCTCLossDescriptor) REFUSE(DestroyCTCLossDescriptor) REFUSE(GetCTCLossWorkspaceSize)
        REFUSE(GetCTCLossWorkspaceSize_v8) REFUSE(SetCTCLossDescriptorEx)
            REFUSE(SetCTCLossDescriptor_v9) REFUSE(CreateDropoutDescriptor)
                REFUSE(DestroyDropoutDescriptor) REFUSE(DropoutGetStatesSize)
                    REFUSE(RestoreDropoutDescriptor) REFUSE(SetDropoutDescriptor)
                        REFUSE(CreateRNNDataDescriptor) REFUSE(DestroyRNNDataDescriptor)
                            REFUSE(CreateRNNDescriptor) REFUSE(DestroyRNNDescriptor)
                                REFUSE(SetRNNDataDescriptor) REFUSE(SetRNNDescriptor_v8)
                                    REFUSE(GetRNNTempSpaceSizes) REFUSE(GetRNNWeightParams)
                                        REFUSE(GetRNNWeightSpaceSize) REFUSE(RNNBackwardData_v8)
                                            REFUSE(RNNBackwardWeights_v8) REFUSE(RNNForward)
                                                REFUSE(CreateSpatialTransformerDescriptor) REFUSE(
                                                    DestroySpatialTransformerDescriptor)
                                                    REFUSE(SetSpatialTransformerNdDescriptor)
                                                        REFUSE(SpatialTfGridGeneratorBackward)
                                                            REFUSE(SpatialTfGridGeneratorForward)
                                                                REFUSE(SpatialTfSamplerBackward)
                                                                    REFUSE(SpatialTfSamplerForward)
