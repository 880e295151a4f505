"""A tensor is given to another process once, then each round a blocking copy changes it and a pipe says so.

Shared weights are kept up to date like this; the reader waits for nothing but the pipe.
"""

import torch

import hazards


def read(pipe, queue):
    shared = queue.get()
    while (value := pipe.recv()) is not None:
        pipe.send(hazards.is_wrong(shared.cpu(), value))


def main():
    processes = torch.multiprocessing.get_context("spawn")
    here, there = processes.Pipe()
    queue = processes.SimpleQueue()
    reader = processes.Process(target=read, args=(there, queue), daemon=True)
    reader.start()
    shared = hazards.on_device()
    queue.put(shared)

    def one_round(value):
        elsewhere = hazards.pageable(value).to("cuda")
        shared.copy_(hazards.pageable(value))
        here.send(value)
        return here.recv() or hazards.is_wrong(elsewhere.cpu(), value)

    hazards.run(one_round)
    here.send(None)
    reader.join()


if __name__ == "__main__":
    main()
