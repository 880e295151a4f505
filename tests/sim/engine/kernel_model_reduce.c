/* kernel_model_reduce.c: PyTorch's reductions (sum, mean, max, norm ...).
 *
 * reduce_kernel<threads, vector, ReduceOp<input, ops, index, output, ...>> takes one struct: the
 * functor and the identity, whose sizes the name does not tell, then ReduceConfig, two
 * OffsetCalculators and the pointers (aten/src/ATen/native/cuda/Reduce.cuh). The pointers are found
 * as the first two addresses inside live allocations, the rest lies before them.
 * Thread rule: none. Failure rule: without such addresses the kernel stays unknown.
 */
#include "kernel_model_parts.h"

#include <string.h>

#define CALCULATOR_DIMS            25
#define CONFIG_INTS                16 /* ReduceConfig: element size, inputs, outputs, ..., output vector size */
#define CALCULATOR_BYTES(operands) (4 + 4 * CALCULATOR_DIMS * (3 + (operands)))
#define CALCULATORS_BYTES          (CALCULATOR_BYTES(1) + CALCULATOR_BYTES(2))
#define FUNCTOR_BYTES_MOST         160

/* What follows the calculators. */
struct tail {
    CUdeviceptr src, dst[2], acc_buf, cta_buf, semaphores;
    int64_t base_idx;
    bool accumulate, final_output;
    int outputs;
};

static bool is_device_address(const void *word)
{
    CUdeviceptr address;
    size_t left;
    memcpy(&address, word, sizeof(address));
    return address > 4096 && sim_mem_alias(address, &left) != NULL;
}

static uint64_t calculator_elements(const int32_t *calculator)
{
    uint64_t elements = 1;
    for (int d = 0; d < calculator[0] && d < CALCULATOR_DIMS; d++)
        elements *= (uint32_t)calculator[1 + 3 * d];
    return elements;
}

/* The config ends where the calculators begin; padding may precede the pointers. Its second number
 * must be what the input calculator walks over. */
static const int32_t *find_calculators(const void *tail)
{
    for (unsigned padding = 0; padding <= 4; padding += 4) {
        const char *at = (const char *)tail - padding - CALCULATORS_BYTES;
        const int32_t *calculators = (const int32_t *)(const void *)at;
        const int32_t *config = calculators - CONFIG_INTS;
        if (config[13] > 0 && config[11] * config[12] == config[13] && config[1] > 0 &&
            config[2] > 0 && calculators[0] >= 0 &&
            calculator_elements(calculators) == (uint64_t)config[1])
            return calculators;
    }
    return NULL;
}

static const int32_t *find(const void *argument, struct tail *tail)
{
    const char *first = (const char *)argument + (4 * CONFIG_INTS + CALCULATORS_BYTES + 7) / 8 * 8;
    for (const char *at = first; at < first + FUNCTOR_BYTES_MOST; at += 8) {
        const int32_t *calculators = find_calculators(at);
        if (calculators && is_device_address(at) && is_device_address(at + 8)) {
            memcpy(tail, at, sizeof(*tail));
            return calculators;
        }
    }
    return NULL;
}

/* Adds a calculator's dimensions, with the strides of one of its operands, to a view. */
static bool add_dims(struct sim_view *view, const int32_t *calculator, unsigned operands,
                     unsigned which)
{
    int dims = calculator[0];
    const uint32_t *dividers = (const uint32_t *)calculator + 1;
    const uint32_t *strides = dividers + 3 * CALCULATOR_DIMS;
    if (dims < 0 || view->dims + dims > SIM_MAX_DIMS)
        return false;
    for (int d = 0; d < dims; d++) {
        view->sizes[view->dims] = dividers[3 * d];
        view->strides[view->dims++] = strides[(unsigned)d * operands + which];
    }
    return true;
}

bool sim_decode_reduce(const struct sim_launch *launch, struct sim_plan *plan)
{
    static const char op_name[] = "at::native::ReduceOp<";
    const char *op = strstr(launch->signature->templates, op_name);
    if (strcmp(launch->signature->name, "reduce_kernel") != 0 || !op)
        return false;
    const char *types = op + sizeof(op_name) - 1;
    struct tail tail;
    const int32_t *calculators = find(launch->params[0], &tail);
    if (!calculators)
        return false;
    const int32_t *out_calculator = calculators + CALCULATOR_BYTES(1) / 4;
    struct sim_view in = {.type = (uint8_t)sim_type_of_text(types)};
    struct sim_view out = {.type = (uint8_t)sim_type_of_text(sim_template_argument(types, 3))};
    if (!add_dims(&in, calculators, 1, 0) || !add_dims(&in, out_calculator, 2, 1) ||
        !add_dims(&out, out_calculator, 2, 0))
        return false;
    sim_plan_view(plan, false, tail.src, &in);
    if (tail.accumulate)
        sim_plan_view(plan, false, tail.dst[0], &out);
    sim_plan_view(plan, true, tail.dst[0], &out);
    if (tail.outputs == 2 && is_device_address(&tail.dst[1])) {
        /* max and min with indices: the offsets are those of the first output's type */
        for (unsigned d = 0; d < out.dims; d++)
            out.strides[d] = out.strides[d] / (int64_t)sim_type_bytes(out.type) * 8;
        out.type = SIM_TYPE_I64;
        sim_plan_view(plan, true, tail.dst[1], &out);
    }
    plan->action = SIM_KERNEL_HASH;
    return true;
}
