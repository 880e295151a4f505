"""Copies tensors of log-uniform sizes to the GPU, overwrites each source at once, and compares what arrived.

Arguments: number of tensors, largest size in bytes, seed. Prints "copies bytes differences". Every tenth copy goes
to a side stream, every tenth finds its stream busy.
"""

import math
import sys

import numpy as np
import torch


def main():
    count, largest, seed = map(int, sys.argv[1:])
    random = np.random.default_rng(seed)
    side = torch.cuda.Stream()
    base = torch.from_numpy(random.integers(0, 256, largest, dtype=np.uint8))
    source = torch.empty(largest, dtype=torch.uint8)
    target = torch.empty(largest, dtype=torch.uint8, device="cuda")
    back = torch.empty(largest, dtype=torch.uint8)
    total = different = 0
    for number in range(count):
        size = int(math.exp(random.uniform(0, math.log(largest))))
        at = int(random.integers(0, largest - size + 1))
        source[:size].copy_(base[at:at + size])
        stream = side if number % 10 == 3 else torch.cuda.current_stream()
        with torch.cuda.stream(stream):
            if number % 10 == 7:
                torch.cuda._sleep(10**6)
            target[:size].copy_(source[:size], non_blocking=number % 2 == 0)
            source[:size].fill_(0xA5)
            back[:size].copy_(target[:size])
        stream.synchronize()
        different += int(not torch.equal(back[:size], base[at:at + size]))
        total += size
    print(count, total, different)


if __name__ == "__main__":
    main()
