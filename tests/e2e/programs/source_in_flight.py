"""A pageable copy to the GPU whose source an earlier copy from the GPU on the same stream still writes.

The native call waits for the stream before it reads; one that reads first sends what was there before.
Prints how many of the rounds arrived wrong.
"""

import ctypes

import torch

SIZE = 1 << 20
ROUNDS = 30
DEVICE_TO_HOST, HOST_TO_DEVICE = 2, 1


def main():
    runtime = ctypes.CDLL("libcudart.so.12")
    old, target = torch.empty(SIZE, dtype=torch.uint8, device="cuda"), torch.empty(SIZE, dtype=torch.uint8, device="cuda")
    pinned = torch.empty(SIZE, dtype=torch.uint8).pin_memory()
    pageable = torch.empty(SIZE, dtype=torch.uint8)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def move(_):
        """Runs in stream order: the last moment at which the source may still change."""
        ctypes.memmove(pageable.data_ptr(), pinned.data_ptr(), SIZE)

    wrong = 0
    for value in range(ROUNDS):
        old.copy_(torch.full((SIZE,), value, dtype=torch.uint8))
        pageable.fill_(255)
        runtime.cudaMemcpyAsync(ctypes.c_void_p(pinned.data_ptr()), ctypes.c_void_p(old.data_ptr()), ctypes.c_size_t(SIZE),
                                DEVICE_TO_HOST, stream)
        runtime.cudaLaunchHostFunc(stream, move, None)
        runtime.cudaMemcpyAsync(ctypes.c_void_p(target.data_ptr()), ctypes.c_void_p(pageable.data_ptr()),
                                ctypes.c_size_t(SIZE), HOST_TO_DEVICE, stream)
        wrong += int(not bool((target.cpu() == value).all()))
    print(wrong)


if __name__ == "__main__":
    main()
