/* kernel_model_plain.c: kernels with plain pointers, tensor accessors and TensorInfo parameters.
 *
 * The parameter list says what is an input (pointer to const) and what an output. Accessors and
 * TensorInfo carry their sizes; for pointers a table of rules gives element counts as products of
 * the kernel's integer parameters, for the kernels that training steps use.
 * Thread rule: none. Failure rule: an operand without a known size is read and written at its first
 * bytes only; a kernel with nothing to write is unknown.
 */
#include "kernel_model_parts.h"

#include <stdlib.h>
#include <string.h>

/* counts: per parameter "role[count]", separated by spaces. Roles: o output, i input, b both,
 * f output written as floats though it is declared as bytes, - neither. A count is a product (and
 * quotient) of parameters, numbered from 1, of #numbers, and of B, the number of blocks; none:
 * unknown. */
struct rule {
    const char *name, *counts;
};

static const struct rule rules[] = {
    {"softmax_warp_forward", "o3*4 i3*4"},
    {"softmax_warp_backward", "o4*5 i4*5 i4*5"},
    {"cunn_SoftMaxForward", "oB*3 iB*3"},
    {"cunn_SoftMaxForwardSmem", "oB*3 iB*3"},
    {"cunn_SoftMaxForwardReg", "oB*3 iB*3"},
    {"cunn_SoftMaxForwardGmem", "oB*3 iB*3"},
    {"cunn_SoftMaxBackward", "oB*4 iB*4 iB*4"},
    {"cunn_SoftMaxBackwardSmem", "oB*4 iB*4 iB*4"},
    {"cunn_SpatialSoftMaxForward", "o3*4*5 i3*4*5"},
    {"cunn_SpatialSoftMaxBackward", "o4*5*6 i4*5*6 i4*5*6"},
    {"nll_loss_forward_reduce_cuda_kernel_2d", "o#1 o#1 i7*8 i7 i9"},
    {"nll_loss_backward_reduce_cuda_kernel_2d", "o7*8 i#1 i7 i9 i#1"},
    {"nll_loss_forward_no_reduce_cuda_kernel", "- i i1 o1 i6"},
    {"nll_loss_backward_no_reduce_cuda_kernel", "- i1 i o i6"},
    {"max_pool_forward_nchw", "- i1/6/7*4*5 - - - - - - - - - - - - - o1 o1"},
    {"max_pool_backward_nchw", "i3*4*7*8 i3*4*7*8 - - - - - - - - - - - - - - o3*4*5*6"},
    {"max_pool_forward_nhwc",
     "i2*3*4*5 - - - - - - - - - - - - - - - - - - - - - o2*3*6*7 o2*3*6*7"},
    {"max_pool_backward_nhwc", "i3*4*7*8 i3*4*7*8 - - - - - - - - - - - - - - - - - - - o3*4*5*6"},
    {"avg_pool2d_out_cuda_frame", "- i1/6/7*4*5 - - - - - - - - - - - o1"},
    {"avg_pool2d_backward_out_cuda_frame", "- i1/5/6*7*8 - - - - - - - - - - - o1"},
    {"im2col_kernel", "- i1/13/14*3*4 - - - - - - - - - - - - o1*5*6"},
    {"col2im_kernel", "- i1/3/4*5*6*13*14 - - - - - - - - - - - - o1"},
    {"vectorized_layer_norm_kernel", "- - i1*B i1 i1 oB oB o1*B"},
    {"layer_norm_grad_input_kernel", "iB*7 iB*7 iB iB i7 oB*7"},
    {"layer_norm_grad_input_kernel_vectorized", "iB*7 iB*7 iB iB i7 oB*7"},
    {"GammaBetaBackwardCUDAKernelTemplate", "- - i1*2 i1*2 i1 i1 o2 o2"},
    {"GammaBetaBackwardSimpleCUDAKernel", "- - i1*2 i1*2 i1 i1 o2 o2"},
    {"batch_norm_collect_statistics_channels_last_kernel", "i6*7 o7 o7 - -"},
    {"batch_norm_transform_input_channels_last_kernel", "i8*9 i8*9 i9 i9 i9 i9 o8*9"},
    {"batch_norm_backward_reduce_channels_last_kernel",
     "i11*12 i11*12 i12 i12 o12 o12 o12 o12 - -"},
    {"batch_norm_backward_elemt_channels_last_kernel", "i10*11 i10*11 i11 i11 i11 i11 i11 o10*11"},
    {"vectorized_gather_kernel", "f4*5/#4 i i4"},
    {"embedding_backward_feature_kernel", "i4 i4*5 b"},
    {"tensor_kernel_scan_outer_dim", "o3*4*5 i3*4*5"},
    {"amp_update_scale_cuda_kernel", "- - -"},
    {"elementwise_kernel_with_index", "- - o1"},
};

/* --- counts --- */

