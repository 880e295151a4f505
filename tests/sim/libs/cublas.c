/* cublas.c: stand-in for libcublas.so.12: the entry points PyTorch imports.
 *
 * Matrix products and vector operations become one modelled operation with their operands; what
 * only dense linear algebra (torch.linalg) uses answers CUBLAS_STATUS_NOT_SUPPORTED.
 * Thread rule: a handle belongs to one thread at a time, as cuBLAS demands. Failure rule: a launch
 * that fails answers CUBLAS_STATUS_EXECUTION_FAILED.
 */
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "common/modelled.h"

#include <stdlib.h>

struct cublasContext {
    cudaStream_t stream;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math_mode;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = calloc(1, sizeof(**handle));
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)handle, (void)workspace, (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    handle->pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
    *mode = handle->pointer_mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    handle->math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    *mode = handle->math_mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* --- matrix products --- */

struct matrix {
    const void *pointer;
    cudaDataType_t type;
    int leading;
    long long stride;
};

struct product {
    cublasOperation_t op_a, op_b;
    int m, n, k, batch;
    struct matrix a, b, c;
    const void *beta;
    cudaDataType_t scalar_type;
};

static size_t batched_bytes(const struct matrix *matrix, int rows, int columns, int batch)
{
    size_t one = modelled_matrix_bytes(rows, columns, matrix->leading, matrix->type);
    return one + (size_t)(batch - 1) * (size_t)matrix->stride * modelled_type_bytes(matrix->type);
}

static cublasStatus_t launch(cublasHandle_t handle, const struct gpusim_op *op)
{
    return modelled_launch(op, (CUstream)handle->stream) ? CUBLAS_STATUS_SUCCESS
                                                         : CUBLAS_STATUS_EXECUTION_FAILED;
}

static cublasStatus_t multiply(cublasHandle_t handle, const struct product *p)
{
    if (p->m <= 0 || p->n <= 0 || p->batch <= 0)
        return CUBLAS_STATUS_SUCCESS;
    struct gpusim_op op;
    modelled_begin(&op, "gemm", p->c.type);
    bool plain_a = p->op_a == CUBLAS_OP_N, plain_b = p->op_b == CUBLAS_OP_N;
    modelled_input(&op, p->a.pointer,
                   batched_bytes(&p->a, plain_a ? p->m : p->k, plain_a ? p->k : p->m, p->batch));
    modelled_input(&op, p->b.pointer,
                   batched_bytes(&p->b, plain_b ? p->k : p->n, plain_b ? p->n : p->k, p->batch));
    size_t c_bytes = batched_bytes(&p->c, p->m, p->n, p->batch);
    if (handle->pointer_mode != CUBLAS_POINTER_MODE_HOST ||
        modelled_nonzero(p->beta, p->scalar_type))
        modelled_input(&op, p->c.pointer, c_bytes);
    modelled_output(&op, (void *)(uintptr_t)p->c.pointer, c_bytes);
    op.flops = 2ull * (unsigned)p->m * (unsigned)p->n * (unsigned)p->k * (unsigned)p->batch;
    return launch(handle, &op);
}

#define GEMM(name, scalar, cuda_type)                                                              \
    cublasStatus_t cublas##name##gemm_v2(                                                          \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,    \
        const scalar *alpha, const scalar *A, int lda, const scalar *B, int ldb,                   \
        const scalar *beta, scalar *C, int ldc)                                                    \
    {                                                                                              \
        (void)alpha;                                                                               \
        return multiply(handle, &(struct product){ta,                                              \
                                                  tb,                                              \
                                                  m,                                               \
                                                  n,                                               \
                                                  k,                                               \
                                                  1,                                               \
                                                  {A, cuda_type, lda, 0},                          \
                                                  {B, cuda_type, ldb, 0},                          \
                                                  {C, cuda_type, ldc, 0},                          \
                                                  beta,                                            \
                                                  cuda_type});                                     \
    }                                                                                              \
    cublasStatus_t cublas##name##gemmStridedBatched(                                               \
        cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,    \
        const scalar *alpha, const scalar *A, int lda, long long int sa, const scalar *B, int ldb, \
        long long int sb, const scalar *beta, scalar *C, int ldc, long long int sc, int batch)     \
    {                                                                                              \
        (void)alpha;                                                                               \
        return multiply(handle, &(struct product){ta,                                              \
                                                  tb,                                              \
                                                  m,                                               \
                                                  n,                                               \
                                                  k,                                               \
                                                  batch,                                           \
                                                  {A, cuda_type, lda, sa},                         \
                                                  {B, cuda_type, ldb, sb},                         \
                                                  {C, cuda_type, ldc, sc},                         \
                                                  beta,                                            \
                                                  cuda_type});                                     \
    }

