"""Memory of `predict` against the number of draws, K: with the members' outputs and without them.

    python benchmarks/predict_memory.py [--rows 20000] [--draws 10,100,1000] [--out benchmarks/results]

Each measurement runs in a process of its own: it converts a network of two hidden layers of 64 units and ten classes, predicts
two rows, and then all rows. `peak` is the largest resident set of the whole process as the system counts it, `growth` what the
prediction added to it. Outputs take K · rows · 10 · 4 bytes.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pluribus
from pluribus.core.files import format_json, write_file

FEATURES, CLASSES = 64, 10
SPECS = {
    "mc-dropout": lambda draws: pluribus.MCDropout(samples=draws),
    "variance": lambda draws: pluribus.Variance(samples=draws),
    "variance, drawn weights": lambda draws: pluribus.Variance(noise="uniform", samples=draws),
    "variational-dropout": lambda draws: pluribus.VariationalDropout(samples=draws),
    "deep ensemble of 2 × mc-dropout": lambda draws: pluribus.DeepEnsemble(2, of=pluribus.MCDropout(samples=draws // 2)),
}


def read_memory(name: str) -> float:
    """`VmRSS` or `VmHWM`, its peak, of this process in MiB.

    Not ru_maxrss where there is a choice: a process begins with that of its parent.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    line = next(line for line in status.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 2**10


def predict_here(method: str, draws: int, rows: int, members: bool) -> dict[str, float]:
    """Predict in this process, and say what it took, in MiB."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    x = torch.randn(rows, FEATURES)
    ensemble = pluribus.ensemble(net, SPECS[method](draws), example=x[:2]).eval()
    ensemble.predict(x[:2], members=members)  # type: ignore[call-overload]
    before = read_memory("VmRSS")
    p = ensemble.predict(x, members=members)  # type: ignore[call-overload]
    assert p.probs.isfinite().all()
    assert p.mutual_information.isfinite().all()
    peak = read_memory("VmHWM")
    return {"peak": peak, "growth": peak - before, "outputs": draws * rows * CLASSES * 4 / 2**20}


def measure(method: str, draws: int, rows: int, members: bool) -> dict[str, float]:
    """The same in a process of its own."""
    call = json.dumps([method, draws, rows, members])
    done = subprocess.run([sys.executable, __file__, "--here", call], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def write_table(found: list[dict[str, Any]], rows: int) -> str:
    """The measurements as Markdown."""
    lines = [
        "# Memory of `predict`",
        "",
        f"Peak of the resident set of a process that predicts {rows:,} rows, and in brackets what the prediction added, MiB: "
        "`python benchmarks/predict_memory.py`.",
        "",
        "| method | K | `members=False` | with members | their outputs alone |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in found:
        without, kept = (f"{row[way]['peak']:.0f} (+{row[way]['growth']:.0f})" for way in ("without", "with"))
        lines.append(f"| {row['method']} | {row['draws']:,} | {without} | {kept} | {row['with']['outputs']:.0f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of `predict` against the number of draws.")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--draws", default="10,100,1000")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(predict_here(*json.loads(options.here))))
        return
    found = []
    for method in SPECS:
        for draws in map(int, options.draws.split(",")):
            ways = {way: measure(method, draws, options.rows, way == "with") for way in ("without", "with")}
            found.append({"method": method, "draws": draws} | ways)
            print(found[-1], file=sys.stderr)
    write_file(options.out / "predict_memory.json", format_json({"rows": options.rows, "measured": found}))
    write_file(options.out / "predict_memory.md", write_table(found, options.rows))


if __name__ == "__main__":
    main()
