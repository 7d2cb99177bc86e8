"""Every method on the embedded digits, with one small network: one table.

    python examples/demo.py [--epochs 20] [--seed 0] [--page demo.html]

Every method trains on the same 500 images, for the same number of epochs, with the same optimiser, and is judged on the
other 1,297. That is a taste, not a verdict: one seed, one small network, and differences of a few images.
"""

import argparse
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import pluribus
from pluribus import metrics

METHODS: list[pluribus.Spec] = [
    pluribus.Single(),
    pluribus.Inner(copies=4),
    pluribus.Maxout(copies=4),
    pluribus.Variance(samples=20),
    pluribus.VariationalDropout(samples=20),
    pluribus.MCDropout(rate=0.1, samples=20),
    pluribus.Multihead(members=4),
    pluribus.MIMO(members=3),
    pluribus.TreeNet(members=3),
    pluribus.BatchEnsemble(members=4),
    pluribus.Mixture(members=4, parameters=1.5),
    pluribus.DeepEnsemble(members=4),
]


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))


def small_network() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), Block(12)),
        *(nn.Conv2d(12, 24, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), Block(24)),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 10)),
    )


def digits(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float).unsqueeze(1) / 16
    y = torch.tensor(data.target)
    train, test = train_test_split(range(len(y)), train_size=500, random_state=seed, stratify=data.target)
    return x[train], y[train], x[test], y[test]


def fit(ensemble: pluribus.Ensemble, x: Tensor, y: Tensor, epochs: int, advance) -> float:
    """Train; returns the seconds it took."""
    batch = 64
    steps = epochs * -(-len(x) // batch)
    optimizer = torch.optim.AdamW(ensemble.param_groups(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    ensemble.train()
    start = time.perf_counter()
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            loss = ensemble.loss(x[rows], y[rows], examples=len(x))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        advance()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="for every method (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the weights and the batches (default 0)")
    parser.add_argument("--page", type=Path, default=Path("demo.html"), help="where the page goes (default demo.html)")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    if not options.page.parent.is_dir():
        parser.error(f"--page: there is no folder {options.page.parent}")

    x, y, test_x, test_y = digits(options.seed)
    table = Table(title=f"digits, {options.epochs} epochs, seed {options.seed}", caption="costs are ratios to the first row")
    table.add_column("method")
    for name in ("acc %", "NLL", "ECE %", "params", "train", "answer"):
        table.add_column(name, justify="right")

    console = Console(record=True)
    bar = (TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TextColumn("epochs"), TimeRemainingColumn())
    base_seconds = 0.0
    with Progress(*bar, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(METHODS) * options.epochs)
        for spec in METHODS:
            progress.update(task, description=spec.name)
            torch.manual_seed(options.seed)
            ensemble = pluribus.ensemble(small_network(), spec, example=x[:2])
            seconds = fit(ensemble, x, y, options.epochs, lambda: progress.advance(task))
            base_seconds = base_seconds or seconds
            p = ensemble.predict(test_x)
            cost = ensemble.describe()
            table.add_row(
                spec.name,
                f"{100 * metrics.accuracy(p, test_y):.1f}",
                f"{metrics.nll(p, test_y):.3f}",
                f"{100 * metrics.ece(p, test_y):.1f}",
                f"{min(cost.parameters, cost.deployed_parameters) / cost.base_parameters:.2f}x",
                f"{seconds / base_seconds:.1f}x",
                f"{min(cost.flops or 0, cost.deployed_flops or 0) / (cost.base_flops or 1):.2f}x",
            )
    console.print(table)
    console.print(
        "NLL: negative log-likelihood; ECE: expected calibration error, 15 bins.\n"
        "params: to store, as an ensemble or folded; train: time; answer: FLOPs.",
        style="dim",
        highlight=False,
    )
    console.save_html(str(options.page))
    print(f"the same as a page: {options.page.resolve()}")


if __name__ == "__main__":
    main()
