/* kernel_model_lists.c: kernels whose operands stand in lists inside one struct.
 *
 * multi_tensor_apply_kernel (foreach and fused optimizers): TensorListMetadata<depth> holds
 * addresses[depth][most], the element counts, and which tensor each block works on
 * (aten/src/ATen/native/cuda/MultiTensorApply.cuh, torch 2.9: at most 110, 64, 48, 36, 30 tensors
 * and 320 blocks). CatArrayBatchedCopy: CatArrInputTensorMetadata (Shape.cu).
 * Thread rule: none. Failure rule: tensors that do not fit the plan are left out.
 */
#include "kernel_model_parts.h"

#include <stdlib.h>
#include <string.h>

#define LIST_BLOCKS 320

static const unsigned list_most[] = {110, 64, 48, 36, 30};
static const unsigned scalar_list_most[] = {96, 64, 48, 36, 30};

struct tensor_list {
    const CUdeviceptr *addresses;
    const int64_t *elements;
    unsigned depth, most, used;
};

static const char *after(const char *text, const char *what)
{
    const char *found = strstr(text, what);
    return found ? found + strlen(what) : NULL;
}

/* Tensors are used in order: the highest index any block names, plus one. */
static unsigned tensors_used(const uint8_t *block_to_tensor, uint64_t blocks)
{
    unsigned used = 0;
    for (uint64_t b = 0; b < blocks && b < LIST_BLOCKS; b++)
        if (block_to_tensor[b] >= used)
            used = block_to_tensor[b] + 1u;
    return used;
}

static bool read_list(const struct sim_launch *launch, struct tensor_list *list)
{
    const char *text = launch->signature->templates, *depth;
    size_t extra = 0;
    if ((depth = after(text, "TensorListScalarListMetadata<")) != NULL) {
        size_t scalar_bytes = sim_type_bytes(sim_type_of_text(depth));
        list->depth = (unsigned)atoi(sim_template_argument(depth, 1));
        if (list->depth < 1 || list->depth > 5 || scalar_bytes > 8)
            return false;
        list->most = scalar_list_most[list->depth - 1];
        extra = list->most * scalar_bytes;
    } else if ((depth = after(text, "TensorListMetadata<")) != NULL) {
        list->depth = (unsigned)atoi(depth);
        if (list->depth < 1 || list->depth > 5)
            return false;
        list->most = list_most[list->depth - 1];
        if (strstr(text, "FusedOptimizerTensorListMetadata<"))
            extra = scalar_list_most[list->depth - 1] * sizeof(void *);
    } else {
        return false;
    }
    list->addresses = launch->params[0];
    list->elements = (const int64_t *)(list->addresses + (size_t)list->depth * list->most);
    list->used =
        tensors_used((const uint8_t *)(list->elements + list->most) + extra, launch->blocks);
    return list->used <= list->most;
}

/* Which of the lists a functor writes: fused optimizers all but the gradients (list 1), foreach
 * functors the one in their last template argument: <T, depth, arguments read, result>. */
static unsigned written_lists(const char *functor, unsigned depth, unsigned *read)
{
    *read = (1u << depth) - 1;
    if (strstr(functor, "FusedAdamMathFunctor<") || strstr(functor, "FusedSgdMathFunctor<") ||
        strstr(functor, "FusedAdagradMathFunctor<"))
        return *read & ~2u;
    if (strstr(functor, "LpNormFunctor<") || strstr(functor, "LpMaxFunctor<"))
        return 0;
    const char *list = strchr(functor, '<');
    if (!list)
        return 1;
    unsigned first = list - functor > 11 && memcmp(list - 11, "CopyFunctor", 11) == 0;
    int arguments = atoi(sim_template_argument(list + 1, 2 + first));
    int result = atoi(sim_template_argument(list + 1, 3 + first));
    if (arguments > 0 && arguments <= (int)depth)
        *read = (1u << arguments) - 1;
    return result >= 0 && result < (int)depth ? 1u << result : 1;
}