static uint64_t number(const struct sim_launch *launch, unsigned index)
{
    if (index == 0 || index > launch->signature->count)
        return 0;
    const struct sim_parameter *p = &launch->signature->parameters[index - 1];
    const void *at = launch->params[index - 1];
    if (p->kind != SIM_PARAMETER_NUMBER)
        return 0;
    int64_t value = sim_type_bytes(p->type) == 8   ? *(const int64_t *)at
                    : sim_type_bytes(p->type) == 4 ? *(const int32_t *)at
                                                   : 0;
    return value > 0 ? (uint64_t)value : 0;
}

/* "B*3", "1/6/7*4*5": left to right. */
static uint64_t count_of(const struct sim_launch *launch, const char *text)
{
    uint64_t count = 1;
    char sign = '*';
    if (*text == ' ' || *text == '\0')
        return 0;
    while (*text && *text != ' ') {
        char *end = (char *)text + 1;
        bool literal = *text == '#';
        uint64_t factor = *text == 'B' ? launch->blocks : strtoul(text + literal, &end, 10);
        if (*text != 'B' && !literal)
            factor = number(launch, (unsigned)factor);
        if (sign == '*')
            count *= factor;
        else
            count = factor ? count / factor : 0;
        sign = *end;
        text = *end == '*' || *end == '/' ? end + 1 : end;
    }
    return count;
}

static const char *rule_for(const struct sim_launch *launch)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (strcmp(rules[i].name, launch->signature->name) == 0)
            return rules[i].counts;
    return NULL;
}

/* --- operands --- */

static int64_t read_index(const char *at, unsigned bytes, unsigned which)
{
    int32_t narrow;
    int64_t wide;
    if (bytes == 4) {
        memcpy(&narrow, at + 4 * (size_t)which, 4);
        return narrow;
    }
    memcpy(&wide, at + 8 * (size_t)which, 8);
    return wide;
}

/* {T *data; index sizes[n]; index strides[n]; int dims (TensorInfo only, n = 25)}. */
static bool view_of(const struct sim_parameter *p, const void *param, CUdeviceptr *ptr,
                    struct sim_view *view)
{
    const char *at = param;
    unsigned most = p->kind == SIM_PARAMETER_INFO ? 25 : p->dims;
    int dims = p->dims;
    memcpy(ptr, at, sizeof(*ptr));
    if (p->kind == SIM_PARAMETER_INFO)
        memcpy(&dims, at + 8 + 2 * (size_t)most * p->index_bytes, sizeof(dims));
    if (dims < 0 || dims > SIM_MAX_DIMS)
        return false;
    memset(view, 0, sizeof(*view));
    view->type = p->type;
    view->dims = (uint8_t)dims;
    for (int d = 0; d < dims; d++) { /* innermost first */
        unsigned from = (unsigned)(dims - 1 - d);
        view->sizes[d] = (uint32_t)read_index(at + 8, p->index_bytes, from);
        view->strides[d] =
            read_index(at + 8 + (size_t)most * p->index_bytes, p->index_bytes, from) *
            (int64_t)sim_type_bytes(p->type);
    }
    return true;
}

static void add_operand(const struct sim_launch *launch, struct sim_plan *plan, unsigned index,
                        char role, uint64_t elements)
{
    const struct sim_parameter *p = &launch->signature->parameters[index];
    CUdeviceptr pointer;
    struct sim_view view;
    bool in = role == 'i' || role == 'b' || (role == '.' && p->constant);
    bool out = role == 'o' || role == 'f' || role == 'b' || (role == '.' && !p->constant);
    if (p->kind == SIM_PARAMETER_POINTER) {
        pointer = *(const CUdeviceptr *)launch->params[index];
        if (in)
            sim_plan_input(plan, pointer, p->type, elements);
        if (out)
            sim_plan_output(plan, pointer, role == 'f' ? SIM_TYPE_F32 : p->type, elements);
    } else if ((p->kind == SIM_PARAMETER_ACCESSOR || p->kind == SIM_PARAMETER_INFO) &&
               view_of(p, launch->params[index], &pointer, &view) && pointer) {
        if (in)
            sim_plan_view(plan, false, pointer, &view);
        if (out)
            sim_plan_view(plan, true, pointer, &view);
    }
}

bool sim_decode_plain(const struct sim_launch *launch, struct sim_plan *plan)
{
    const char *rule = rule_for(launch);
    for (unsigned i = 0; i < launch->signature->count; i++) {
        bool ruled = rule && *rule;
        char role = ruled ? *rule : '.';
        add_operand(launch, plan, i, role, ruled ? count_of(launch, rule + 1) : 0);
        if (!ruled)
            continue;
        rule += strcspn(rule, " ");
        rule += *rule == ' ';
    }
    plan->action = SIM_KERNEL_HASH;
    return plan->output_count > 0;
}
