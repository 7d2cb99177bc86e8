"""What methods cost, as ratios to the base network: the same batch, in the same run, turn about.

    python benchmarks/cost.py [--repeats 9] [--batch 128]

A repeat times every contestant once, in a new random order, so that a busy moment of the machine hits all alike; the
ratio of each repeat is to the base of that repeat. Printed: the median ratio and the middle half of the ratios.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

import pluribus
from pluribus import MIMO, Inner, Variance
from pluribus.models import lenet5, resnet

Work = Callable[[], object]


def training_step(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Work:
    """Forward, backward, and SGD with momentum and weight decay, of a plain network or an ensemble."""
    ensemble = isinstance(net, pluribus.Ensemble)
    groups = net.param_groups() if ensemble else net.parameters()
    optimizer = torch.optim.SGD(groups, lr=0.01, momentum=0.9, weight_decay=5e-4)
    net.train()

    def step() -> None:
        loss = net.loss(x, y) if ensemble else F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def forward_pass(net: nn.Module, x: torch.Tensor) -> Work:
    net.eval()

    def run() -> None:
        with torch.inference_mode():
            net(x)

    return run


class Naive(nn.Module):
    """An inner ensemble as the paper's code has it: m layers are run, then averaged."""

    def __init__(self, layer: nn.Conv2d, copies: int) -> None:
        super().__init__()
        kind = {"stride": layer.stride, "padding": layer.padding, "bias": layer.bias is not None}
        make = lambda: nn.Conv2d(layer.in_channels, layer.out_channels, layer.kernel_size, **kind)  # noqa: E731
        self.layers = nn.ModuleList([make() for _ in range(copies)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([layer(x) for layer in self.layers]).mean(0)


def naive(net: nn.Module, copies: int) -> nn.Module:
    for name, child in net.named_children():
        if isinstance(child, nn.Conv2d):
            setattr(net, name, Naive(child, copies))
        else:
            naive(child, copies)
    return net


def race(contestants: dict[str, Work], repeats: int) -> dict[str, list[float]]:
    """Seconds of every contestant in every repeat."""
    for work in contestants.values():  # warm up
        work(), work()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name in random.sample(list(contestants), len(contestants)):
            start = time.perf_counter()
            contestants[name]()
            times[name].append(time.perf_counter() - start)
    return times


def report(title: str, times: dict[str, list[float]], targets: dict[str, float]) -> bool:
    base = times["base"]
    print(f"\n{title}   (base: {1000 * statistics.median(base):.1f} ms)")
    met = True
    for name, seconds in times.items():
        ratios = sorted(s / b for s, b in zip(seconds, base, strict=True))
        low, median, high = (ratios[round(q * (len(ratios) - 1))] for q in (0.25, 0.5, 0.75))
        verdict = ""
        if name in targets:
            met &= median <= targets[name]
            verdict = f"target {targets[name]:.2f}x  {'met' if median <= targets[name] else 'MISSED'}"
        print(f"  {name:<34}{median:6.2f}x   ({low:.2f} to {high:.2f})   {verdict}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="how often each is timed (default 15)")
    parser.add_argument("--batch", type=int, default=128, help="rows in a batch (default 128)")
    options = parser.parse_args()
    if options.repeats < 1 or options.batch < 1:
        parser.error("--repeats and --batch must be at least 1")
    torch.manual_seed(0)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, batches of {options.batch}, median of {options.repeats}"
    )

    x, y = torch.randn(options.batch, 3, 32, 32), torch.randint(0, 10, (options.batch,))
    net = resnet(20)
    steps = {"base": training_step(resnet(20), x, y)}
    for copies in (4, 16):
        steps[f"Inner(copies={copies})"] = training_step(pluribus.ensemble(net, Inner(copies=copies)), x, y)
    steps["naive average of 4 layers"] = training_step(naive(resnet(20), 4), x, y)
    targets = {"Inner(copies=4)": 1.10, "Inner(copies=16)": 1.10}
    met = report("training step, ResNet-20", race(steps, options.repeats), targets)

    mimo = pluribus.ensemble(net, MIMO(members=3), example=x[:2])
    runs = {"base": forward_pass(net, x), "MIMO(members=3)": forward_pass(mimo, x)}
    runs["MIMO(members=3) folded"] = forward_pass(mimo.fold(), x)
    met &= report("forward pass, ResNet-20", race(runs, 2 * options.repeats), {"MIMO(members=3)": 1.05})

    images = torch.randn(options.batch, 1, 28, 28)
    lenet = lenet5()
    variance = pluribus.ensemble(lenet, Variance(samples=20), example=images[:2])
    assert [change.name for change in variance.changes] == ["7"], "the first dense layer is the variance layer"
    runs = {"base": forward_pass(lenet, images), "Variance(samples=20)": forward_pass(variance, images)}
    runs["base, 20 times"] = lambda: [forward_pass(lenet, images)() for _ in range(20)]
    met &= report("forward pass, LeNet-5", race(runs, 2 * options.repeats), {"Variance(samples=20)": 5.0})
    print("\nall targets met" if met else "\nsome targets were missed")


if __name__ == "__main__":
    main()
