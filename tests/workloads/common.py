"""What the two training scripts share: arguments, model, data, and the clock around the loop.

The scripts differ only in how they feed the GPU, so that their losses are equal and their speeds
can be compared. Nothing here knows whether the GPU is real.
"""

import argparse
import json
import time

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset


def parse_args(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=["mlp", "resnet18", "resnet50"], default="mlp")
    parser.add_argument("--batch", type=int, default=256, help="samples per step")
    parser.add_argument("--features", type=int, default=1024, help="width of the MLP's input")
    parser.add_argument("--hidden", type=int, default=1024, help="width of the MLP's hidden layer")
    parser.add_argument("--image-size", type=int, default=64, help="side of the ResNets' images")
    parser.add_argument("--steps", type=int, default=50, help="timed steps")
    parser.add_argument("--warmup", type=int, default=10, help="steps before the clock starts")
    parser.add_argument("--log-every", type=int, default=10, help="read the loss every N steps; 0: never")
    parser.add_argument("--workers", type=int, default=0, help="processes of the DataLoader")
    parser.add_argument("--prebatched", action="store_true", help="the dataset holds whole batches")
    parser.add_argument("--loader-ms", type=float, default=0.0, help="time to make one batch (a slow loader)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="write the loss of every step to this file")
    parser.add_argument("--checkpoint", help="save the model to this file at the end")
    parser.add_argument("--json", help="write the measured speed to this file")
    return parser.parse_args()


def make_model(args):
    torch.manual_seed(args.seed)
    if args.model == "mlp":
        return torch.nn.Sequential(
            torch.nn.Linear(args.features, args.hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(args.hidden, 10),
        )
    import torchvision

    return getattr(torchvision.models, args.model)(num_classes=10)


class Batches(Dataset):
    """Whole batches that lie in memory, as a preprocessed data set does; each is used again and again."""

    DISTINCT = 4

    def __init__(self, args, generator):
        self.length = args.steps + args.warmup
        self.delay_s = args.loader_ms / 1e3
        self.items = [make_samples(args, args.batch, generator) for _ in range(self.DISTINCT)]

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        time.sleep(self.delay_s)
        return self.items[index % self.DISTINCT]


class SlowSamples(TensorDataset):
    """Samples that take a while to decode."""

    def __init__(self, delay_s, *tensors):
        super().__init__(*tensors)
        self.delay_s = delay_s

    def __getitem__(self, index):
        time.sleep(self.delay_s)
        return super().__getitem__(index)


def make_samples(args, count, generator):
    """Inputs, weight of each sample, labels."""
    shape = (args.features,) if args.model == "mlp" else (3, args.image_size, args.image_size)
    inputs = torch.randn(count, *shape, generator=generator)
    weights = torch.rand(count, generator=generator)
    labels = torch.randint(0, 10, (count,), generator=generator)
    return inputs, weights, labels


def make_loader(args, **how):
    """DataLoader with its defaults, but for the batch size, the workers and what `how` says."""
    generator = torch.Generator().manual_seed(args.seed)
    if args.prebatched:
        return DataLoader(Batches(args, generator), batch_size=None, num_workers=args.workers, **how)
    samples = make_samples(args, args.batch * (args.steps + args.warmup), generator)
    dataset = SlowSamples(args.loader_ms / 1e3 / args.batch, *samples) if args.loader_ms else TensorDataset(*samples)
    return DataLoader(dataset, batch_size=args.batch, num_workers=args.workers, **how)


class Clock:
    """Times the steps behind the warm-up and writes what --json and --losses ask for."""

    def __init__(self, args):
        self.args = args
        self.losses = []
        self.start_ns = None

    def step(self, number, loss):
        self.losses.append(loss.detach())
        if number + 1 == self.args.warmup:
            self.start()

    def start(self):
        torch.cuda.synchronize()
        self.start_ns = time.monotonic_ns()

    def stop(self):
        torch.cuda.synchronize()
        end_ns = time.monotonic_ns()
        steps_per_s = self.args.steps / ((end_ns - self.start_ns) / 1e9)
        print(f"{self.args.steps} steps, {steps_per_s:.2f} steps/s")
        if self.args.json:
            with open(self.args.json, "w") as file:
                json.dump({"steps_per_s": steps_per_s, "steps": self.args.steps,
                           "start_monotonic_ns": self.start_ns, "end_monotonic_ns": end_ns}, file)
        if self.args.losses:
            with open(self.args.losses, "w") as file:
                file.writelines(f"{loss.item()!r}\n" for loss in self.losses)
