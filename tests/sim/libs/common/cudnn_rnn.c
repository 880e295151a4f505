/* cudnn_rnn.c: recurrent networks (torch.nn.LSTM, GRU, RNN) for cuDNN's stand-in.
 *
 * Weights lie one matrix after the other, then one bias after the other; PyTorch asks for each
 * address (cudnnGetRNNWeightParams) and keeps its parameters there. Forward and both backward calls
 * become one modelled operation each.
 * Thread rule: handles and descriptors belong to their creator. Failure rule: projections are not
 * supported.
 */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* most of the interface's are */
#include "cudnn_descriptors.h"
#include "modelled.h"

#include <stdlib.h>

struct cudnnRNNStruct {
    cudnnRNNMode_t mode;
    cudnnDataType_t type;
    int input, hidden, layers, directions;
    bool biased;
};
struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    int steps, batch, width;
};
struct cudnnDropoutStruct {
    float rate;
};

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

DESCRIPTOR(RNN)
DESCRIPTOR(RNNData)
DESCRIPTOR(Dropout)

/* --- dropout states --- */

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes)
{
    *bytes = 4096;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
                                        float rate, void *states, size_t bytes,
                                        unsigned long long seed)
{
    desc->rate = rate;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
                                            float rate, void *states, size_t bytes,
                                            unsigned long long seed)
{
    desc->rate = rate;
    return CUDNN_STATUS_SUCCESS;
}

/* --- descriptions --- */

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t desc, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t mode, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t math, int32_t input_size,
                                       int32_t hidden_size, int32_t projected_size, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    if (projected_size != hidden_size)
        return CUDNN_STATUS_NOT_SUPPORTED;
    *desc = (struct cudnnRNNStruct){.mode = mode,
                                    .type = type,
                                    .input = input_size,
                                    .hidden = hidden_size,
                                    .layers = layers,
                                    .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                                    .biased = bias != CUDNN_RNN_NO_BIAS};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t desc, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int width, const int lengths[], void *padding)
{
    *desc = (struct cudnnRNNDataStruct){type, steps, batch, width};
    return CUDNN_STATUS_SUCCESS;
}

/* --- weights --- */

static int gates(const struct cudnnRNNStruct *rnn)
{
    return rnn->mode == CUDNN_LSTM ? 4 : rnn->mode == CUDNN_GRU ? 3 : 1;
}

/* The width of what matrix `id` of a layer multiplies: the first half the input, the rest the
 * hidden state. */
static int matrix_width(const struct cudnnRNNStruct *rnn, int layer, int id)
{
    if (id >= gates(rnn))
        return rnn->hidden;
    return layer < rnn->directions ? rnn->input : rnn->hidden * rnn->directions;
}

static size_t type_bytes(cudnnDataType_t type)
{
    return modelled_type_bytes(shape_type(&(struct shape){.type = type}));
}

/* Elements before matrix `id` of pseudo layer `layer`; past the last one: all matrices. */
static size_t matrix_offset(const struct cudnnRNNStruct *rnn, int layer, int id)
{
    size_t elements = 0;
    for (int l = 0; l <= layer; l++)
        for (int i = 0; i < (l == layer ? id : 2 * gates(rnn)); i++)
            elements += (size_t)matrix_width(rnn, l, i) * (size_t)rnn->hidden;
    return elements;
}

