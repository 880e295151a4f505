"""Small pageable copies into a stream that is held, and that the same thread lets go only afterwards.

The driver takes the bytes along at the call and waits for nothing; who waits for the stream here waits for ever.
Arguments: what holds it (function: of the host, value: in memory), how many copies, the largest in bytes, seconds until
a hang is one. Prints how many arrived wrong.
"""

import ctypes
import faulthandler
import sys
import threading

import torch

import hazards

free_to_go = threading.Event()
flag = torch.zeros(1, dtype=torch.int32).pin_memory()


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def hold(_):
    free_to_go.wait()


def hold_stream(kind):
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    if kind == "function":
        status = hazards.runtime.cudaLaunchHostFunc(stream, hold, None)
    else:
        status = hazards.driver.cuStreamWaitValue32_v2(stream, ctypes.c_uint64(flag.data_ptr()), 1, 0)
    assert status == 0, status


def let_go():
    free_to_go.set()
    flag[0] = 1


def sizes(count, largest):
    """1 B to the largest, both ends and powers of two among them."""
    some = [1, largest, *(1 << n for n in range(17)), 3, 1000, 65535]
    return [min(some[i % len(some)], largest) for i in range(count)]


def main():
    kind, (count, largest, seconds) = sys.argv[1], map(int, sys.argv[2:])
    targets = [torch.zeros(size, dtype=torch.uint8, device="cuda") for size in sizes(count, largest)]
    for _ in range(hazards.WARM_UP):
        hazards.pageable(1).to("cuda")
    torch.cuda.synchronize()

    faulthandler.dump_traceback_later(seconds, exit=True)
    hold_stream(kind)
    for i, target in enumerate(targets):
        target.copy_(torch.full((target.numel(),), i % 251, dtype=torch.uint8), non_blocking=True)
    let_go()
    torch.cuda.synchronize()
    faulthandler.cancel_dump_traceback_later()

    print(sum(int(not bool((target.cpu() == i % 251).all())) for i, target in enumerate(targets)))


if __name__ == "__main__":
    main()
