"""The stand-in driver through ctypes: what the scripts of test_driver.py are written in.

`cu.MemAlloc_v2(...)` calls cuMemAlloc_v2 and raises CudaError on anything but success; `code(...)`
gives the result's number instead. Device addresses and handles are plain ints.
"""

import ctypes
import mmap
import os

LIBRARY = os.environ["GPUSIM_TEST_LIBRARY"]
lib = ctypes.CDLL(LIBRARY)

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, DEINITIALIZED = 1, 2, 3, 4
INVALID_CONTEXT, INVALID_HANDLE, NOT_READY, ILLEGAL_ADDRESS = 201, 400, 600, 700
MAP_FAILED = 205
CONTEXT_IS_DESTROYED, ALREADY_REGISTERED, NOT_REGISTERED = 709, 712, 713
NOT_PERMITTED, NOT_SUPPORTED = 800, 801
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, CAPTURE_MERGE, CAPTURE_UNMATCHED = 900, 901, 902, 903
CAPTURE_UNJOINED, CAPTURE_ISOLATION, CAPTURE_IMPLICIT, CAPTURED_EVENT = 904, 905, 906, 907
WRONG_THREAD = 908
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NON_BLOCKING = 1
LEGACY, PER_THREAD = 1, 2


class CudaError(Exception):
    pass


def pack(value):
    return ctypes.c_uint64(value) if isinstance(value, int) else value


def code(name, *args):
    return getattr(lib, "cu" + name)(*map(pack, args))


class Checked:
    def __getattr__(self, name):
        def call(*args):
            result = code(name, *args)
            if result:
                raise CudaError(f"cu{name}: {result}")
        return call


cu = Checked()


def get(name, *args, kind=ctypes.c_uint64):
    """Calls a function whose first argument is the place for its answer."""
    out = kind(0)
    getattr(cu, name)(ctypes.byref(out), *args)
    return out.value


def start(device=0):
    cu.Init(0)
    context = get("DevicePrimaryCtxRetain", device)
    cu.CtxSetCurrent(context)
    return context


def alloc(size):
    return get("MemAlloc_v2", size)


def stream(flags=NON_BLOCKING):
    return get("StreamCreate", flags)


def event(flags=0):
    return get("EventCreate", flags)


class Host:
    """Host memory as an address and bytes."""

    def __init__(self, size, value=0, pinned=False):
        self.size = size
        if pinned:
            self.address = get("MemHostAlloc", size, 0)
        else:
            self.map = mmap.mmap(-1, size)
            self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.fill(value)

    def fill(self, value):
        ctypes.memset(self.address, value, self.size)

    def bytes(self):
        return ctypes.string_at(self.address, self.size)

    def values(self):
        """The different bytes it holds."""
        return set(self.bytes())


def pinned(size, value=0):
    return Host(size, value, pinned=True)


def read(address, size):
    """Device memory after everything is done."""
    cu.CtxSynchronize()
    host = pinned(size)
    cu.MemcpyDtoH_v2(host.address, address, size)
    data = host.bytes()
    cu.MemFreeHost(host.address)
    return data


if hasattr(lib, "gpusim_function"):  # not on a real driver
    lib.gpusim_function.restype = ctypes.c_void_p
    lib.gpusim_now_ns.restype = ctypes.c_uint64


def launch(name, params, on):
    function = lib.gpusim_function(name)
    array = (ctypes.c_void_p * len(params))(*(ctypes.addressof(p) for p in params))
    return code("LaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, on, array, None)


def spin(ns, on):
    """Holds a stream's compute engine for a known time (torch.cuda._sleep's kernel)."""
    result = launch(b"_Z11spin_kernell", [ctypes.c_int64(ns)], on)
    assert result == 0, result


class Usage(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("first_ns", "last_ns", "compute_ns", "h2d_ns", "d2h_ns", "any_ns")]


def usage(device=0):
    out = Usage()
    lib.gpusim_usage(device, ctypes.byref(out))
    return out


def begin(on, mode=GLOBAL):
    return code("StreamBeginCapture_v2", on, mode)


def end(on):
    """Ends a capture: (result, graph)."""
    graph = ctypes.c_uint64(0)
    return code("StreamEndCapture", on, ctypes.byref(graph)), graph.value


def status(on):
    """0 not capturing, 1 active, 2 broken; else the error."""
    out = ctypes.c_int(-1)
    return code("StreamIsCapturing", on, ctypes.byref(out)) or out.value
