"""Three threads copy tensors of log-uniform sizes to the GPU, each on a stream of its own (the first on the default one),
overwrite or free each source at once, and compare what arrived.

Arguments: tensors, largest size in bytes, most bytes of tensors above 1 MiB, first seed of the clock, seeds. Prints
"tensors bytes differences". Sources begin at odd offsets, every fourth is strided; every second copy is non_blocking;
every third copy finds its stream busy. The target is then read by a copy or a kernel, on the same or on another stream,
which need not wait: a copy of pageable memory has arrived when it returns, but for small ones that are non_blocking.
"""

import ctypes
import math
import sys
import threading

import numpy as np
import torch

THREADS = 3
SMALLEST = 4
SMALL = 64 << 10  # the driver takes up to this along at the call (CUDA Runtime API, "API synchronization behavior")
LARGE = 1 << 20
HASHED = 4096
BUSY_CYCLES = 10**6


class Copies:
    """One thread's memory, streams and figures."""

    def __init__(self, thread, largest, budget):
        self.random = np.random.default_rng(thread)
        self.largest, self.budget = largest, budget
        self.own = torch.cuda.Stream() if thread else torch.cuda.default_stream()
        self.other = torch.cuda.Stream()
        self.base = torch.from_numpy(self.random.integers(0, 256, 2 * largest + 1, dtype=np.uint8))
        self.source = torch.empty(2 * largest + 1, dtype=torch.uint8)
        self.bytes = self.different = self.error = 0

    def size(self):
        size = int(math.exp(self.random.uniform(math.log(SMALLEST), math.log(self.largest))))
        while size > LARGE and size > self.budget:
            size = int(math.exp(self.random.uniform(math.log(SMALLEST), math.log(self.largest))))
        self.budget -= size if size > LARGE else 0
        return size

    def make_source(self, number, at, size):
        """The tensor, what overwrites it, and its values; every fifth has memory of its own, which is freed."""
        span = 2 * size if number % 4 == 1 else size
        step = 2 if number % 4 == 1 else 1
        values = self.base[at:at + span][::step]
        if number % 5 == 2:
            source = values.clone()
            return source, source, values
        whole = self.source[at:at + span]
        source = whole[::step]
        source.copy_(values)
        return source, whole, values

    def read(self, number, target):
        """What the next user of the target finds in it: a kernel's result, or a copy of it."""
        with torch.cuda.stream(self.own if number // 2 % 2 else self.other):
            return (target + 1 if number % 3 == 1 else target.clone()).cpu()

    def is_different(self, number, target, seen, values):
        """The simulated GPU's kernels hash what they read into what they write, of a large output only the beginning: what
        one found is compared with what it finds now."""
        if not torch.equal(target.cpu(), values):
            return True
        if number % 3 == 1:
            return not torch.equal(seen[:HASHED], (target + 1).cpu()[:HASHED])
        return not torch.equal(seen, values)

    def copy(self, number):
        size = self.size()
        at = int(self.random.integers(0, 2 * self.largest - 2 * size + 1)) | 1
        source, whole, values = self.make_source(number, at, size)
        with torch.cuda.stream(self.own):
            if number % 3 == 0:
                torch.cuda._sleep(BUSY_CYCLES)
            if number % 7 == 3:
                target = source.to("cuda", non_blocking=number % 2 == 0)
            else:
                target = torch.empty(size, dtype=torch.uint8, device="cuda")
                target.copy_(source, non_blocking=number % 2 == 0)
        whole.fill_(0xA5)
        del source, whole
        if number % 2 == 0 and size <= SMALL:
            self.other.wait_stream(self.own)
        seen = self.read(number, target)
        self.own.synchronize()
        self.different += self.is_different(number, target, seen, values)
        self.bytes += size

    def run(self, numbers):
        try:
            for number in numbers:
                self.copy(number)
        except BaseException:
            self.error = 1
            raise


def main():
    count, largest, budget, first, seeds = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    torch.cuda.init()
    simulator = ctypes.CDLL("libcuda.so.1")
    all_copies = [Copies(thread, largest, budget // THREADS) for thread in range(THREADS)]
    share = count // seeds // THREADS
    for round_ in range(seeds):
        torch.cuda.synchronize()
        simulator.gpusim_reseed(ctypes.c_uint64(first + round_))
        threads = [threading.Thread(target=copies.run, args=[range(round_ * share, (round_ + 1) * share)])
                   for copies in all_copies]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    if any(copies.error for copies in all_copies):
        sys.exit(1)
    print(share * seeds * THREADS, sum(c.bytes for c in all_copies), sum(c.different for c in all_copies))


if __name__ == "__main__":
    main()
