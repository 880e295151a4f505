"""What the benchmarks share: how repeated measurements are put together, verdicts, the environment."""

import ctypes
import os
import statistics
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKLOADS = os.path.join(ROOT, "tests", "workloads")
GPUSIM = os.path.join(ROOT, "scripts", "gpusim")


def library():
    """The library that is measured: GPUBOOST_LIBRARY, else the one built in this clone."""
    path = os.path.abspath(os.environ.get("GPUBOOST_LIBRARY") or os.path.join(ROOT, "build", "libgpuboost.so"))
    if not os.path.isfile(path):
        raise SystemExit(f"bench: {path} is not there; build it with: make")
    return path


def environment(**settings):
    """os.environ without anything of gpuboost, the simulated GPU or another preloaded library; plus `settings`."""
    ours = ("GPUBOOST_", "GPUSIM_", "LD_PRELOAD", "LD_LIBRARY_PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    if "GPUSIM_BUILD" in os.environ:
        kept["GPUSIM_BUILD"] = os.environ["GPUSIM_BUILD"]
    return {**kept, **settings}


def with_library(out, policy="safe", **settings):
    """The same for a program under the library; its record goes to the folder `out`."""
    return environment(LD_PRELOAD=library(), GPUBOOST_OUT=os.path.join(out, "run-%p"), GPUBOOST_POLICY=policy,
                       **settings)


def spread(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def paired(one, other):
    if len(one) != len(other):
        raise ValueError(f"{len(one)} and {len(other)} measurements are no pairs")
    return list(zip(one, other))


def added(with_it, without):
    """What comes on top, of two equally long lists whose equal places were measured one after the other.

    Other load only ever makes a run slower, so the difference of the minima is the best estimate; the smallest
    difference of a pair is not: it is the pair whose plain run was disturbed most.
    """
    pairs = [a - b for a, b in paired(with_it, without)]
    return {"of_minima": min(with_it) - min(without), "median": statistics.median(pairs), "max": max(pairs)}


def ratio(new, old):
    """How many times as large, of two such lists: the ratio of the medians, and those of the pairs."""
    pairs = [a / b for a, b in paired(new, old)]
    return {"of_medians": statistics.median(new) / statistics.median(old), "pairs": spread(pairs)}


def at_most(value, budget):
    return "-" if budget is None else "ok" if value <= budget else "OVER"


def at_least(value, target):
    return "-" if target is None else "ok" if value >= target else "BELOW"


class HostCopy:
    """How fast one processor copies large batches, in turn, into a small ring: GB/s. A staged copy can be no faster."""

    BATCHES, BATCH_BYTES, RING_BYTES, PIECE_BYTES = 4, 64 << 20, 16 << 20, 4 << 20

    def __init__(self):
        self.batches = [ctypes.create_string_buffer(self.BATCH_BYTES) for _ in range(self.BATCHES)]
        self.ring = ctypes.create_string_buffer(self.RING_BYTES)
        for memory in (*self.batches, self.ring):
            ctypes.memset(memory, 1, len(memory))  # every page is there

    def gb_per_s(self):
        start_ns = time.perf_counter_ns()
        ring = ctypes.addressof(self.ring)
        for batch in map(ctypes.addressof, self.batches):
            for at in range(0, self.BATCH_BYTES, self.PIECE_BYTES):
                ctypes.memmove(ring + at % self.RING_BYTES, batch + at, self.PIECE_BYTES)
        return self.BATCHES * self.BATCH_BYTES / (time.perf_counter_ns() - start_ns)
