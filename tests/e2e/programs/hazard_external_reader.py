"""Memory that was exported once is written by a blocking copy and read by an agent that no stream orders.

A network card, another process, a window into the bus: after the copy's return the new bytes are there for it.
"""

import ctypes

import hazards

target, handle = hazards.on_device(), ctypes.create_string_buffer(64)
exported = hazards.runtime.cudaIpcGetMemHandle(handle, ctypes.c_void_p(target.data_ptr()))
assert exported == 0, exported


def one_round(value):
    elsewhere = hazards.pageable(value).to("cuda")  # nobody outside can see this one
    target.copy_(hazards.pageable(value))
    return not hazards.seen_outside(target, value) or hazards.is_wrong(elsewhere.cpu(), value)


if __name__ == "__main__":
    hazards.run(one_round)
