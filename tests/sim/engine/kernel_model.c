/* kernel_model.c: from a launch to a plan of what it reads, writes and costs.
 *
 * Thread rule: decode may run in any thread; plans are thread-local scratch. Failure rule: a kernel
 * of no known family becomes SIM_KERNEL_UNKNOWN with the default duration.
 */
#include "kernel_model_parts.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

static void add(struct sim_plan *plan, bool output, CUdeviceptr ptr, size_t bytes,
                const struct sim_view *view)
{
    uint32_t *count = output ? &plan->output_count : &plan->input_count;
    if (!ptr)
        return;
    if (*count == SIM_KERNEL_MAX_RANGES) {
        plan->full = true;
        return;
    }
    (output ? plan->outputs : plan->inputs)[*count] = (struct gpusim_operand){ptr, bytes};
    (output ? plan->output_views : plan->input_views)[*count] = *view;
    (*count)++;
}

void sim_plan_input(struct sim_plan *plan, CUdeviceptr ptr, enum sim_type type, uint64_t elements)
{
    struct sim_view view = {.type = (uint8_t)type};
    add(plan, false, ptr, elements * sim_type_bytes(type), &view);
}

void sim_plan_output(struct sim_plan *plan, CUdeviceptr ptr, enum sim_type type, uint64_t elements)
{
    struct sim_view view = {.type = (uint8_t)type};
    add(plan, true, ptr, elements * sim_type_bytes(type), &view);
}

uint64_t sim_view_elements(const struct sim_view *view)
{
    uint64_t count = 1;
    for (unsigned d = 0; d < view->dims; d++)
        count *= view->sizes[d];
    return count;
}

uint64_t sim_view_offset(const struct sim_view *view, uint64_t element)
{
    uint64_t offset = 0;
    for (unsigned d = 0; d < view->dims; d++) {
        offset += element % view->sizes[d] * (uint64_t)view->strides[d];
        element /= view->sizes[d];
    }
    return offset;
}

/* A view whose elements lie next to each other in order is a plain run. */
static bool is_run(const struct sim_view *view)
{
    int64_t expected = (int64_t)sim_type_bytes(view->type);
    for (unsigned d = 0; d < view->dims; d++) {
        if (view->sizes[d] != 1 && view->strides[d] != expected)
            return false;
        expected *= view->sizes[d];
    }
    return true;
}

void sim_plan_view(struct sim_plan *plan, bool output, CUdeviceptr ptr, const struct sim_view *view)
{
    uint64_t last = 0;
    for (unsigned d = 0; d < view->dims; d++)
        if (view->sizes[d] == 0 || view->strides[d] < 0)
            return;
        else
            last += (uint64_t)(view->sizes[d] - 1) * (uint64_t)view->strides[d];
    struct sim_view kept = *view;
    if (is_run(view))
        kept.dims = 0;
    add(plan, output, ptr, last + sim_type_bytes(view->type), &kept);
}

/* --- library operations: "gemm:f16" --- */

static enum sim_type library_type(const char *name)
{
    const char *kind = strrchr(name, ':');
    if (!kind)
        return SIM_TYPE_F32;
    if (strcmp(kind, ":f16") == 0)
        return SIM_TYPE_F16;
    if (strcmp(kind, ":bf16") == 0)
        return SIM_TYPE_BF16;
    if (strcmp(kind, ":f64") == 0)
        return SIM_TYPE_F64;
    return strcmp(kind, ":int") == 0 ? SIM_TYPE_I32 : SIM_TYPE_F32;
}

static void decode_library(const struct gpusim_op *from, struct sim_plan *plan)
{
    struct sim_view view = {.type = (uint8_t)library_type(from->name)};
    plan->action = SIM_KERNEL_HASH;
    plan->flops = from->flops;
    for (const char *c = from->name; *c; c++)
        plan->extra_hash = plan->extra_hash * 31 + (unsigned char)*c;
    for (uint32_t i = 0; i < from->input_count; i++)
        add(plan, false, from->inputs[i].ptr, from->inputs[i].bytes, &view);
    for (uint32_t i = 0; i < from->output_count; i++)
        add(plan, true, from->outputs[i].ptr, from->outputs[i].bytes, &view);
}

/* --- the interface --- */

