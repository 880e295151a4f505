/* kernel_model_structs.c: kernels whose pointers lie at known places inside a struct or closure.
 *
 * Indexing, scatter and gather (closures with an OffsetCalculator<3>), random number generation,
 * memory-efficient and flash attention, and the end of a list of norms. The offsets were read from
 * launches of torch 2.9.1; other versions with another layout find no live address there.
 * Thread rule: none. Failure rule: an address in no live allocation is left out.
 */
#include "kernel_model_parts.h"

#include <string.h>

#define CALCULATOR_DIMS            25
#define AFTER_CALCULATOR(operands) ((4 + 4 * CALCULATOR_DIMS * (3 + (operands)) + 7) / 8 * 8)

static CUdeviceptr address_at(const void *base, size_t offset)
{
    CUdeviceptr address;
    size_t left;
    memcpy(&address, (const char *)base + offset, sizeof(address));
    return address > 4096 && sim_mem_alias(address, &left) ? address : 0;
}

static enum sim_type opaque_type(const struct sim_signature *s)
{
    const char *opaque = strstr(s->text, "OpaqueType<");
    const char *templates = strstr(s->templates, "OpaqueType<");
    const char *digits = templates ? templates : opaque;
    if (!digits)
        return SIM_TYPE_F32;
    switch (digits[sizeof("OpaqueType<") - 1]) {
    case '1':
        return SIM_TYPE_BOOL;
    case '2':
        return SIM_TYPE_F16;
    case '8':
        return SIM_TYPE_I64;
    default:
        return SIM_TYPE_F32;
    }
}

/* --- closures with an OffsetCalculator --- */

static bool calculator_view(const void *closure, unsigned operands, unsigned which,
                            enum sim_type type, struct sim_view *view)
{
    int32_t dims;
    memcpy(&dims, closure, sizeof(dims));
    if (dims < 0 || dims > SIM_MAX_DIMS)
        return false;
    const uint32_t *dividers = (const uint32_t *)closure + 1;
    const uint32_t *strides = dividers + 3 * CALCULATOR_DIMS;
    memset(view, 0, sizeof(*view));
    view->type = (uint8_t)type;
    view->dims = (uint8_t)dims;
    for (int d = 0; d < dims; d++) {
        view->sizes[d] = dividers[3 * d];
        view->strides[d] = strides[(unsigned)d * operands + which];
    }
    return true;
}

static void add_view(struct sim_plan *plan, bool output, const void *closure, unsigned operands,
                     unsigned which, enum sim_type type, size_t offset)
{
    struct sim_view view;
    CUdeviceptr address = address_at(closure, AFTER_CALCULATOR(operands) + offset);
    if (address && calculator_view(closure, operands, which, type, &view))
        sim_plan_view(plan, output, address, &view);
}

/* index, index_put: {calculator<3>, out, in, count, index pointers[]}. What index reads through the
 * indices is not known in extent: its first bytes. */
static void decode_index(const struct sim_launch *launch, struct sim_plan *plan)
{
    const void *closure = launch->params[1];
    enum sim_type type = opaque_type(launch->signature);
    add_view(plan, false, closure, 3, 1, type, 8);
    add_view(plan, false, closure, 3, 2, SIM_TYPE_I64, 24);
    add_view(plan, true, closure, 3, 0, type, 0);
}

/* scatter, gather: {calculator<3>, self, ..., index at 24, ..., source at 48}. */
static void decode_scatter(const struct sim_launch *launch, struct sim_plan *plan)
{
    const void *closure = launch->params[1];
    enum sim_type type = opaque_type(launch->signature);
    bool fill = strstr(launch->signature->templates, "_cuda_scatter_fill") != NULL;
    unsigned operands = fill ? 2 : 3;
    bool gather = strstr(launch->signature->templates, "internal_kernel<false") != NULL;
    add_view(plan, false, closure, operands, fill ? 1 : 2, SIM_TYPE_I64, 24);
    if (!fill)
        add_view(plan, false, closure, operands, 1, type, 48);
    if (!gather)
        add_view(plan, false, closure, operands, 0, type, 0);
    add_view(plan, true, closure, operands, 0, type, 0);
}

/* --- random numbers: (long count, PhiloxCudaState, lambda, closure {out, ...}) --- */

static void decode_random(const struct sim_launch *launch, struct sim_plan *plan)
{
    const char *templates = launch->signature->templates;
    const char *transform = strstr(templates, "_and_transform<");
    int64_t count = *(const int64_t *)launch->params[0];
    CUdeviceptr out = address_at(launch->params[3], 0);
    /* Integers of a width the name does not tell: only the first. */
    if (transform)
        sim_plan_output(plan, out, sim_type_of_text(transform + sizeof("_and_transform<") - 1),
                        (uint64_t)count);
    else
        sim_plan_output(plan, out, SIM_TYPE_I64, 1);
}