GEMM(S, float, CUDA_R_32F)
GEMM(D, double, CUDA_R_64F)
GEMM(C, cuComplex, CUDA_C_32F)
GEMM(Z, cuDoubleComplex, CUDA_C_64F)

static cudaDataType_t scalar_of(cublasComputeType_t compute, cudaDataType_t c)
{
    if (compute == CUBLAS_COMPUTE_16F)
        return CUDA_R_16F;
    return compute == CUBLAS_COMPUTE_64F ? c : CUDA_R_32F;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                            int m, int n, int k, const void *alpha, const void *A,
                            cudaDataType a_type, int lda, const void *B, cudaDataType b_type,
                            int ldb, const void *beta, void *C, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    (void)alpha, (void)algo;
    return multiply(handle, &(struct product){ta,
                                              tb,
                                              m,
                                              n,
                                              k,
                                              1,
                                              {A, a_type, lda, 0},
                                              {B, b_type, ldb, 0},
                                              {C, c_type, ldc, 0},
                                              beta,
                                              scalar_of(compute, c_type)});
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void *alpha, const void *A, cudaDataType a_type, int lda, long long int sa, const void *B,
    cudaDataType b_type, int ldb, long long int sb, const void *beta, void *C, cudaDataType c_type,
    int ldc, long long int sc, int batch, cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    (void)alpha, (void)algo;
    return multiply(handle, &(struct product){ta,
                                              tb,
                                              m,
                                              n,
                                              k,
                                              batch,
                                              {A, a_type, lda, sa},
                                              {B, b_type, ldb, sb},
                                              {C, c_type, ldc, sc},
                                              beta,
                                              scalar_of(compute, c_type)});
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                             int m, int n, int k, const float *alpha, const void *A,
                             cudaDataType a_type, int lda, const void *B, cudaDataType b_type,
                             int ldb, const float *beta, void *C, cudaDataType c_type, int ldc)
{
    return cublasGemmEx(handle, ta, tb, m, n, k, alpha, A, a_type, lda, B, b_type, ldb, beta, C,
                        c_type, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

/* --- matrix by vector, and vectors --- */

static size_t vector_bytes(int n, int stride, cudaDataType_t type)
{
    return modelled_matrix_bytes(1, n, stride < 0 ? -stride : stride, type);
}

static cublasStatus_t matrix_vector(cublasHandle_t handle, cublasOperation_t t, int m, int n,
                                    const struct matrix *a, const void *x, int incx,
                                    const void *beta, void *y, int incy)
{
    int rows = t == CUBLAS_OP_N ? m : n, columns = t == CUBLAS_OP_N ? n : m;
    struct gpusim_op op;
    modelled_begin(&op, "gemv", a->type);
    modelled_input(&op, a->pointer, modelled_matrix_bytes(m, n, a->leading, a->type));
    modelled_input(&op, x, vector_bytes(columns, incx, a->type));
    if (handle->pointer_mode != CUBLAS_POINTER_MODE_HOST || modelled_nonzero(beta, a->type))
        modelled_input(&op, y, vector_bytes(rows, incy, a->type));
    modelled_output(&op, y, vector_bytes(rows, incy, a->type));
    op.flops = 2ull * (unsigned)m * (unsigned)n;
    return launch(handle, &op);
}

/* The result of a dot product goes to device memory when the pointer mode says so. */
static cublasStatus_t dot(cublasHandle_t handle, int n, const void *x, cudaDataType_t x_type,
                          int incx, const void *y, cudaDataType_t y_type, int incy, void *result,
                          cudaDataType_t result_type)
{
    if (handle->pointer_mode != CUBLAS_POINTER_MODE_DEVICE)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    struct gpusim_op op;
    modelled_begin(&op, "dot", result_type);
    modelled_input(&op, x, vector_bytes(n, incx, x_type));
    modelled_input(&op, y, vector_bytes(n, incy, y_type));
    modelled_output(&op, result, modelled_type_bytes(result_type));
    op.flops = 2ull * (unsigned)n;
    return launch(handle, &op);
}

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType x_type,
                           int incx, const void *y, cudaDataType y_type, int incy, void *result,
                           cudaDataType result_type, cudaDataType execution_type)
{
    (void)execution_type;
    return dot(handle, n, x, x_type, incx, y, y_type, incy, result, result_type);
}

#define GEMV(name, scalar, cuda_type)                                                              \
    cublasStatus_t cublas##name##gemv_v2(cublasHandle_t handle, cublasOperation_t t, int m, int n, \
                                         const scalar *alpha, const scalar *A, int lda,            \
                                         const scalar *x, int incx, const scalar *beta, scalar *y, \
                                         int incy)                                                 \
    {                                                                                              \
        (void)alpha;                                                                               \
        return matrix_vector(handle, t, m, n, &(struct matrix){A, cuda_type, lda, 0}, x, incx,     \
                             beta, y, incy);                                                       \
    }

