"""Trains the naive loop, or one that replays a CUDA graph, anew under one scheduler seed after the other and prints
every loss: "seed step loss".

Arguments: model, number of seeds, workers of the DataLoader. One process, since importing torch takes longer than
all the training.
"""

import ctypes
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "workloads"))
import common  # noqa: E402

SMALL = {"mlp": ["--batch=256", "--features=256", "--hidden=64"],
         "graph": ["--batch=256", "--features=256", "--hidden=64"],
         "resnet18": ["--model=resnet18", "--batch=8", "--image-size=32"]}


def train(args):
    model = common.make_model(args).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, weights, labels in common.make_loader(args):
        inputs = inputs.to("cuda")
        weights = weights.to("cuda")
        labels = labels.to("cuda")
        optimizer.zero_grad()
        loss = (torch.nn.functional.cross_entropy(model(inputs), labels, reduction="none") * weights).mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


def train_graph(args):
    """The step is captured once; each batch is copied from pageable memory into the graph's inputs."""
    model = common.make_model(args).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(common.make_loader(args))
    first = next(batches)
    inputs, weights, labels = static = [tensor.to("cuda") for tensor in first]

    def step():
        optimizer.zero_grad()
        loss = (torch.nn.functional.cross_entropy(model(inputs), labels, reduction="none") * weights).mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield step().item()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for batch in batches:
        for to, from_ in zip(static, batch):
            to.copy_(from_)
        graph.replay()
        yield loss.item()


def main():
    model, seeds, workers = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    sys.argv[1:] = [*SMALL[model], "--steps=3", "--warmup=1", f"--workers={workers}"]
    args = common.parse_args(__doc__)
    torch.cuda.init()
    simulator = ctypes.CDLL("libcuda.so.1")
    for seed in range(1, seeds + 1):
        torch.cuda.synchronize()
        simulator.gpusim_reseed(ctypes.c_uint64(seed))
        for step, loss in enumerate((train_graph if model == "graph" else train)(args)):
            print(seed, step, repr(loss))


if __name__ == "__main__":
    main()
