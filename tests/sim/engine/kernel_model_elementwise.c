/* kernel_model_elementwise.c: PyTorch's element-wise kernels.
 *
 * Contiguous: (int N, functor, std::array<char*, K> data, ...), element 0 of data is the output.
 * Strided: (int N, closure), the closure holding an OffsetCalculator, then the data array, then the
 * functor and, when it casts, the tensors' types (aten/src/ATen/native/cuda/CUDALoops.cuh). Copies
 * and fills are exact, everything else is hashed.
 * Thread rule: none. Failure rule: a kernel of another shape is not of this family.
 */
#include "kernel_model_parts.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 8
#define CALCULATOR_DIMS                                                                            \
    25 /* OffsetCalculator's MAX_DIMS (ATen/cuda/detail/OffsetCalculator.cuh)                      \
        */

struct elementwise {
    int64_t elements;
    unsigned operands;
    CUdeviceptr data[MAX_OPERANDS];
    struct sim_view views[MAX_OPERANDS];
    const char *functor;      /* its text */
    const void *functor_data; /* its captured values, where they are known to start */
    bool casts;
};

/* --- types --- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The functor's text is followed by the rest of the name: look no further than its own end. */
static size_t functor_length(const char *text)
{
    const char *c = text;
    while (*c && *c != ',' && *c != '>') {
        if (*c == '<' || *c == '(' || *c == '[' || *c == '{') {
            const char *after = sim_skip_bracket(c);
            if (!after)
                break;
            c = after;
        } else {
            c++;
        }
    }
    return (size_t)(c - text);
}

static bool mentions(const char *text, const char *what)
{
    return memmem(text, functor_length(text), what, strlen(what)) != NULL;
}

/* The argument list of the last lambda in the text: "...::{lambda(float, bool)#1}". */
static const char *lambda_arguments(const char *text)
{
    static const char mark[] = "{lambda(";
    const char *end = text + functor_length(text), *last = NULL;
    for (const char *c = text; c + sizeof(mark) < end; c++)
        if (begins(c, mark))
            last = c + sizeof(mark) - 1;
    return last;
}

