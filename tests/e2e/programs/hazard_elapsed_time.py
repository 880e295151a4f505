"""Two events around work, a blocking copy, then the time between them: the copy has waited for both.

torch raises "Both events must be completed" when the wait is missing.
"""

import torch

import hazards


def one_round(value):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    source = hazards.pageable(value)
    begin.record()
    torch.cuda._sleep(hazards.LONG)
    end.record()
    target = source.to("cuda")
    try:
        too_short = begin.elapsed_time(end) * 1e6 < hazards.LONG * 0.99  # a cycle is 1 ns
    except RuntimeError as error:
        assert "completed" in str(error), error
        return True
    return too_short or hazards.is_wrong(target.cpu(), value)


if __name__ == "__main__":
    hazards.run(one_round)
