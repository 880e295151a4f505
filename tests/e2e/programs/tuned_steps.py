"""What an expert's program does beside copies: events that measure, record_stream, pinned batches that are freed at once,
memory that goes from one stream to another. Pageable copies lie between. Prints the sum of what it saw, by step.
"""

import torch

STEPS = 60
SIZE = 1 << 20


def main():
    side = torch.cuda.Stream()
    for step in range(STEPS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        with torch.cuda.stream(side):
            pinned = torch.full((SIZE,), step % 100, dtype=torch.uint8).pin_memory()
            ahead = pinned.to("cuda", non_blocking=True)
            del pinned
        torch.cuda._sleep(10**6)
        naive = torch.full((SIZE,), step % 90, dtype=torch.uint8).to("cuda")
        torch.cuda.current_stream().wait_stream(side)
        ahead.record_stream(torch.cuda.current_stream())
        both = torch.cat([ahead, naive])
        del ahead, naive
        end.record()
        end.synchronize()
        seen = both.cpu()
        print(step, int(seen[0]), int(seen[-1]), int(seen[:SIZE].sum()), int(seen[SIZE:].sum()), start.elapsed_time(end) > 0)


if __name__ == "__main__":
    main()
