/* kernel_model_parts.h: what the files of the kernel model share.
 *
 * A kernel's mangled name is parsed once into a signature; a decoder of its family then reads the
 * argument array of each launch and adds operands to the plan that becomes a sim_kernel_op.
 * Thread rule: signatures are immutable once made; a plan belongs to one launch.
 * Failure rule: what is not understood is left out, never guessed beyond an allocation's bounds.
 */
#ifndef KERNEL_MODEL_PARTS_H
#define KERNEL_MODEL_PARTS_H

#include "kernel_model.h"

#define SIM_MAX_DIMS       8
#define SIM_MAX_PARAMETERS 40

/* Element types, as far as sizes and what may be written to them go. */
enum sim_type {
    SIM_TYPE_NONE,
    SIM_TYPE_BOOL,
    SIM_TYPE_U8,
    SIM_TYPE_I8,
    SIM_TYPE_I16,
    SIM_TYPE_I32,
    SIM_TYPE_I64,
    SIM_TYPE_F16,
    SIM_TYPE_BF16,
    SIM_TYPE_F32,
    SIM_TYPE_F64,
    SIM_TYPE_C64,  /* two floats */
    SIM_TYPE_C128, /* two doubles */
};

size_t sim_type_bytes(enum sim_type type);
/* c10/core/ScalarType.h: the numbers PyTorch passes to casting kernels. */
enum sim_type sim_type_of_scalar(int scalar_type);
/* "float", "c10::Half", "long const": the leading type of a demangled text. */
enum sim_type sim_type_of_text(const char *text);

/* How a range is walked. dims 0: one run of bytes. */
struct sim_view {
    uint8_t type; /* enum sim_type */
    uint8_t dims;
    uint32_t sizes[SIM_MAX_DIMS];
    int64_t strides[SIM_MAX_DIMS]; /* bytes */
};

/* One element, converted. */
void sim_convert(char *to, enum sim_type to_type, const char *from, enum sim_type from_type);

uint64_t sim_view_elements(const struct sim_view *view);
uint64_t sim_view_offset(const struct sim_view *view, uint64_t element);

enum sim_parameter_kind {
    SIM_PARAMETER_OTHER,    /* a struct this file knows nothing about */
    SIM_PARAMETER_NUMBER,   /* an integer, bool or floating-point number */
    SIM_PARAMETER_POINTER,  /* T * */
    SIM_PARAMETER_ACCESSOR, /* at::GenericPackedTensorAccessor<T, dims, ..., index> */
    SIM_PARAMETER_INFO,     /* at::cuda::detail::TensorInfo<T, index> */
};

struct sim_parameter {
    uint8_t kind, type, dims, index_bytes;
    bool constant; /* what it points to */
    const char *text;
};

/* A kernel's name, taken apart. */
struct sim_signature {
    const char *mangled;
    char *text;      /* demangled, whole */
    char *name;      /* the function's own name: "reduce_kernel" */
    char *templates; /* its template arguments, "" when none */
    unsigned count;
    struct sim_parameter parameters[SIM_MAX_PARAMETERS];
    uint64_t salt;
};

/* NULL when the name cannot be taken apart. Lives as long as the process. */
const struct sim_signature *sim_signature_of(const char *mangled);
/* The i-th top-level template argument of a "a, b<c, d>, e" text; "" past the last. */
const char *sim_template_argument(const char *templates, unsigned index);
/* Past the bracket that closes the one `text` points to; NULL when it never closes. */
const char *sim_skip_bracket(const char *text);

/* A launch being decoded. */
struct sim_launch {
    const struct sim_signature *signature;
    void **params;
    uint64_t blocks, threads;
};

struct sim_plan {
    enum sim_kernel_action action;
    uint32_t input_count, output_count;
    uint64_t extra_hash; /* numbers that belong to the inputs, such as a random seed */
    uint64_t flops;
    bool full; /* an operand did not fit */
    struct gpusim_operand inputs[SIM_KERNEL_MAX_RANGES], outputs[SIM_KERNEL_MAX_RANGES];
    struct sim_view input_views[SIM_KERNEL_MAX_RANGES], output_views[SIM_KERNEL_MAX_RANGES];
    uint8_t fill[16];
    uint32_t fill_bytes;
};

/* A contiguous operand of `elements`; 0 elements: unknown. NULL pointers are left out. */
void sim_plan_input(struct sim_plan *plan, CUdeviceptr ptr, enum sim_type type, uint64_t elements);
void sim_plan_output(struct sim_plan *plan, CUdeviceptr ptr, enum sim_type type, uint64_t elements);
void sim_plan_view(struct sim_plan *plan, bool output, CUdeviceptr ptr,
                   const struct sim_view *view);

/* Random seeds among the parameters belong to the inputs. */
void sim_plan_seeds(const struct sim_launch *launch, struct sim_plan *plan);

/* Decoders. Each says whether the kernel is one of its family. */
bool sim_decode_elementwise(const struct sim_launch *launch, struct sim_plan *plan);
bool sim_decode_reduce(const struct sim_launch *launch, struct sim_plan *plan);
bool sim_decode_lists(const struct sim_launch *launch, struct sim_plan *plan);
bool sim_decode_structs(const struct sim_launch *launch, struct sim_plan *plan);
bool sim_decode_plain(const struct sim_launch *launch, struct sim_plan *plan);

#endif