/* Further pointers follow the functor: a learning rate, or where norms go. */
static void add_scalars(const struct sim_launch *launch, struct sim_plan *plan)
{
    for (unsigned i = 2; i < launch->signature->count; i++) {
        const struct sim_parameter *p = &launch->signature->parameters[i];
        if (p->kind != SIM_PARAMETER_POINTER)
            continue;
        CUdeviceptr pointer = *(const CUdeviceptr *)launch->params[i];
        if (p->constant)
            sim_plan_input(plan, pointer, p->type, 1);
        else
            sim_plan_output(plan, pointer, p->type, 1);
    }
}

static bool decode_multi_tensor(const struct sim_launch *launch, struct sim_plan *plan)
{
    struct tensor_list list;
    if (!read_list(launch, &list))
        return false;
    const char *functor = sim_template_argument(launch->signature->templates, 1);
    const char *open = strchr(functor, '<');
    enum sim_type type = open ? sim_type_of_text(open + 1) : SIM_TYPE_NONE;
    unsigned read, written = written_lists(functor, list.depth, &read);
    for (unsigned d = 0; d < list.depth; d++)
        for (unsigned t = 0; t < list.used; t++) {
            CUdeviceptr address = list.addresses[d * list.most + t];
            if (read >> d & 1)
                sim_plan_input(plan, address, type, (uint64_t)list.elements[t]);
            if (written >> d & 1)
                sim_plan_output(plan, address, type, (uint64_t)list.elements[t]);
        }
    add_scalars(launch, plan);
    plan->action = SIM_KERNEL_HASH;
    return true;
}

/* --- cat --- */

static enum sim_type opaque_type(unsigned bytes)
{
    return bytes == 1   ? SIM_TYPE_BOOL
           : bytes == 2 ? SIM_TYPE_F16
           : bytes == 8 ? SIM_TYPE_I64
                        : SIM_TYPE_F32;
}

/* (T *output, metadata, TensorSizeStride os, int dim, index): the metadata is input[n], offset[n],
 * dimSize[n], nElements[n], ...; os is tensorSize[4], tensorStride[4] of the output. */
static bool decode_cat(const struct sim_launch *launch, struct sim_plan *plan)
{
    const struct sim_signature *s = launch->signature;
    if (s->count < 3 || !strstr(s->parameters[1].text, "CatArrInputTensorMetadata<"))
        return false;
    const char *list = after(s->parameters[1].text, "CatArrInputTensorMetadata<");
    const char *opaque = strstr(list, "OpaqueType<");
    unsigned bytes = opaque ? (unsigned)atoi(opaque + sizeof("OpaqueType<") - 1) : 4;
    bool narrow = strncmp(sim_template_argument(list, 1), "unsigned int", 12) == 0;
    unsigned most = (unsigned)atoi(sim_template_argument(list, 2));
    const uint32_t *sizes = launch->params[2];
    if (!narrow || most == 0 || most > 1024)
        return false;
    unsigned dims = (unsigned)atoi(sim_template_argument(s->templates, 2));
    uint64_t total = 1, seen = 0;
    for (unsigned d = 0; d < dims && d < 4; d++)
        total *= sizes[d];
    const CUdeviceptr *inputs = launch->params[1];
    const uint32_t *elements = (const uint32_t *)(inputs + most) + 2 * (size_t)most;
    for (unsigned i = 0; i < most && seen < total; i++) {
        sim_plan_input(plan, inputs[i], opaque_type(bytes), elements[i]);
        seen += elements[i];
    }
    sim_plan_output(plan, *(const CUdeviceptr *)launch->params[0], opaque_type(bytes), total);
    plan->action = SIM_KERNEL_HASH;
    return true;
}

bool sim_decode_lists(const struct sim_launch *launch, struct sim_plan *plan)
{
    const char *name = launch->signature->name;
    if (strcmp(name, "multi_tensor_apply_kernel") == 0)
        return decode_multi_tensor(launch, plan);
    return strncmp(name, "CatArrayBatchedCopy", 19) == 0 && decode_cat(launch, plan);
}
