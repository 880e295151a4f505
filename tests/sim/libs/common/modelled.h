/* modelled.h: how a library stand-in queues one modelled operation.
 *
 * The real libraries carry a static runtime: they reach the driver with dlopen, dlsym and
 * cuGetProcAddress, so a hook in libcudart does not see their launches. These do the same.
 * Thread rule: any thread; each operation is built on the caller's stack. Failure rule: an
 * operation that cannot be launched answers false and the library reports an execution failure.
 */
#ifndef SIM_MODELLED_H
#define SIM_MODELLED_H

#include "../../gpusim.h"

#include <library_types.h>

/* Starts an operation; `type` decides the numbers written to its outputs ("gemm:f16"). */
void modelled_begin(struct gpusim_op *op, const char *name, cudaDataType_t type);
void modelled_input(struct gpusim_op *op, const void *pointer, size_t bytes);
void modelled_output(struct gpusim_op *op, void *pointer, size_t bytes);
bool modelled_launch(const struct gpusim_op *op, CUstream stream);

size_t modelled_type_bytes(cudaDataType_t type);
/* A host scalar of a compute type is not zero. */
bool modelled_nonzero(const void *scalar, cudaDataType_t type);
/* Bytes of a column-major matrix: the last column ends at its last row. */
size_t modelled_matrix_bytes(int64_t rows, int64_t columns, int64_t leading, cudaDataType_t type);

#endif
