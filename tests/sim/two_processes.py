"""Two processes on the stand-in driver: the scripts of test_driver_shared.py import this; run, it is the other one.

ask(line) has the other process evaluate a line of Python, with driver_api and what is below at hand.
"""

import subprocess
import sys

from driver_api import *

Handle = type("Handle", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_char * 64)]})
N = 1 << 20
kept = []


def keep(value):
    kept.append(value)


def handle_of(call, what):
    """IpcGetMemHandle or IpcGetEventHandle, as text."""
    out = ctypes.create_string_buffer(64)
    getattr(cu, call)(out, what)
    return out.raw.hex()


def open_with(call, handle, *flags):
    out = ctypes.c_uint64()
    return code(call, ctypes.byref(out), Handle.from_buffer_copy(bytes.fromhex(handle)), *flags), out.value


def opened(handle):
    return open_with("IpcOpenMemHandle_v2", handle, 1)


def opened_event(handle):
    return open_with("IpcOpenEventHandle", handle)


def peek(address, size):
    """What another agent sees there now; None where there is no memory."""
    out = ctypes.create_string_buffer(size)
    lib.gpusim_peek.restype = ctypes.c_bool
    return out.raw if lib.gpusim_peek(ctypes.c_uint64(address), out, ctypes.c_size_t(size)) else None


class Other:
    """Ends with this process, whose pipe it reads."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        return eval(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.wait()


def serve():
    for line in sys.stdin:
        print(repr(eval(line)), flush=True)


start()
if __name__ == "__main__":
    serve()