#define DOT(name, scalar, cuda_type)                                                               \
    cublasStatus_t cublas##name##_v2(cublasHandle_t handle, int n, const scalar *x, int incx,      \
                                     const scalar *y, int incy, scalar *result)                    \
    {                                                                                              \
        return dot(handle, n, x, cuda_type, incx, y, cuda_type, incy, result, cuda_type);          \
    }

GEMV(S, float, CUDA_R_32F)
GEMV(D, double, CUDA_R_64F)
GEMV(C, cuComplex, CUDA_C_32F)
GEMV(Z, cuDoubleComplex, CUDA_C_64F)
DOT(Sdot, float, CUDA_R_32F)
DOT(Ddot, double, CUDA_R_64F)
DOT(Cdotu, cuComplex, CUDA_C_32F)
DOT(Cdotc, cuComplex, CUDA_C_32F)
DOT(Zdotu, cuDoubleComplex, CUDA_C_64F)
DOT(Zdotc, cuDoubleComplex, CUDA_C_64F)

/* --- imported, but only by dense linear algebra --- */

__attribute__((used)) static cublasStatus_t not_supported(void)
{
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

/* The symbol takes any arguments and answers not_supported; written as an alias because the
 * header's prototypes differ from each other. */
#define REFUSE(name) __asm__(".globl cublas" #name "\n.set cublas" #name ", not_supported");
#define REFUSE_ALL(suffix)                                                                         \
    REFUSE(S##suffix)                                                                              \
    REFUSE(D##suffix)                                                                              \
    REFUSE(C##suffix)                                                                              \
    REFUSE(Z##suffix)

/* clang-format off */
REFUSE_ALL(axpy_v2) REFUSE_ALL(copy_v2) REFUSE_ALL(scal_v2) REFUSE_ALL(swap_v2)
REFUSE_ALL(rot_v2) REFUSE_ALL(rotg_v2) REFUSE_ALL(symm_v2) REFUSE_ALL(symv_v2) REFUSE_ALL(syr_v2)
REFUSE_ALL(syr2_v2) REFUSE_ALL(syrk_v2) REFUSE_ALL(syr2k_v2) REFUSE_ALL(trmm_v2)
REFUSE_ALL(trmv_v2) REFUSE_ALL(trsm_v2) REFUSE_ALL(trsv_v2) REFUSE_ALL(gemmBatched)
REFUSE_ALL(trsmBatched) REFUSE_ALL(getrfBatched) REFUSE_ALL(getrsBatched) REFUSE_ALL(geqrfBatched)
REFUSE_ALL(gelsBatched) REFUSE(Sger_v2) REFUSE(Dger_v2) REFUSE(Cgeru_v2) REFUSE(Cgerc_v2)
REFUSE(Zgeru_v2) REFUSE(Zgerc_v2) REFUSE(Chemm_v2) REFUSE(Chemv_v2) REFUSE(Cher_v2)
REFUSE(Cher2_v2) REFUSE(Cherk_v2) REFUSE(Cher2k_v2) REFUSE(Zhemm_v2) REFUSE(Zhemv_v2)
REFUSE(Zher_v2) REFUSE(Zher2_v2) REFUSE(Zherk_v2) REFUSE(Zher2k_v2) REFUSE(Srotm_v2)
REFUSE(Srotmg_v2) REFUSE(Drotm_v2) REFUSE(Drotmg_v2) REFUSE(Csrot_v2) REFUSE(Zdrot_v2)
REFUSE(Csscal_v2) REFUSE(Zdscal_v2) REFUSE(Sasum_v2) REFUSE(Dasum_v2) REFUSE(Scasum_v2)
REFUSE(Dzasum_v2) REFUSE(Snrm2_v2) REFUSE(Dnrm2_v2) REFUSE(Scnrm2_v2) REFUSE(Dznrm2_v2)
REFUSE(Isamax_v2) REFUSE(Idamax_v2) REFUSE(Icamax_v2) REFUSE(Izamax_v2) REFUSE(Isamin_v2)
REFUSE(Idamin_v2) REFUSE(Icamin_v2) REFUSE(Izamin_v2) REFUSE(SetMatrixAsync)
REFUSE(GetMatrixAsync) REFUSE(SetVectorAsync) REFUSE(GetVectorAsync)
    /* clang-format on */
