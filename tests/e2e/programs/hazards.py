"""What the hazard_*.py scripts share: rounds under one temper of the virtual clock after the other.

A script is right on every GPU without the library, and leans on a wait that a copy has made. Its arguments: the first
seed and how many. It prints how many of its rounds went wrong.
"""

import ctypes
import sys

import torch

SIZE = 2 << 20  # bytes: larger than what the driver takes along at the call
WARM_UP = 12  # rounds before the first seed: the library stages only after a few copies
ROUNDS_OF_A_SEED = 2
HOST_TO_DEVICE = 1
LONG = 20_000_000  # cycles of torch.cuda._sleep: work that is still running when the copy is asked for

runtime = ctypes.CDLL("libcudart.so.12")  # as a program finds it that opens the library by name
linked = ctypes.CDLL(None)  # as one that is linked with it: what is preloaded comes first
driver = ctypes.CDLL("libcuda.so.1")


def pageable(value):
    return torch.full((SIZE,), value, dtype=torch.uint8)


def on_device(value=0):
    return torch.full((SIZE,), value, dtype=torch.uint8, device="cuda")


def pinned():
    return torch.zeros(SIZE, dtype=torch.uint8).pin_memory()


def is_wrong(host, value):
    return not bool((host == value).all())


def seen_outside(tensor, value):
    """What an agent that no stream orders finds in the tensor's memory at this moment."""
    found = torch.zeros(tensor.numel(), dtype=torch.uint8)
    driver.gpusim_peek.restype = ctypes.c_bool
    live = driver.gpusim_peek(ctypes.c_uint64(tensor.data_ptr()), ctypes.c_void_p(found.data_ptr()),
                              ctypes.c_size_t(tensor.numel()))
    return live and not is_wrong(found, value)


def upload(to, from_, library):
    """cudaMemcpy: returns when the bytes have arrived."""
    status = library.cudaMemcpy(ctypes.c_void_p(to.data_ptr()), ctypes.c_void_p(from_.data_ptr()),
                                ctypes.c_size_t(SIZE), HOST_TO_DEVICE)
    assert status == 0, status


def run(one_round):
    """one_round(value) tells whether it went wrong; values differ from one round to the next."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    values = [1 + i % 200 for i in range(WARM_UP + count * ROUNDS_OF_A_SEED)]
    wrong = sum(bool(one_round(values.pop())) for _ in range(WARM_UP))
    for seed in range(first, first + count):
        torch.cuda.synchronize()
        driver.gpusim_reseed(ctypes.c_uint64(seed))
        wrong += sum(bool(one_round(values.pop())) for _ in range(ROUNDS_OF_A_SEED))
    print(wrong)
