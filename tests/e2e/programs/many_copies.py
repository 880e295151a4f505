"""Copies of mixed sizes and kinds, many of them, without torch. Arguments: how many. Prints how much the process's memory
has grown between the first tenth and the end, in bytes.
"""

import ctypes
import os
import sys

MOST = 256 << 10
SIZES = [4, 4096, 65536, 65537, 100_000, MOST]
TO_DEVICE, TO_HOST = 1, 2
runtime = ctypes.CDLL(None)  # as a program that is linked with it: what is preloaded comes first


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    count = int(sys.argv[1])
    target, pinned, streams = ctypes.c_void_p(), ctypes.c_void_p(), [ctypes.c_void_p() for _ in range(3)]
    assert runtime.cudaMalloc(ctypes.byref(target), ctypes.c_size_t(MOST)) == 0
    assert runtime.cudaMallocHost(ctypes.byref(pinned), ctypes.c_size_t(MOST)) == 0
    for stream in streams:
        assert runtime.cudaStreamCreate(ctypes.byref(stream)) == 0
    pageable = ctypes.create_string_buffer(b"x" * MOST, MOST)
    sizes = [ctypes.c_size_t(size) for size in SIZES]
    before = 0
    for i in range(count):
        host = pinned if i % 5 == 4 else pageable
        size, stream = sizes[i % len(sizes)], streams[i // 7 % 3]
        if i % 11 == 10:
            status = runtime.cudaMemcpyAsync(host, target, size, TO_HOST, stream)
        else:
            status = runtime.cudaMemcpyAsync(target, host, size, TO_DEVICE, stream)
        assert status == 0
        if i % 3 == 0:
            assert runtime.cudaStreamSynchronize(stream) == 0
        if i == count // 10:
            before = resident_bytes()
    print(resident_bytes() - before)


if __name__ == "__main__":
    main()
