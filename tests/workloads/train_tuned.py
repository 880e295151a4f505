"""The same training as an expert writes it: pinned batches, copied ahead on a side stream, no wait in the loop."""

import torch
import torch.nn.functional as F

import common


class Prefetcher:
    """Copies the next batch on a stream of its own while the current one is computed."""

    def __init__(self, loader):
        self.batches = iter(loader)
        self.stream = torch.cuda.Stream()
        self.fetch()

    def fetch(self):
        batch = next(self.batches, None)
        with torch.cuda.stream(self.stream):
            self.batch = batch and [tensor.to("cuda", non_blocking=True) for tensor in batch]

    def __iter__(self):
        while self.batch is not None:
            current = torch.cuda.current_stream()
            current.wait_stream(self.stream)
            batch = self.batch
            for tensor in batch:
                tensor.record_stream(current)
            yield batch
            self.fetch()


def main():
    args = common.parse_args(__doc__)
    model = common.make_model(args).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = common.make_loader(args, pin_memory=True)
    clock = common.Clock(args)
    if not args.warmup:
        clock.start()
    for step, (inputs, weights, labels) in enumerate(Prefetcher(loader)):
        optimizer.zero_grad()
        loss = (F.cross_entropy(model(inputs), labels, reduction="none") * weights).mean()
        loss.backward()
        optimizer.step()
        if args.log_every and step % args.log_every == 0:
            print(f"step {step}: loss {loss.item():.4f}")
        clock.step(step, loss)
    clock.stop()
    if args.checkpoint:
        torch.save(model.state_dict(), args.checkpoint)


if __name__ == "__main__":
    main()
