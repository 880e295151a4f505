/* cudnn_descriptors.h: what cuDNN's descriptors hold here, and the sizes that follow from them.
 *
 * Thread rule: a descriptor belongs to its creator. Failure rule: more than eight dimensions answer
 * CUDNN_STATUS_NOT_SUPPORTED.
 */
#ifndef SIM_CUDNN_DESCRIPTORS_H
#define SIM_CUDNN_DESCRIPTORS_H

#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include <stddef.h>
#include <stdint.h>

struct cudnnContext {
    cudaStream_t stream;
};

#define MAX_DIMS 8

struct shape {
    cudnnDataType_t type;
    cudnnTensorFormat_t format;
    int count;
    int dims[MAX_DIMS], strides[MAX_DIMS];
};

struct cudnnTensorStruct {
    struct shape shape;
};
struct cudnnFilterStruct {
    struct shape shape;
};
struct cudnnConvolutionStruct {
    int groups;
};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
};
struct cudnnPoolingStruct {
    cudnnPoolingMode_t mode;
};

cudaDataType_t shape_type(const struct shape *shape);
uint64_t shape_elements(const struct shape *shape);
/* From the first byte to the last, holes included. */
size_t shape_bytes(const struct shape *shape);

#endif