static uint64_t duration_of(const struct sim_plan *plan)
{
    double bytes = 0;
    for (uint32_t i = 0; i < plan->input_count; i++)
        bytes += (double)plan->inputs[i].bytes;
    for (uint32_t i = 0; i < plan->output_count; i++)
        bytes += (double)plan->outputs[i].bytes;
    /* A copy reads and writes each byte, so memory moves twice what a copy does. */
    double memory_ns = bytes / (2 * SIM_NUMBER(D2D_GBPS));
    double compute_ns = (double)plan->flops / (1000 * SIM_NUMBER(TFLOPS));
    double ns = SIM_NUMBER(KERNEL_NS);
    ns = memory_ns > ns ? memory_ns : ns;
    return (uint64_t)(compute_ns > ns ? compute_ns : ns);
}

/* Copies the plan into one block: the ranges, then their views. */
static bool keep(const struct sim_plan *plan, struct sim_kernel_op *op)
{
    size_t in = plan->input_count, out = plan->output_count;
    op->ranges = malloc((in + out) * (sizeof(struct gpusim_operand) + sizeof(struct sim_view)));
    if (!op->ranges)
        return false;
    struct sim_view *views = (struct sim_view *)(op->ranges + in + out);
    memcpy(op->ranges, plan->inputs, in * sizeof(*plan->inputs));
    memcpy(op->ranges + in, plan->outputs, out * sizeof(*plan->outputs));
    memcpy(views, plan->input_views, in * sizeof(*views));
    memcpy(views + in, plan->output_views, out * sizeof(*views));
    op->views = views;
    op->input_count = (uint32_t)in;
    op->output_count = (uint32_t)out;
    return true;
}

static void clear(struct sim_plan *plan)
{
    plan->action = SIM_KERNEL_UNKNOWN;
    plan->input_count = plan->output_count = 0;
    plan->extra_hash = plan->flops = 0;
    plan->full = false;
    plan->fill_bytes = 0;
}

static void decode_family(const struct sim_launch *launch, struct sim_plan *plan)
{
    static bool (*const decoders[])(const struct sim_launch *, struct sim_plan *) = {
        sim_decode_structs, sim_decode_elementwise, sim_decode_reduce,
        sim_decode_lists,   sim_decode_plain,
    };
    for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++) {
        if (decoders[i](launch, plan)) {
            sim_plan_seeds(launch, plan);
            return;
        }
        clear(plan);
    }
}

/* torch.cuda._sleep(cycles), modelled at one nanosecond a cycle. */
static bool decode_spin(const struct sim_launch *launch, struct sim_kernel_op *op)
{
    if (strcmp(launch->signature->name, "spin_kernel") != 0)
        return false;
    int64_t cycles = *(const int64_t *)launch->params[0];
    op->action = SIM_KERNEL_SPIN;
    op->duration_ns = cycles > 0 ? (uint64_t)cycles : 0;
    return true;
}

void sim_kernel_decode(const char *name, void **params, uint64_t blocks, uint64_t threads,
                       struct sim_kernel_op *op)
{
    static _Thread_local struct sim_plan *plan; /* some 60 KiB: too much for a caller's stack */
    memset(op, 0, sizeof(*op));
    op->action = SIM_KERNEL_UNKNOWN;
    op->duration_ns = (uint64_t)SIM_NUMBER(KERNEL_NS);
    if (!plan)
        plan = calloc(1, sizeof(*plan));
    if (!plan || !params)
        return;
    clear(plan);
    if (strcmp(name, "gpusim::op") == 0) {
        decode_library(params[0], plan);
    } else {
        struct sim_launch launch = {sim_signature_of(name), params, blocks, threads};
        if (!launch.signature || decode_spin(&launch, op))
            return;
        decode_family(&launch, plan);
        plan->extra_hash ^= launch.signature->salt;
    }
    if (plan->action == SIM_KERNEL_UNKNOWN || !keep(plan, op))
        return;
    op->action = plan->action;
    op->salt = plan->extra_hash;
    op->duration_ns = duration_of(plan);
    memcpy(op->fill, plan->fill, sizeof(op->fill));
    op->fill_bytes = plan->fill_bytes;
}

void sim_kernel_free(struct sim_kernel_op *op)
{
    free(op->ranges);
    op->ranges = NULL;
    op->views = NULL;
}
