"""Pageable copies by the CUDA runtime into busy streams, without torch; says which calls failed and what arrived wrong.

Prints one line for each call that failed: its place and its error; then "wrong N", the copies that said they succeeded
and did not arrive. Nothing of it depends on the clock's temper.
"""

import ctypes

ROUNDS = 40
BYTES = 300_000  # staged: above 64 KiB
TO_DEVICE, TO_HOST = 1, 2

runtime = ctypes.CDLL(None)  # as a program that is linked with it: what is preloaded comes first


def call(place, name, *args):
    """Did it succeed? Sizes and addresses are passed as 64 bits."""
    status = getattr(runtime, name)(*[ctypes.c_uint64(a) if isinstance(a, int) else a for a in args])
    if status:
        print(place, name, status, flush=True)
    runtime.cudaGetLastError()
    return status == 0


def one_copy(number, target, source, back, stream):
    """False: it said that it succeeded, and did not arrive."""
    value = 1 + number % 200
    ctypes.memset(source, value, BYTES)
    fine = call(number, "cudaMemsetAsync", target, 0xEE, BYTES, stream)
    fine &= call(number, "cudaMemcpyAsync", target, source, BYTES, TO_DEVICE, stream)
    if number % 2:
        fine &= call(number, "cudaStreamSynchronize", stream)
    ctypes.memset(source, 0x55, BYTES)
    if number % 3 == 0:
        fine &= call(number, "cudaStreamSynchronize", stream)
    fine &= call(number, "cudaMemcpyAsync", back, target, BYTES, TO_HOST, stream)
    fine &= call(number, "cudaStreamSynchronize", stream)
    return not fine or back.raw == bytes([value]) * BYTES


def main():
    target, streams = ctypes.c_uint64(), [ctypes.c_uint64(), ctypes.c_uint64()]
    source, back = ctypes.create_string_buffer(BYTES), ctypes.create_string_buffer(BYTES)
    call("start", "cudaMalloc", ctypes.byref(target), BYTES)
    for stream in streams:
        call("start", "cudaStreamCreate", ctypes.byref(stream))
    wrong = sum(not one_copy(i, target, source, back, streams[i // 4 % 2]) for i in range(ROUNDS))
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    call("end", "cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    call("end", "cudaDeviceSynchronize")
    for stream in streams:
        call("end", "cudaStreamDestroy", stream)
    call("end", "cudaFree", target)
    print("wrong", wrong, "free", free.value)


if __name__ == "__main__":
    main()
