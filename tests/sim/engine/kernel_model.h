/* kernel_model.h: what a kernel reads, writes and costs, decided from its name and arguments.
 *
 * decode runs inside the launch call, while the argument array is readable, and copies all it
 * needs. execute runs at the kernel's simulated execution time, on memory reached through the
 * engine's alias. Neither ever fails: a kernel it does not know leaves its outputs alone and is
 * counted by name in the truth.
 */
#ifndef KERNEL_MODEL_H
#define KERNEL_MODEL_H

#include "../gpusim.h"

#define SIM_KERNEL_MAX_RANGES 512 /* multi-tensor kernels carry long lists */

enum sim_kernel_action {
    SIM_KERNEL_UNKNOWN, /* no data flow known */
    SIM_KERNEL_HASH,    /* outputs := finite floats derived from a sample of every input */
    SIM_KERNEL_COPY,    /* output 0 := input 0, exact */
    SIM_KERNEL_FILL,    /* output 0 := repeated fill pattern */
    SIM_KERNEL_SPIN,    /* nothing but time (torch.cuda._sleep) */
};

struct sim_kernel_op {
    enum sim_kernel_action action;
    uint64_t duration_ns;
    uint64_t salt; /* from the kernel's name, so that different kernels give different hashes */
    uint32_t input_count, output_count;
    struct gpusim_operand *ranges; /* inputs, then outputs; malloc'ed; sim_kernel_free */
    uint8_t fill[16];
    uint32_t fill_bytes;
    void *views; /* private to the model: element type and strides of each range */
};

void sim_kernel_decode(const char *name, void **params, uint64_t blocks, uint64_t threads,
                       struct sim_kernel_op *op);
void sim_kernel_execute(const struct sim_kernel_op *op);
void sim_kernel_free(struct sim_kernel_op *op);

/* Provided by the engine's memory module. Host-visible alias of a device address, with the number
 * of bytes left in that allocation; NULL when the address is in no live allocation. */
void *sim_mem_alias(CUdeviceptr address, size_t *bytes_left);
/* Provided by the engine's settings: a GPUSIM_* number. */
double sim_setting_number(const char *name);

#endif