static bool answers_bool(const char *functor)
{
    static const char *const names[] = {"isnan",       "isinf",    "isfinite", "signbit",
                                        "logical_not", "isposinf", "isneginf"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (mentions(functor, names[i]))
            return true;
    return false;
}

/* BinaryFunctor<a, b, result, op>, AUnaryFunctor (a is held), BUnaryFunctor (b is held). */
static bool types_of_wrapper(struct elementwise *e)
{
    static const char *const names[] = {"at::native::BinaryFunctor<", "at::native::AUnaryFunctor<",
                                        "at::native::BUnaryFunctor<"};
    for (unsigned i = 0; i < 3; i++) {
        if (!begins(e->functor, names[i]))
            continue;
        const char *list = e->functor + strlen(names[i]);
        enum sim_type a = sim_type_of_text(list);
        enum sim_type b = sim_type_of_text(sim_template_argument(list, 1));
        e->views[0].type = (uint8_t)sim_type_of_text(sim_template_argument(list, 2));
        e->views[1].type = (uint8_t)(i == 1 ? b : a);
        e->views[2].type = (uint8_t)b;
        return true;
    }
    return false;
}

static void types_of_lambda(struct elementwise *e, const char *arguments)
{
    enum sim_type last = SIM_TYPE_NONE;
    for (unsigned i = 1; i < e->operands; i++) {
        enum sim_type type = sim_type_of_text(sim_template_argument(arguments, i - 1));
        e->views[i].type = (uint8_t)type;
        last = type != SIM_TYPE_NONE ? type : last;
    }
    if (answers_bool(e->functor))
        last = SIM_TYPE_BOOL;
    else if (mentions(e->functor, "bfloat16tofloat32") || mentions(e->functor, "float16tofloat32"))
        last = SIM_TYPE_F32;
    else if (mentions(e->functor, "bfloat16_copy"))
        last = SIM_TYPE_BF16;
    else if (mentions(e->functor, "float16_copy"))
        last = SIM_TYPE_F16;
    e->views[0].type = (uint8_t)last;
}

/* The first plain type among the functor's template arguments: CUDAFunctor_add<float>. */
static void types_of_template(struct elementwise *e)
{
    const char *open = memchr(e->functor, '<', functor_length(e->functor));
    enum sim_type type = open ? sim_type_of_text(open + 1) : SIM_TYPE_NONE;
    for (unsigned i = 0; i < e->operands; i++)
        e->views[i].type = (uint8_t)type;
}

static void find_types(struct elementwise *e)
{
    const char *arguments;
    if (types_of_wrapper(e))
        return;
    if ((arguments = lambda_arguments(e->functor)) != NULL)
        types_of_lambda(e, arguments);
    else
        types_of_template(e);
}

/* --- arguments --- */

static void contiguous(struct elementwise *e, const void *data)
{
    memcpy(e->data, data, e->operands * sizeof(*e->data));
    for (unsigned i = 0; i < e->operands; i++) {
        e->views[i].dims = 1;
        e->views[i].sizes[0] = (uint32_t)e->elements;
    }
}

/* LoadWithCast<K>: array<ScalarType, K> dtypes, array<uint32_t, K> sizes; StoreWithCast<1> alike.
 */
static void cast_types(struct elementwise *e, const struct sim_launch *launch)
{
    const int8_t *loader = launch->params[5], *storer = launch->params[6];
    e->casts = true;
    e->views[0].type = (uint8_t)sim_type_of_scalar(storer[0]);
    for (unsigned i = 1; i < e->operands; i++)
        e->views[i].type = (uint8_t)sim_type_of_scalar(loader[i - 1]);
}

static unsigned array_length(const char *text)
{
    const char *array = strstr(text, "std::array<char*, ");
    int length = array ? atoi(array + sizeof("std::array<char*, ") - 1) : 0;
    return length > 0 && length <= MAX_OPERANDS ? (unsigned)length : 0;
}

/* The number of tensors of a strided kernel does not stand in its name as such, but in its functor:
 * one more than a lambda's arguments, or than what the functor's name says. */
static unsigned strided_operands(const char *functor)
{
    const char *arguments = lambda_arguments(functor);
    if (begins(functor, "at::native::BinaryFunctor<") || mentions(functor, "CUDAFunctor_add<"))
        return 3;
    if (begins(functor, "at::native::FillFunctor<"))
        return 1;
    if (begins(functor, "at::native::AUnaryFunctor<") ||
        begins(functor, "at::native::BUnaryFunctor<") || !arguments)
        return 2;
    unsigned count = 0;
    while (*arguments != ')' && *sim_template_argument(arguments, count))
        count++;
    return count + 1;
}

/* IntDivider<unsigned> is {divisor, magic, shift}; strides are bytes. */
static bool strided(struct elementwise *e, const void *closure)
{
    int dims;
    memcpy(&dims, closure, sizeof(dims));
    if (dims < 0 || dims > SIM_MAX_DIMS)
        return false;
    const uint32_t *dividers = (const uint32_t *)((const char *)closure + 4);
    const uint32_t *strides = dividers + 3 * CALCULATOR_DIMS;
    for (unsigned i = 0; i < e->operands; i++) {
        e->views[i].dims = (uint8_t)dims;
        for (int d = 0; d < dims; d++) {
            e->views[i].sizes[d] = dividers[3 * d];
            e->views[i].strides[d] = strides[(unsigned)d * e->operands + i];
        }
    }
    size_t end = 4 + 4u * (3 + e->operands) * CALCULATOR_DIMS;
    const char *data = (const char *)closure + (end + 7) / 8 * 8;
    memcpy(e->data, data, e->operands * sizeof(*e->data));
    e->functor_data = data + e->operands * sizeof(*e->data);
    return true;
}

static bool read_arguments(const struct sim_launch *launch, struct elementwise *e)
{
    const struct sim_signature *s = launch->signature;
    memset(e, 0, sizeof(*e));
    e->elements = *(const int32_t *)launch->params[0];
    if (strcmp(s->name, "vectorized_elementwise_kernel") == 0 ||
        strcmp(s->name, "unrolled_elementwise_kernel") == 0) {
        e->functor = sim_template_argument(s->templates, s->name[0] == 'v');
        e->operands = array_length(s->templates);
        e->functor_data = launch->params[1];
        contiguous(e, launch->params[2]);
        if (strstr(s->templates, "LoadWithCast<"))
            cast_types(e, launch);
        else
            find_types(e);
        return e->operands > 0;
    }
    const char *impl = strstr(s->templates, "gpu_kernel_impl");
    if (strcmp(s->name, "elementwise_kernel") != 0 || !impl)
        return false;
    e->functor = strchr(impl, '<') + 1;
    e->operands = strided_operands(e->functor);
    if (e->operands > MAX_OPERANDS || !strided(e, launch->params[1]))
        return false;
    find_types(e);
    e->casts = !begins(impl, "gpu_kernel_impl_nocast");
    return true;
}

/* A casting strided kernel keeps array<ScalarType, K> after the functor; copies have an empty one.
 */
static void strided_cast_types(struct elementwise *e)
{
    const int8_t *types = (const int8_t *)e->functor_data + 1;
    for (unsigned i = 0; i < e->operands; i++)
        e->views[i].type = (uint8_t)sim_type_of_scalar(types[i]);
}

/* Other casting kernels hide the tensors' types behind a functor of unknown size: an element is
 * never wider than the distance to its neighbour. */
static void fit_types(struct elementwise *e)
{
    static const uint8_t by_bytes[] = {[1] = SIM_TYPE_BOOL, [2] = SIM_TYPE_F16, [4] = SIM_TYPE_F32};
    for (unsigned i = 0; i < e->operands; i++) {
        struct sim_view *view = &e->views[i];
        for (unsigned d = 0; d < view->dims; d++)
            if (view->sizes[d] > 1 && view->strides[d] > 0 && view->strides[d] <= 4 &&
                view->strides[d] < (int64_t)sim_type_bytes(view->type))
                view->type = by_bytes[view->strides[d]];
    }
}

/* --- the plan --- */

static void finish_strides(struct elementwise *e)
{
    for (unsigned i = 0; i < e->operands; i++)
        if (e->views[i].dims == 1 && e->views[i].strides[0] == 0 &&
            e->views[i].sizes[0] == (uint32_t)e->elements)
            e->views[i].strides[0] = (int64_t)sim_type_bytes(e->views[i].type);
}

/* (int N, functor, std::array<char*, K>, ...) with more than one output, first in the array. */
static bool decode_many_outputs(const struct sim_launch *launch, struct sim_plan *plan)
{
    const struct sim_signature *s = launch->signature;
    unsigned outputs = (unsigned)atoi(s->templates), operands = array_length(s->templates);
    const CUdeviceptr *data = launch->params[2];
    uint64_t elements = (uint64_t) * (const int32_t *)launch->params[0];
    const char *arguments = lambda_arguments(sim_template_argument(s->templates, 1));
    enum sim_type type = arguments ? sim_type_of_text(arguments) : SIM_TYPE_F32;
    for (unsigned i = 0; i < operands; i++)
        if (i < outputs)
            sim_plan_output(plan, data[i], type, elements);
        else
            sim_plan_input(plan, data[i], type, elements);
    plan->action = SIM_KERNEL_HASH;
    return operands > 0;
}

bool sim_decode_elementwise(const struct sim_launch *launch, struct sim_plan *plan)
{
    const char *name = launch->signature->name;
    struct elementwise e;
    if (strcmp(name, "unrolled_elementwise_kernel_for_multi_outputs") == 0)
        return decode_many_outputs(launch, plan);
    if (!strstr(name, "elementwise_kernel") || launch->signature->count < 2 ||
        !read_arguments(launch, &e))
        return false;
    bool is_contiguous = strcmp(name, "elementwise_kernel") != 0;
    bool copy = mentions(e.functor, "copy_kernel") && e.operands == 2;
    if (!is_contiguous && e.casts && copy)
        strided_cast_types(&e);
    else if (!is_contiguous && e.casts)
        fit_types(&e);
    if (is_contiguous)
        finish_strides(&e);
    plan->action = copy ? SIM_KERNEL_COPY : SIM_KERNEL_HASH;
    if (begins(e.functor, "at::native::FillFunctor<") && !e.casts) {
        plan->action = SIM_KERNEL_FILL;
        plan->fill_bytes = (uint32_t)sim_type_bytes(e.views[0].type);
        memcpy(plan->fill, e.functor_data, plan->fill_bytes);
    }
    for (unsigned i = 0; i < e.operands; i++)
        sim_plan_view(plan, i == 0, e.data[i], &e.views[i]);
    return true;
}
