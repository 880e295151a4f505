"""What a pageable copy to the GPU has written is there at its return, for a stream that nothing orders behind it.

CUDA does not promise it for the asynchronous form, but it holds natively on every machine, and programs lean on it.
Prints how many of the rounds the other stream read something else.
"""

import ctypes

import torch

SIZE = 3 << 20
ROUNDS = 40
DEVICE_TO_HOST, HOST_TO_DEVICE = 2, 1


def main():
    runtime = ctypes.CDLL("libcudart.so.12")
    other = torch.cuda.Stream()
    target = torch.zeros(SIZE, dtype=torch.uint8, device="cuda")
    seen = torch.empty(SIZE, dtype=torch.uint8).pin_memory()
    source = torch.empty(SIZE, dtype=torch.uint8)
    here, there = (ctypes.c_void_p(s.cuda_stream) for s in (torch.cuda.current_stream(), other))

    def copy(to, from_, kind, stream):
        status = runtime.cudaMemcpyAsync(ctypes.c_void_p(to.data_ptr()), ctypes.c_void_p(from_.data_ptr()),
                                         ctypes.c_size_t(SIZE), kind, stream)
        assert status == 0

    wrong = 0
    for value in range(1, ROUNDS + 1):
        source.fill_(value)
        copy(target, source, HOST_TO_DEVICE, here)
        copy(seen, target, DEVICE_TO_HOST, there)
        other.synchronize()
        wrong += int(not bool((seen == value).all()))
    print(wrong)


if __name__ == "__main__":
    main()
