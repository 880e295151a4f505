"""Physical device memory mapped at an address of its own (cuMemCreate, cuMemMap), as the library stages copies in."""

import ctypes

PINNED, DEVICE, RECOMMENDED, READ_WRITE = 1, 1, 1, 3


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp of cuda.h."""
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location),
                ("win32", ctypes.c_void_p), ("flags", ctypes.c_uint8 * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Mapping:
    """with Mapping(device, size) as mapping: mapping.address, mapping.size (rounded up)."""

    def __init__(self, device, size):
        self.cu = device.cu
        self.what = Properties(PINNED, 0, Location(DEVICE, device.ordinal))
        unit = self.cu.get("cuMemGetAllocationGranularity", ctypes.byref(self.what), RECOMMENDED)
        self.size = (size + unit - 1) // unit * unit

    def free_bytes(self):
        free, total = ctypes.c_uint64(), ctypes.c_uint64()
        self.cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value

    def __enter__(self):
        self.handle = self.cu.get("cuMemCreate", self.size, ctypes.byref(self.what), 0)
        self.address = self.cu.get("cuMemAddressReserve", self.size, 0, 0, 0)
        self.cu.cuMemMap(self.address, self.size, 0, self.handle, 0)
        access = Access(self.what.location, READ_WRITE)
        self.cu.cuMemSetAccess(self.address, self.size, ctypes.byref(access), 1)
        return self

    def __exit__(self, *_):
        self.cu.cuMemUnmap(self.address, self.size)
        self.cu.cuMemAddressFree(self.address, self.size)
        self.cu.cuMemRelease(self.handle)