static size_t bias_offset(const struct cudnnRNNStruct *rnn, int layer, int id)
{
    size_t before = (size_t)(layer * 2 * gates(rnn) + id) * (size_t)rnn->hidden;
    return matrix_offset(rnn, rnn->layers * rnn->directions, 0) + before;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t *bytes)
{
    int layers = rnn->layers * rnn->directions;
    *bytes = type_bytes(rnn->type) *
             (rnn->biased ? bias_offset(rnn, layers, 0) : matrix_offset(rnn, layers, 0));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t layer,
                                      size_t bytes, const void *weights, int32_t id,
                                      cudnnTensorDescriptor_t matrix, void **matrix_address,
                                      cudnnTensorDescriptor_t bias, void **bias_address)
{
    char *base = (char *)(uintptr_t)weights;
    size_t size = type_bytes(rnn->type);
    int width = matrix_width(rnn, layer, id), hidden = rnn->hidden;
    if (matrix) { /* PyTorch asks for one of the two at a time */
        *matrix_address = base + size * matrix_offset(rnn, layer, id);
        cudnnSetTensorNdDescriptor(matrix, rnn->type, 3, (int[]){1, hidden, width},
                                   (int[]){hidden * width, width, 1});
    }
    if (bias) {
        *bias_address = rnn->biased ? base + size * bias_offset(rnn, layer, id) : NULL;
        cudnnSetTensorNdDescriptor(bias, rnn->type, 3, (int[]){1, hidden, 1},
                                   (int[]){hidden, 1, 1});
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t *workspace_bytes, size_t *reserve_bytes)
{
    if (workspace_bytes)
        *workspace_bytes = 512;
    if (reserve_bytes)
        *reserve_bytes = 512;
    return CUDNN_STATUS_SUCCESS;
}

/* --- operations --- */

static size_t data_bytes(const struct cudnnRNNDataStruct *data)
{
    return type_bytes(data->type) * (size_t)data->steps * (size_t)data->batch * (size_t)data->width;
}

static void begin(struct gpusim_op *op, const char *name, const struct cudnnRNNStruct *rnn,
                  const struct cudnnRNNDataStruct *x, size_t weight_bytes)
{
    modelled_begin(op, name, shape_type(&(struct shape){.type = rnn->type}));
    op->flops = 2 * (uint64_t)x->steps * (uint64_t)x->batch * weight_bytes / type_bytes(rnn->type);
}

static cudnnStatus_t launch(cudnnHandle_t handle, const struct gpusim_op *op)
{
    return modelled_launch(op, (CUstream)handle->stream) ? CUDNN_STATUS_SUCCESS
                                                         : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t mode, const int32_t lengths[],
                              cudnnRNNDataDescriptor_t x_desc, const void *x,
                              cudnnRNNDataDescriptor_t y_desc, void *y,
                              cudnnTensorDescriptor_t h_desc, const void *hx, void *hy,
                              cudnnTensorDescriptor_t c_desc, const void *cx, void *cy,
                              size_t weight_bytes, const void *weights, size_t workspace_bytes,
                              void *workspace, size_t reserve_bytes, void *reserve)
{
    struct gpusim_op op;
    begin(&op, "rnn_fwd", rnn, x_desc, weight_bytes);
    modelled_input(&op, x, data_bytes(x_desc));
    modelled_input(&op, hx, shape_bytes(&h_desc->shape));
    modelled_input(&op, cx, cx ? shape_bytes(&c_desc->shape) : 0);
    modelled_input(&op, weights, weight_bytes);
    modelled_output(&op, y, data_bytes(y_desc));
    modelled_output(&op, hy, shape_bytes(&h_desc->shape));
    modelled_output(&op, cy, cy ? shape_bytes(&c_desc->shape) : 0);
    modelled_output(&op, reserve, reserve_bytes);
    return launch(handle, &op);
}

cudnnStatus_t
cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
                        cudnnRNNDataDescriptor_t y_desc, const void *y, const void *dy,
                        cudnnRNNDataDescriptor_t x_desc, void *dx, cudnnTensorDescriptor_t h_desc,
                        const void *hx, const void *dhy, void *dhx, cudnnTensorDescriptor_t c_desc,
                        const void *cx, const void *dcy, void *dcx, size_t weight_bytes,
                        const void *weights, size_t workspace_bytes, void *workspace,
                        size_t reserve_bytes, void *reserve)
{
    struct gpusim_op op;
    begin(&op, "rnn_bwd_data", rnn, x_desc, weight_bytes);
    modelled_input(&op, y, data_bytes(y_desc));
    modelled_input(&op, dy, data_bytes(y_desc));
    modelled_input(&op, dhy, dhy ? shape_bytes(&h_desc->shape) : 0);
    modelled_input(&op, dcy, dcy ? shape_bytes(&c_desc->shape) : 0);
    modelled_input(&op, weights, weight_bytes);
    modelled_input(&op, reserve, reserve_bytes);
    modelled_output(&op, dx, data_bytes(x_desc));
    modelled_output(&op, dhx, dhx ? shape_bytes(&h_desc->shape) : 0);
    modelled_output(&op, dcx, dcx ? shape_bytes(&c_desc->shape) : 0);
    return launch(handle, &op);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t add, const int32_t lengths[],
    cudnnRNNDataDescriptor_t x_desc, const void *x, cudnnTensorDescriptor_t h_desc, const void *hx,
    cudnnRNNDataDescriptor_t y_desc, const void *y, size_t weight_bytes, void *gradients,
    size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)
{
    struct gpusim_op op;
    begin(&op, "rnn_bwd_weights", rnn, x_desc, weight_bytes);
    modelled_input(&op, x, data_bytes(x_desc));
    modelled_input(&op, hx, hx ? shape_bytes(&h_desc->shape) : 0);
    modelled_input(&op, y, data_bytes(y_desc));
    modelled_input(&op, reserve, reserve_bytes);
    modelled_input(&op, gradients, weight_bytes); /* always CUDNN_WGRAD_MODE_ADD in PyTorch */
    modelled_output(&op, gradients, weight_bytes);
    return launch(handle, &op);
}
