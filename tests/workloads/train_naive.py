"""A training script as people write it: DataLoader with its defaults, blocking copies, loss.item()."""

import torch
import torch.nn.functional as F

import common


def main():
    args = common.parse_args(__doc__)
    model = common.make_model(args).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = common.make_loader(args)
    clock = common.Clock(args)
    if not args.warmup:
        clock.start()
    for step, (inputs, weights, labels) in enumerate(loader):
        inputs = inputs.to("cuda")
        weights = weights.to("cuda")
        labels = labels.to("cuda")
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
