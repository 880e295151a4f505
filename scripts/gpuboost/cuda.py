"""A few calls of the CUDA driver through ctypes, and a way to hold a stream: what the probes are written in.

Handles and device addresses are plain ints. A call that does not succeed raises CudaError. What a Device makes is
freed by its clean(); nothing may be made while a stream is held, since an allocation may wait for the device.
"""

import ctypes
import threading

NOT_READY = 600
NON_BLOCKING, NO_TIMING, PORTABLE = 1, 2, 1
CAPTURE_GLOBAL, CAPTURE_RELAXED = 0, 2
STREAM_MEM_OPS, UNIFIED_ADDRESSING, HOST_PAGE_TABLES, VIRTUAL_MEMORY = 92, 41, 100, 102  # CU_DEVICE_ATTRIBUTE_...
STREAM_MEM_OPS_12 = 122  # CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS: the _v2 calls
WAIT_GREATER_OR_EQUAL = 0
FUSE_S = 3.0


class CudaError(Exception):
    """A call of the driver that was not answered with success."""


class Driver:
    """cu = Driver(); cu.cuInit(0). Ints are handed over as 64 bits, which suits every integer of the interface."""

    def __init__(self, name="libcuda.so.1"):
        self.library = ctypes.CDLL(name)

    def result(self, name, *arguments):
        """What the call answered, as a number."""
        try:
            function = getattr(self.library, name)
        except AttributeError:
            raise CudaError(f"this driver has no {name}") from None
        return function(*(ctypes.c_uint64(value) if isinstance(value, int) else value for value in arguments))

    def __getattr__(self, name):
        def call(*arguments):
            result = self.result(name, *arguments)
            if result:
                raise CudaError(f"{name} answered {self.error_name(result)}")
        return call

    def error_name(self, result):
        text = ctypes.c_char_p()
        known = self.result("cuGetErrorName", result, ctypes.byref(text)) == 0 and text.value
        return text.value.decode() if known else str(result)

    def get(self, name, *arguments, kind=ctypes.c_uint64):
        """A call whose first argument is the place for its answer."""
        out = kind(0)
        getattr(self, name)(ctypes.byref(out), *arguments)
        return out.value

    def attribute(self, number, ordinal):
        return self.get("cuDeviceGetAttribute", number, ordinal, kind=ctypes.c_int)

    def name_of(self, ordinal):
        name = ctypes.create_string_buffer(96)  # as long as in preload/gpu/proven.c
        self.cuDeviceGetName(name, len(name), ordinal)
        return name.value


class Device:
    """A device and its primary context."""

    READ_BYTES = 16 << 20

    def __init__(self, cu, ordinal):
        self.cu, self.ordinal, self.undo = cu, ordinal, []
        self.context = cu.get("cuDevicePrimaryCtxRetain", ordinal)
        self.use()
        self.reader = self.stream()
        self.word, self.read_buffer = self.pinned(64), self.pinned(self.READ_BYTES)
        self.kept = len(self.undo)

    def use(self):
        self.cu.cuCtxSetCurrent(self.context)

    def _made(self, handle, undo):
        self.undo.append((undo, handle))
        return handle

    def stream(self, flags=NON_BLOCKING):
        return self._made(self.cu.get("cuStreamCreate", flags), "cuStreamDestroy_v2")

    def event(self):
        return self._made(self.cu.get("cuEventCreate", NO_TIMING), "cuEventDestroy_v2")

    def memory(self, size):
        return self._made(self.cu.get("cuMemAlloc_v2", size), "cuMemFree_v2")

    def pinned(self, size, data=b""):
        address = self._made(self.cu.get("cuMemHostAlloc", size, PORTABLE), "cuMemFreeHost")
        ctypes.memmove(address, data, len(data))
        return address

    def clean(self, everything=False):
        self.use()
        self.cu.cuCtxSynchronize()
        while len(self.undo) > (0 if everything else self.kept):
            undo, handle = self.undo.pop()
            getattr(self.cu, undo)(handle)

    def read(self, address, size):
        """Device memory as it is now: by a stream that waits for no other."""
        self.cu.cuMemcpyDtoHAsync_v2(self.read_buffer, address, size, self.reader)
        self.cu.cuStreamSynchronize(self.reader)
        return ctypes.string_at(self.read_buffer, size)

    def is_done(self, event):
        return self._answer("cuEventQuery", event)

    def is_idle(self, stream):
        return self._answer("cuStreamQuery", stream)

    def _answer(self, name, handle):
        result = self.cu.result(name, handle)
        if result not in (0, NOT_READY):
            raise CudaError(f"{name} answered {self.cu.error_name(result)}")
        return result == 0

    def waits_for_values(self):
        """Can a stream wait until a word in memory has a value?"""
        return hasattr(self.cu.library, "cuStreamWaitValue32_v2") and (
            self.cu.attribute(STREAM_MEM_OPS, self.ordinal) or self.cu.attribute(STREAM_MEM_OPS_12, self.ordinal))


class Hold:
    """with Hold(device, stream) as hold: the stream does not go on before the end, hold.let() or the fuse.

    The fuse lets it go after a while, since a call that waits for the stream would never return otherwise:
    hold.blown then says that something did."""

    def __init__(self, device, stream, fuse_s=FUSE_S):
        self.device, self.stream, self.blown, self.lock = device, stream, False, threading.Lock()
        self.go = threading.Event()
        self.fuse = threading.Timer(fuse_s, self.blow)
        self.fuse.daemon = True

    @staticmethod
    def means(device):
        return "cuStreamWaitValue32" if device.waits_for_values() else "a host function"

    def __enter__(self):
        cu, word = self.device.cu, self.device.word
        if self.device.waits_for_values():
            ctypes.c_uint32.from_address(word).value = 0
            address = cu.get("cuMemHostGetDevicePointer_v2", word, 0)
            cu.cuStreamWaitValue32_v2(self.stream, address, 1, WAIT_GREATER_OR_EQUAL)
        else:
            self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: self.go.wait())
            cu.cuLaunchHostFunc(self.stream, self.function, None)
        self.fuse.start()
        return self

    def __exit__(self, *_):
        self.let()
        self.device.cu.result("cuStreamSynchronize", self.stream)  # the function must outlive its call

    def blow(self):
        with self.lock:
            self.blown = not self.go.is_set()
            self._release()

    def let(self):
        """Lets the stream go on."""
        with self.lock:
            self.fuse.cancel()
            self._release()

    def _release(self):
        self.go.set()
        ctypes.c_uint32.from_address(self.device.word).value = 1
