/* cublaslt.c: stand-in for libcublasLt.so.12: the matrix product with epilogue.
 *
 * PyTorch uses it for Linear with a bias (and an activation) and for scaled products. One candidate
 * algorithm is offered; the product becomes one modelled operation.
 * Thread rule: descriptors belong to their creator. Failure rule: CUBLAS_STATUS_EXECUTION_FAILED.
 */
#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include "common/modelled.h"

#include <stdlib.h>
#include <string.h>

struct description {
    cublasOperation_t op_a, op_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    void *auxiliary;
    cudaDataType_t scalar_type;
};

struct layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t leading, stride;
    int32_t batch;
};

_Static_assert(sizeof(struct description) <= sizeof(cublasLtMatmulDescOpaque_t), "fits");
_Static_assert(sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "fits");

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scalar_type)
{
    (void)compute;
    struct description *made = calloc(1, sizeof(cublasLtMatmulDescOpaque_t));
    if (!made)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *made = (struct description){.op_a = CUBLAS_OP_N,
                                 .op_b = CUBLAS_OP_N,
                                 .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                                 .scalar_type = scalar_type};
    *desc = (cublasLtMatmulDesc_t)made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *field, size_t field_bytes, const void *value, size_t bytes)
{
    if (bytes < field_bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, field_bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define SET(field) set(&(field), sizeof(field), value, bytes)

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes)
{
    struct description *to = (struct description *)desc;
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return SET(to->op_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return SET(to->op_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return SET(to->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return SET(to->bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return SET(to->auxiliary);
    default:
        return CUBLAS_STATUS_SUCCESS;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    struct layout *made = calloc(1, sizeof(cublasLtMatrixLayoutOpaque_t));
    if (!made)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *made = (struct layout){type, rows, columns, leading, 0, 1};
    *layout = (cublasLtMatrixLayout_t)made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t bytes)
{
    struct layout *to = (struct layout *)layout;
    switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return SET(to->batch);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return SET(to->stride);
    default:
        return CUBLAS_STATUS_SUCCESS;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = calloc(1, sizeof(**preference));
    return *preference ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes)
{
    (void)preference, (void)name, (void)value, (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *returned)
{
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *returned = requested > 0;
    if (requested > 0)
        results[0] = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS};
    return CUBLAS_STATUS_SUCCESS;
}

static size_t layout_bytes(const struct layout *l)
{
    size_t one = modelled_matrix_bytes((int64_t)l->rows, (int64_t)l->columns, l->leading, l->type);
    return one + (size_t)(l->batch - 1) * (size_t)l->stride * modelled_type_bytes(l->type);
}

/* Epilogues (cublasLt.h, cublasLtEpilogue_t): BIAS adds one value per row of D; BGRADA and BGRADB
 * write the bias gradient through the same pointer; *_AUX forms write a mask for the backward. */
static void add_epilogue(struct gpusim_op *op, const struct description *desc,
                         const struct layout *d)
{
    size_t bias_bytes = d->rows * modelled_type_bytes(d->type);
    if (desc->epilogue == CUBLASLT_EPILOGUE_BGRADA || desc->epilogue == CUBLASLT_EPILOGUE_BGRADB)
        modelled_output(op, (void *)(uintptr_t)desc->bias, bias_bytes);
    else
        modelled_input(op, desc->bias, bias_bytes);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    (void)handle, (void)alpha, (void)algo, (void)workspace, (void)workspace_bytes;
    const struct description *how = (const struct description *)desc;
    const struct layout *la = (const struct layout *)a, *ld = (const struct layout *)d;
    struct gpusim_op op;
    modelled_begin(&op, "matmul", ld->type);
    modelled_input(&op, A, layout_bytes(la));
    modelled_input(&op, B, layout_bytes((const struct layout *)b));
    if (modelled_nonzero(beta, how->scalar_type))
        modelled_input(&op, C, layout_bytes((const struct layout *)c));
    modelled_output(&op, D, layout_bytes(ld));
    add_epilogue(&op, how, ld);
    uint64_t k = how->op_a == CUBLAS_OP_N ? la->columns : la->rows;
    op.flops = 2 * ld->rows * ld->columns * k * (uint64_t)ld->batch;
    return modelled_launch(&op, (CUstream)stream) ? CUBLAS_STATUS_SUCCESS
                                                  : CUBLAS_STATUS_EXECUTION_FAILED;
}
