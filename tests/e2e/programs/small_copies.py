"""A small CUDA program without torch: pageable copies there and back, then an end of the kind that is asked for.

Arguments: rounds, how to end (exit:N, _exit:N, raise, or signal:N), and optionally a file that gets the file
descriptors that the program was given, and the bytes that arrived.
"""

import ctypes
import os
import sys
import time

SIZE = 1 << 18
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


def main():
    rounds, end = int(sys.argv[1]), sys.argv[2]
    log = os.open(sys.argv[3], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600) if len(sys.argv) > 3 else None
    runtime = ctypes.CDLL("libcudart.so.12")
    device = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(SIZE)) == 0
    source, back = ctypes.create_string_buffer(SIZE), ctypes.create_string_buffer(SIZE)
    for number in range(rounds):
        ctypes.memset(source, number % 256, SIZE)
        assert runtime.cudaMemcpy(device, source, ctypes.c_size_t(SIZE), HOST_TO_DEVICE) == 0
        assert runtime.cudaMemcpy(back, device, ctypes.c_size_t(SIZE), DEVICE_TO_HOST) == 0
        assert back.raw == source.raw
        if log is not None:
            os.write(log, b"%d: %d\n" % (log, number))
        if end == "signal:9":
            time.sleep(0.1)  # so that there is a record before the end
    print("copied", rounds, flush=True)
    kind, _, value = end.partition(":")
    if kind == "raise":
        raise ValueError("the program's own error")
    elif kind == "signal":
        os.kill(os.getpid(), int(value))
    elif kind == "_exit":
        os._exit(int(value))
    sys.exit(int(value))


if __name__ == "__main__":
    main()
