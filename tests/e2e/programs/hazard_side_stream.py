"""A pageable copy, said to be non-blocking, then its bytes are used in streams that nothing orders behind it.

CUDA does not promise that this works, but the driver drains the stream and stages, so it does on every machine.
"""

import torch

import hazards

side, known = torch.cuda.Stream(), torch.cuda.Stream()
target, copy_of_side = hazards.on_device(), hazards.on_device()
seen = hazards.pinned()


def one_round(value):
    torch.cuda._sleep(hazards.LONG)
    target.copy_(hazards.pageable(value), non_blocking=True)
    with torch.cuda.stream(side):
        copy_of_side.copy_(target)
    with torch.cuda.stream(known):
        seen.copy_(target, non_blocking=True)
    new = torch.cuda.Stream()  # was not there when the copy was made
    with torch.cuda.stream(new):
        clone = target.clone()
    for stream in (known, side, new):  # of which none waits for the copy's stream
        stream.synchronize()
    return any(hazards.is_wrong(t.cpu(), value) for t in (seen, copy_of_side, clone))


if __name__ == "__main__":
    hazards.run(one_round)