/* PhiloxCudaState {seed, offset, offset in a graph, captured}; while capturing the first two are
 * pointers to device memory (ATen/cuda/detail/PhiloxCudaStateRaw.cuh). */
static void add_seed(const void *state, struct sim_plan *plan)
{
    uint64_t seed, offset;
    uint32_t inside;
    memcpy(&seed, state, 8);
    memcpy(&offset, (const char *)state + 8, 8);
    memcpy(&inside, (const char *)state + 16, 4);
    if (((const char *)state)[20]) {
        sim_plan_input(plan, seed, SIM_TYPE_I64, 1);
        sim_plan_input(plan, offset, SIM_TYPE_I64, 1);
        plan->extra_hash += inside;
    } else {
        plan->extra_hash += (seed * 0x9E3779B97F4A7C15u) ^ (offset + 1);
    }
}

void sim_plan_seeds(const struct sim_launch *launch, struct sim_plan *plan)
{
    for (unsigned i = 0; i < launch->signature->count; i++)
        if (strncmp(launch->signature->parameters[i].text, "at::PhiloxCudaState", 19) == 0)
            add_seed(launch->params[i], plan);
}

/* --- attention and norms --- */

/* Offsets of pointers in the one parameter struct; 0xFFFF ends a list. */
#define END 0xFFFF
static const struct layout {
    const char *name;
    uint16_t inputs[8], outputs[5];
} layouts[] = {
    {"fmha_cutlassF", {0, 8, 16, END}, {64, 80, END}},
    {"fmha_cutlassB", {0, 8, 16, 32, 40, 48, 56, END}, {80, 88, 96, END}},
    {"flash_fwd_kernel", {0, 8, 16, END}, {112, 160, END}},
    {"flash_fwd_splitkv_kernel", {0, 8, 16, END}, {112, 160, END}},
    {"flash_bwd_dot_do_o_kernel", {112, 464, END}, {496, END}},
    {"flash_bwd_dq_dk_dv_loop", {0, 8, 16, 160, 464, END}, {480, 488, 496, END}},
    {"flash_bwd_convert_dq_kernel", {496, END}, {472, END}},
};

static bool decode_layout(const struct sim_launch *launch, struct sim_plan *plan)
{
    const char *name = launch->signature->name;
    enum sim_type type = strstr(launch->signature->text, "bf16") ||
                                 strstr(launch->signature->templates, "bfloat16_t")
                             ? SIM_TYPE_BF16
                         : strstr(name, "f32") ? SIM_TYPE_F32
                                               : SIM_TYPE_F16;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (strncmp(name, layouts[i].name, strlen(layouts[i].name)) != 0)
            continue;
        for (const uint16_t *at = layouts[i].inputs; *at != END; at++)
            sim_plan_input(plan, address_at(launch->params[0], *at), type, 0);
        for (const uint16_t *at = layouts[i].outputs; *at != END; at++)
            sim_plan_output(plan, address_at(launch->params[0], *at), type, 0);
        return true;
    }
    return false;
}

/* lpnorm_cleanup(const T *per chunk, TensorListAddresses {void *addresses[]}, int chunks): one
 * block for each tensor. */
static void decode_norms(const struct sim_launch *launch, struct sim_plan *plan)
{
    const struct sim_parameter *p = &launch->signature->parameters[0];
    int32_t chunks = *(const int32_t *)launch->params[2];
    sim_plan_input(plan, *(const CUdeviceptr *)launch->params[0], p->type,
                   launch->blocks * (uint64_t)chunks);
    enum sim_type type = sim_type_of_text(launch->signature->templates);
    for (uint64_t i = 0; i < launch->blocks; i++)
        sim_plan_output(plan, address_at(launch->params[1], 8 * i), type, 1);
}

bool sim_decode_structs(const struct sim_launch *launch, struct sim_plan *plan)
{
    static const struct {
        const char *name;
        void (*decode)(const struct sim_launch *launch, struct sim_plan *plan);
        unsigned parameters;
    } families[] = {
        {"index_elementwise_kernel", decode_index, 2},
        {"_scatter_gather_elementwise_kernel", decode_scatter, 2},
        {"distribution_elementwise_grid_stride_kernel", decode_random, 4},
        {"lpnorm_cleanup", decode_norms, 3},
    };
    plan->action = SIM_KERNEL_HASH;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (strcmp(launch->signature->name, families[i].name) == 0 &&
            launch->signature->count >= families[i].parameters) {
            families[i].decode(launch, plan);
            return plan->output_count > 0;
        }
    return decode_layout(launch, plan) && plan->output_count > 0;
}
