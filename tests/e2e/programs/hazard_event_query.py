"""An event before a blocking copy of the same stream: after the copy it has happened, and the stream is idle."""

import torch

import hazards


def one_round(value):
    event = torch.cuda.Event()
    source = hazards.pageable(value)
    torch.cuda._sleep(hazards.LONG)
    event.record()
    target = source.to("cuda")
    happened = event.query() and torch.cuda.current_stream().query()
    return not happened or hazards.is_wrong(target.cpu(), value)


if __name__ == "__main__":
    hazards.run(one_round)
