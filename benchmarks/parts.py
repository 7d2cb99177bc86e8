"""The gain of each mechanism by itself: the measurements behind the choices of `core` and of docs/performance.md.

    python benchmarks/parts.py [--repeats 7] [--only masks,layout,memory,apart,stacked,compile] [--out benchmarks/results]

Each row is a ratio of two ways to do the same work, timed in turns: below one, our way is faster.
"""

import argparse
import ctypes
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, Mixture
from pluribus.analysis.timing import summarize_ratios, time_interleaved
from pluribus.bench.workloads import TrainingStep, prepare_forward, use_inference_mode
from pluribus.core import allocator, execution, noise
from pluribus.core.files import format_json, write_file
from pluribus.models import lenet5, mlp, resnet, small_cnn, wide_resnet

Pair = tuple[str, Callable[[], Any], Callable[[], Any]]
"""The title, the other way, and our way."""


def compare_masks() -> Iterator[Pair]:
    x = torch.randn(64, 16, 32, 32)
    near = noise.round_rate(0.1)
    assert near is not None
    fine = noise.RoundedRate(16, 6554)
    numbers = lambda: torch.rand(x.shape) >= 0.1  # noqa: E731
    yield "a mask of 2²⁰ units: eight random bits over a uniform number", numbers, lambda: noise.draw_mask(x.numel(), near)
    yield "sixteen random bits over a uniform number", numbers, lambda: noise.draw_mask(x.numel(), fine)
    bernoulli = lambda: torch.empty_like(x).bernoulli_(0.9)  # noqa: E731
    yield "eight random bits over torch's Bernoulli", bernoulli, lambda: noise.draw_mask(x.numel(), near)


def compare_layouts() -> Iterator[Pair]:
    nets = {"LeNet-5": (lenet5, 1, 28), "SmallCNN": (small_cnn, 3, 32), "ResNet-20": (resnet, 3, 32)}
    nets["WRN-16-2"] = (lambda: wide_resnet(16, 2), 3, 32)
    for name, (make, channels, size) in nets.items():
        x, y = torch.randn(128, channels, size, size), torch.randint(0, 10, (128,))
        last = x.contiguous(memory_format=torch.channels_last)
        net = make().eval()
        yield (
            f"channels last, {name}, forward",
            use_inference_mode(prepare_forward(net, x)),
            use_inference_mode(prepare_forward(net, last)),
        )
        yield f"channels last, {name}, training step", TrainingStep(make(), x, y), TrainingStep(make(), last, y)


def compare_allocators() -> Iterator[Pair]:
    net = resnet(20).eval()
    for rows in (128, 640):
        x = torch.randn(rows, 3, 32, 32).contiguous(memory_format=torch.channels_last)
        run = use_inference_mode(prepare_forward(net, x))
        yield (
            f"freed memory kept, ResNet-20, forward, {rows} rows",
            call_first(return_freed_memory, run),
            call_first(allocator.keep_freed_memory, run),
        )


def return_freed_memory() -> None:
    """Restore the defaults of glibc, which returns freed memory to the system."""
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(allocator.MMAP_THRESHOLD, 128 * 1024), mallopt(allocator.TRIM_THRESHOLD, 128 * 1024)


def compare_apart() -> Iterator[Pair]:
    cases: list[tuple[str, nn.Module, pluribus.Spec, tuple[int, ...]]] = [
        ("BatchEnsemble, M = 4, ResNet-20", resnet(20), BatchEnsemble(4), (3, 32, 32)),
        ("Mixture, M = 4, WRN-16-2", wide_resnet(16, 2), Mixture(4), (3, 32, 32)),
        ("BatchEnsemble, M = 4, MLP 256-256", mlp(64, 10, (256, 256)), BatchEnsemble(4), (64,)),
    ]
    for name, net, spec, shape in cases:
        for rows in (1, 4, 16, 64, 512) if len(shape) == 1 else (1, 4, 16, 64):
            x = torch.randn(rows, *shape)
            x = x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
            ensemble = pluribus.ensemble(net, spec, example=x).eval()
            run = use_inference_mode(lambda ensemble=ensemble, x=x: ensemble(x))
            run()
            width = ensemble.executor.plan.branched_size * rows
            title = f"one after the other, {name}, forward, {rows} rows (2^{width.bit_length() - 1} numbers)"
            yield (
                title,
                call_first(lambda: setattr(execution, "APART_SIZE", 2**60), run),
                call_first(lambda: setattr(execution, "APART_SIZE", 1), run),
            )


def compare_stacking() -> Iterator[Pair]:
    for hidden, rows in (((64, 64), 32), ((256, 256), 256)):
        x, y = torch.randn(rows, 64), torch.randint(0, 10, (rows,))
        loop, stack = (
            TrainingStep(pluribus.ensemble(mlp(64, 10, hidden), DeepEnsemble(16, stacked=way), example=x), x, y)
            for way in (False, True)
        )
        yield f"deep ensemble stacked, M = 16, MLP {hidden[0]}-{hidden[1]}, {rows} rows, training step", loop, stack


def compare_compilation() -> Iterator[Pair]:
    for spec in (BatchEnsemble(32), DeepEnsemble(16)):
        x = torch.randn(256, 64)
        ensemble = pluribus.ensemble(mlp(64, 10, (256, 256)), spec, example=x).eval()
        ensemble(x)
        fast = torch.compile(ensemble)
        yield (
            f"torch.compile, {spec}, MLP 256-256, forward",
            use_inference_mode(lambda e=ensemble, x=x: e(x)),
            use_inference_mode(lambda e=fast, x=x: e(x)),
        )


def call_first(first: Callable[[], Any], run: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that calls both, one after the other."""
    return lambda: (first(), run())


DEFAULT_APART = execution.APART_SIZE
PARTS = {
    "masks": compare_masks,
    "layout": compare_layouts,
    "memory": compare_allocators,
    "apart": compare_apart,
    "stacked": compare_stacking,
    "compile": compare_compilation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    chosen = options.only.split(",")
    if options.repeats < 1 or set(chosen) - set(PARTS):
        parser.error(f"--repeats must be at least 1, and --only of {', '.join(PARTS)}")
    torch.set_num_threads(2)
    torch.manual_seed(0)
    rows = []
    for part in chosen:
        for title, theirs, ours in PARTS[part]():
            allocator.keep_freed_memory()
            times = list(time_interleaved({"theirs": theirs, "ours": ours}, options.repeats))
            found = summarize_ratios([each["ours"] for each in times], [each["theirs"] for each in times])
            rows.append({"part": part, "title": title, "median": found.median, "low": found.low, "high": found.high})
            print(f"{title:<88} {found.median:6.2f}×  ({found.low:.2f} to {found.high:.2f})", flush=True)
            if part == "apart":
                execution.APART_SIZE = DEFAULT_APART
    about = {"torch": torch.__version__, "machine": platform.machine(), "threads": 2, "repeats": options.repeats}
    options.out.mkdir(parents=True, exist_ok=True)
    write_file(options.out / "parts.json", format_json({"about": about, "rows": rows}))
    lines = [f"| {row['title']} | {row['median']:.2f}× | {row['low']:.2f} to {row['high']:.2f} |" for row in rows]
    head = ["# What each mechanism wins", "", "Time over that of the other way: `python benchmarks/parts.py`.", ""]
    head += ["| | median | middle half |", "|---|---|---|"]
    write_file(options.out / "parts.md", "\n".join([*head, *lines, ""]))


if __name__ == "__main__":
    sys.exit(main())
