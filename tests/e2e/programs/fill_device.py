"""Copies from pageable memory, then allocates until the device is full in the way that the argument names, and copies
again. Prints what was free, how many blocks there were, what was left, and how many copies went wrong.
"""

import ctypes
import sys

import torch

STEP = 1 << 20
linked = ctypes.CDLL(None)  # what is preloaded comes first
by_name = ctypes.CDLL("libcuda.so.1")


def copies(target):
    wrong = 0
    for i in range(40):
        torch.cuda._sleep(10**6)
        value = i % 200
        target.copy_(torch.full((4 << 20,), value, dtype=torch.uint8), non_blocking=i % 2 == 0)
        wrong += int(not bool((target.cpu() == value).all()))
    return wrong


def by_torch():
    try:
        return torch.empty(2 * STEP, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return None


def by_call(name, *more):
    handle = ctypes.c_uint64()
    call = getattr(linked if hasattr(linked, name) else by_name, name)
    return handle if call(ctypes.byref(handle), ctypes.c_size_t(2 * STEP), *more) == 0 else None


# CUmemAllocationProp: pinned memory of device 0
ON_DEVICE = (ctypes.c_int * 8)(1, 0, 1, 0)
KINDS = {"torch": by_torch,
         "cudaMalloc": lambda: by_call("cudaMalloc"),
         "cudaMallocAsync": lambda: by_call("cudaMallocAsync", ctypes.c_void_p(0)),
         "cuMemAlloc_v2": lambda: by_call("cuMemAlloc_v2"),
         "cuMemCreate": lambda: by_call("cuMemCreate", ON_DEVICE, ctypes.c_ulonglong(0))}


def main():
    target = torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
    wrong = copies(target)
    free = torch.cuda.mem_get_info()[0]
    blocks = []
    while (block := KINDS[sys.argv[1]]()) is not None:
        blocks.append(block)
    left = torch.cuda.mem_get_info()[0]
    linked.cudaGetLastError()
    print("free", free, "blocks", len(blocks), "left", left, "wrong", wrong + copies(target))


if __name__ == "__main__":
    main()
