"""The cost of the data pipeline and the training loop: an epoch of `pluribus.fit` against a bare loop.

    python benchmarks/throughput.py [--repeats 25] [--rows 3840] [--batch 128]

LeNet-5 on images of 28×28 bytes. The bare loop has its batches ready as real numbers; `fit` shuffles, gathers and normalises
them, and runs on Lightning. Both take short turns, so that a busy moment of the machine slows both; the ratio is the median
over neighbouring turns. Each turn measures its own time, because work that is done once for each run does not count.
"""

import argparse
import json
import statistics
import time

import lightning as L
import torch

import pluribus
from pluribus.analysis.timing import summarize_ratios
from pluribus.data.dataset import Part
from pluribus.data.preparation import Pixels
from pluribus.models import lenet5
from pluribus.training.fit import fit

TARGET = 1.10


class Stopwatch(L.Callback):
    """Measures the time of one epoch, without what comes before its first step."""

    def on_train_epoch_start(self, *_) -> None:
        self.began = time.perf_counter()

    def on_train_epoch_end(self, *_) -> None:
        self.seconds = time.perf_counter() - self.began


def time_bare_loop(batches: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    net = lenet5()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    began = time.perf_counter()
    for x, y in batches:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.perf_counter() - began


def time_fit(part: Part, batch: int) -> float:
    watch = Stopwatch()
    ensemble = pluribus.ensemble(lenet5(), pluribus.Single())
    fit(ensemble, part, epochs=1, batch_size=batch, preparation=Pixels((0.13,), (0.31,)), callbacks=[watch], progress=False)
    return watch.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--rows", type=int, default=3840)
    parser.add_argument("--batch", type=int, default=128)
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    part = Part(torch.randint(0, 256, (options.rows, 1, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (options.rows,)))
    prepared = Pixels((0.13,), (0.31,))(part.x)
    batches = list(zip(prepared.split(options.batch), part.y.split(options.batch), strict=True))
    time_bare_loop(batches), time_fit(part, options.batch)
    times = [(time_bare_loop(batches), time_fit(part, options.batch)) for _ in range(options.repeats)]
    bare, fitted = zip(*times, strict=True)
    base, loop, ratio = statistics.median(bare), statistics.median(fitted), summarize_ratios(fitted, bare)
    print(f"bare loop   {1000 * base / len(batches):6.2f} ms a step")
    print(f"pluribus    {1000 * loop / len(batches):6.2f} ms a step")
    print(f"ratio       {ratio.median:6.3f}  (half of them from {ratio.low:.3f} to {ratio.high:.3f}; target ≤ {TARGET:.2f})")
    print(json.dumps({"ratio": ratio.median, "repeats": options.repeats, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    main()
