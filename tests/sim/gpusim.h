/* gpusim.h: what the simulator's own parts and tests may ask of its driver, beyond cuda.h.
 *
 * Exported by the stand-in libcuda.so.1 and found with dlsym; nothing of the product uses it.
 * Thread rule: every function may be called from any thread.
 */
#ifndef GPUSIM_H
#define GPUSIM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUSIM_MAX_OPERANDS 16

/* One operand of a modelled operation: a range of device memory. */
struct gpusim_operand {
    CUdeviceptr ptr;
    size_t bytes; /* 0: unknown, only its first bytes count */
};

/* What a library stand-in (cuBLAS, cuDNN) launches: a hash of all inputs is written to all
 * outputs at the operation's execution time. Launched with cuLaunchKernel as the function
 * gpusim_function("gpusim::op"), kernelParams[0] pointing to this struct (copied at launch). */
struct gpusim_op {
    char name[48]; /* for the truth log: "gemm", "conv_fwd" */
    uint64_t flops;
    uint32_t input_count, output_count;
    struct gpusim_operand inputs[GPUSIM_MAX_OPERANDS];
    struct gpusim_operand outputs[GPUSIM_MAX_OPERANDS];
};

/* The function handle for a mangled kernel name (one handle per name, for the process). */
CUfunction gpusim_function(const char *mangled_name);
/* Virtual clock only: finish everything that is queued, then start the adversary anew. */
void gpusim_reseed(uint64_t seed);
/* Simulated time in ns (the real clock in real-time mode). */
uint64_t gpusim_now_ns(void);
/* What an agent that no stream orders (another process, a NIC) sees in device memory right now:
 * runs no work, takes no time. False where there is no live memory of that size. */
bool gpusim_peek(CUdeviceptr address, void *out, size_t bytes);
/* Write the truth now (it is also written at exit) to GPUSIM_TRUTH's file or `path`. */
void gpusim_write_truth(const char *path);
/* Start a named section of the call log and truth ("run seed=3"). */
void gpusim_mark(const char *label);
/* Tell the call log that the program itself accesses host memory here (GPUSIM_LOG_ADDRESSES=1);
 * the happens-before checker (tests/checker) cannot see that otherwise. */
void gpusim_note_access(const void *address, size_t bytes, int writes);
/* Truth of one device since the last gpusim_mark, for tests. */
struct gpusim_usage {
    uint64_t first_ns, last_ns; /* first start and last end of any operation */
    uint64_t compute_busy_ns, h2d_busy_ns, d2h_busy_ns;
    uint64_t any_busy_ns; /* union over the engines */
};
void gpusim_usage(int device, struct gpusim_usage *out);

#endif
