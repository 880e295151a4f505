/* cudnn.c: stand-in for libcudnn.so.9: convolutions, batch normalisation and pooling.
 *
 * PyTorch takes this (v7 style) interface when TORCH_CUDNN_V8_API_DISABLED=1; each call becomes one
 * modelled operation whose operand sizes come from the descriptors. One algorithm is offered.
 * Thread rule: handles and descriptors belong to their creator. Failure rule: what is not modelled
 * (CTC, spatial transformers, the backend interface) answers CUDNN_STATUS_NOT_SUPPORTED.
 */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* most of the interface's are */
#include "common/cudnn_descriptors.h"
#include "common/modelled.h"

#include <stdio.h>
#include <stdlib.h>

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

/* --- operations --- */

static void input(struct gpusim_op *op, const struct shape *shape, const void *pointer)
{
    modelled_input(op, pointer, shape_bytes(shape));
}

static void output(struct gpusim_op *op, const struct shape *shape, void *pointer)
{
    modelled_output(op, pointer, shape_bytes(shape));
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
    return 2 * shape_elements(y) * (shape_elements(w) / (uint64_t)w->dims[0]);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void *x,
                                      const cudnnFilterDescriptor_t w_desc, const void *w,
                                      const cudnnConvolutionDescriptor_t desc,
                                      cudnnConvolutionFwdAlgo_t algo, void *workspace,
                                      size_t workspace_bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y_desc, void *y)
{
    struct gpusim_op op;
    modelled_begin(&op, "conv_fwd", shape_type(&y_desc->shape));
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
    struct gpusim_op op;
    modelled_begin(&op, "conv_bwd_data", shape_type(&dx_desc->shape));
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
    struct gpusim_op op;
    modelled_begin(&op, "conv_bwd_filter", shape_type(&dw_desc->shape));
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
    struct gpusim_op op;
    modelled_begin(&op, "conv_bias_act", shape_type(&y_desc->shape));
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
    struct gpusim_op op;
    modelled_begin(&op, "pool_fwd", shape_type(&y_desc->shape));
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
    const struct shape *p = &p_desc->shape;
    struct gpusim_op op;
    modelled_begin(&op, "bn_fwd", shape_type(&y_desc->shape));
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
    struct gpusim_op op;
    modelled_begin(&op, "bn_infer", shape_type(&y_desc->shape));
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
    const struct shape *p = &p_desc->shape;
    struct gpusim_op op;
    modelled_begin(&op, "bn_bwd", shape_type(&dx_desc->shape));
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

#define NO_WORKSPACE(name, parameters)                                                             \
    cudnnStatus_t name parameters                                                                  \
    {                                                                                              \
        *bytes = 0;                                                                                \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }

NO_WORKSPACE(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
             (cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
              const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z,
              const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t p,
              const cudnnActivationDescriptor_t activation, size_t *bytes))

NO_WORKSPACE(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
             (cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
              const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
              const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
              const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t p,
              const cudnnActivationDescriptor_t activation, size_t *bytes))

NO_WORKSPACE(cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
             (cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
              const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x,
              size_t *bytes))

/* --- algorithms: one for each direction, without workspace --- */

/* Asking for one (..._v7) and looking for the fastest (Find...Ex, cudnn.benchmark) answer alike. */
#define ONE_ALGORITHM(Perf, choice, get, get_parameters, find, find_parameters)                    \
    static cudnnStatus_t answer_##get(int requested, int *returned, Perf *results)                 \
    {                                                                                              \
        *returned = requested > 0;                                                                 \
        if (requested > 0)                                                                         \
            *results = (Perf){.algo = (choice),                                                    \
                              .status = CUDNN_STATUS_SUCCESS,                                      \
                              .time = 0.1f,                                                        \
                              .determinism = CUDNN_DETERMINISTIC,                                  \
                              .mathType = CUDNN_DEFAULT_MATH};                                     \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }                                                                                              \
    cudnnStatus_t get get_parameters                                                               \
    {                                                                                              \
        return answer_##get(requested, returned, results);                                         \
    }                                                                                              \
    cudnnStatus_t find find_parameters                                                             \
    {                                                                                              \
        return answer_##get(requested, returned, results);                                         \
    }

ONE_ALGORITHM(cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
              cudnnGetConvolutionForwardAlgorithm_v7,
              (cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
               const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t desc,
               const cudnnTensorDescriptor_t y, const int requested, int *returned,
               cudnnConvolutionFwdAlgoPerf_t *results),
              cudnnFindConvolutionForwardAlgorithmEx,
              (cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void *x,
               const cudnnFilterDescriptor_t w_desc, const void *w,
               const cudnnConvolutionDescriptor_t desc, const cudnnTensorDescriptor_t y_desc,
               void *y, const int requested, int *returned, cudnnConvolutionFwdAlgoPerf_t *results,
               void *workspace, size_t bytes))
ONE_ALGORITHM(cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
              cudnnGetConvolutionBackwardDataAlgorithm_v7,
              (cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
               const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t desc,
               const cudnnTensorDescriptor_t dx, const int requested, int *returned,
               cudnnConvolutionBwdDataAlgoPerf_t *results),
              cudnnFindConvolutionBackwardDataAlgorithmEx,
              (cudnnHandle_t handle, const cudnnFilterDescriptor_t w_desc, const void *w,
               const cudnnTensorDescriptor_t dy_desc, const void *dy,
               const cudnnConvolutionDescriptor_t desc, const cudnnTensorDescriptor_t dx_desc,
               void *dx, const int requested, int *returned,
               cudnnConvolutionBwdDataAlgoPerf_t *results, void *workspace, size_t bytes))
ONE_ALGORITHM(cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
              cudnnGetConvolutionBackwardFilterAlgorithm_v7,
              (cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
               const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t desc,
               const cudnnFilterDescriptor_t dw, const int requested, int *returned,
               cudnnConvolutionBwdFilterAlgoPerf_t *results),
              cudnnFindConvolutionBackwardFilterAlgorithmEx,
              (cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void *x,
               const cudnnTensorDescriptor_t dy_desc, const void *dy,
               const cudnnConvolutionDescriptor_t desc, const cudnnFilterDescriptor_t dw_desc,
               void *dw, const int requested, int *returned,
               cudnnConvolutionBwdFilterAlgoPerf_t *results, void *workspace, size_t bytes))

NO_WORKSPACE(cudnnGetConvolutionForwardWorkspaceSize,
             (cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
              const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t desc,
              const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo, size_t *bytes))

NO_WORKSPACE(cudnnGetConvolutionBackwardDataWorkspaceSize,
             (cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
              const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t desc,
              const cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes))

NO_WORKSPACE(cudnnGetConvolutionBackwardFilterWorkspaceSize,
             (cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
              const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t desc,
              const cudnnFilterDescriptor_t dw, cudnnConvolutionBwdFilterAlgo_t algo,
              size_t *bytes))

/* --- imported, but not modelled --- */

__attribute__((used)) static cudnnStatus_t not_supported(void)
{
    return CUDNN_STATUS_NOT_SUPPORTED;
}

#define REFUSE(name) __asm__(".globl cudnn" #name "\n.set cudnn" #name ", not_supported");

/* clang-format off */
REFUSE(BackendCreateDescriptor) REFUSE(BackendDestroyDescriptor) REFUSE(BackendExecute)
REFUSE(BackendFinalize) REFUSE(BackendGetAttribute) REFUSE(BackendSetAttribute) REFUSE(CTCLoss)
REFUSE(CTCLoss_v8) REFUSE(CreateCTCLossDescriptor) REFUSE(DestroyCTCLossDescriptor)
REFUSE(GetCTCLossWorkspaceSize) REFUSE(GetCTCLossWorkspaceSize_v8) REFUSE(SetCTCLossDescriptorEx)
REFUSE(SetCTCLossDescriptor_v9) REFUSE(CreateSpatialTransformerDescriptor)
REFUSE(DestroySpatialTransformerDescriptor) REFUSE(SetSpatialTransformerNdDescriptor)
REFUSE(SpatialTfGridGeneratorBackward) REFUSE(SpatialTfGridGeneratorForward)
REFUSE(SpatialTfSamplerBackward) REFUSE(SpatialTfSamplerForward)
    /* clang-format on */
