/* modelled.c: see modelled.h.
 *
 * Thread rule: the driver is found once, under pthread_once. Failure rule: false.
 */
#include "modelled.h"

#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static PFN_cuLaunchKernel_v4000 launch_kernel;
static CUfunction op_function;

static void find_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (!handle)
        return;
    PFN_cuGetProcAddress_v12000 get_proc_address;
    CUfunction (*function)(const char *);
    *(void **)&get_proc_address = dlsym(handle, "cuGetProcAddress_v2");
    *(void **)&function = dlsym(handle, "gpusim_function");
    CUdriverProcAddressQueryResult status;
    if (!get_proc_address || !function ||
        get_proc_address("cuLaunchKernel", (void **)&launch_kernel, 12080,
                         CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS)
        return;
    op_function = function("gpusim::op");
}

static const char *kind_of(cudaDataType_t type)
{
    switch (type) {
    case CUDA_R_16F:
    case CUDA_C_16F:
        return "f16";
    case CUDA_R_16BF:
    case CUDA_C_16BF:
        return "bf16";
    case CUDA_R_64F:
    case CUDA_C_64F:
        return "f64";
    case CUDA_R_8I:
    case CUDA_R_32I:
        return "int";
    default:
        return "f32";
    }
}

void modelled_begin(struct gpusim_op *op, const char *name, cudaDataType_t type)
{
    memset(op, 0, sizeof(*op));
    snprintf(op->name, sizeof(op->name), "%s:%s", name, kind_of(type));
}

void modelled_input(struct gpusim_op *op, const void *pointer, size_t bytes)
{
    if (pointer && op->input_count < GPUSIM_MAX_OPERANDS)
        op->inputs[op->input_count++] =
            (struct gpusim_operand){(CUdeviceptr)(uintptr_t)pointer, bytes};
}

void modelled_output(struct gpusim_op *op, void *pointer, size_t bytes)
{
    if (pointer && op->output_count < GPUSIM_MAX_OPERANDS)
        op->outputs[op->output_count++] =
            (struct gpusim_operand){(CUdeviceptr)(uintptr_t)pointer, bytes};
}

bool modelled_launch(const struct gpusim_op *op, CUstream stream)
{
    pthread_once(&once, find_driver);
    if (!op_function)
        return false;
    void *params[] = {(void *)(uintptr_t)op};
    return launch_kernel(op_function, 1, 1, 1, 128, 1, 1, 0, stream, params, NULL) == CUDA_SUCCESS;
}

size_t modelled_type_bytes(cudaDataType_t type)
{
    switch (type) {
    case CUDA_C_64F:
        return 16;
    case CUDA_R_64F:
    case CUDA_C_32F:
        return 8;
    case CUDA_R_16F:
    case CUDA_R_16BF:
        return 2;
    case CUDA_R_8I:
    case CUDA_R_8U:
        return 1;
    default:
        return 4;
    }
}

bool modelled_nonzero(const void *scalar, cudaDataType_t type)
{
    static const char zeros[16];
    return !scalar || memcmp(scalar, zeros, modelled_type_bytes(type)) != 0;
}

size_t modelled_matrix_bytes(int64_t rows, int64_t columns, int64_t leading, cudaDataType_t type)
{
    if (rows <= 0 || columns <= 0)
        return 0;
    return (size_t)((columns - 1) * leading + rows) * modelled_type_bytes(type);
}
