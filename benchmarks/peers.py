"""The cost of the same methods in other libraries: torch-uncertainty and TabM against ours, as ratios to the base network.

    python benchmarks/peers.py [--only tabm …] [--repeats 9] [--batch 128] [--rows 256] [--contiguous] [--out FOLDER]

The base network, theirs and ours run in one process on the same torch, batch, optimiser, memory format and two threads. A
repeat times each of them once, in a new random order; a ratio is to the base, or to ours, of the same repeat. Ours is made by
`pluribus.ensemble` from the network that is the base. Ours predicts with `predict`, theirs with its forward pass: both return
every member's logits. A training step deals the batch as their routine does and takes the mean cross-entropy over members and
rows (ours sums it over the members of MIMO and of a deep ensemble, which costs the same); then SGD with momentum, without
weight decay, because ours exempts the factors from it and theirs does not.

Both convert the same layers: their ResNet-20 for BatchEnsemble has no factors on its shortcuts, so ours leaves them out, too.
Parameters and FLOPs are counted before each measurement, and show the differences that remain. Packed ensembles do not exist
here, so theirs are compared with the base alone.
"""

import argparse
import copy
import importlib.util
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, MCDropout
from pluribus.analysis.timing import summarize_ratios, time_interleaved
from pluribus.bench.workloads import use_inference_mode
from pluribus.core.files import format_json, write_file
from pluribus.core.flop_counting import count_call_flops
from pluribus.core.spec import Spec
from pluribus.runs.run_folder import describe_machine

Work = Callable[[], object]
Batch = tuple[Tensor, Tensor]
Deal = Callable[[Batch], Batch]
FORWARD, STEP = "forward pass", "training step"
PACKAGES = {"torch_uncertainty": "torch-uncertainty", "tabm": "tabm"}


# --- networks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """A network of theirs, and how their routine deals its training batch: (x, y) → (x, y `[M·B]`)."""

    net: nn.Module
    deal: Deal = lambda batch: batch


@dataclass(frozen=True)
class Match:
    """One method in both libraries, on one base network. `theirs` may hold several ways to do it."""

    method: str
    base: nn.Module
    theirs: dict[str, Callable[[], Peer]]
    ours: Spec | None
    work: Sequence[str] = (FORWARD, STEP)
    targets: Sequence[str] = ()
    """Workloads in which ours must be faster than each of theirs."""


def match_resnets(layout: torch.memory_format) -> dict[str, list[Match]]:
    """torch-uncertainty's ResNet-20 for 32×32 images (16, 32 and 64 channels, 1×1 convolutions as shortcuts)."""
    from torch_uncertainty.methods import deep_ensembles, mc_dropout
    from torch_uncertainty.models.classification.resnet import batched_resnet, mimo_resnet, packed_resnet, resnet
    from torch_uncertainty.transforms import MIMOBatchFormat, RepeatTarget

    def theirs(make: Callable[..., nn.Module], deal: Deal, **options: Any) -> dict[str, Callable[[], Peer]]:
        return {"torch-uncertainty": lambda: Peer(make(**kind, **options).to(memory_format=layout), deal)}

    def draws(at_once: bool) -> Peer:
        return Peer(mc_dropout(copy.deepcopy(dropping), num_estimators=20, on_batch=at_once))

    kind: dict[str, Any] = {"in_channels": 3, "num_classes": 10, "arch": 20, "conv_bias": False, "style": "cifar"}
    # Laid out before anything is made of them: their deep ensemble's `to` forgets the memory format.
    plain, dropping = (resnet(**kind, dropout_rate=rate).to(memory_format=layout) for rate in (0.0, 0.1))
    # "legacy" tiles the training batch, "paper" splits it between the members.
    tiled = theirs(batched_resnet, RepeatTarget(4), num_estimators=4, repeat_strategy="legacy")
    split = theirs(batched_resnet, nn.Identity(), num_estimators=4, repeat_strategy="paper")
    both = BatchEnsemble(members=4, exclude="*shortcut*")
    mimo = theirs(mimo_resnet, MIMOBatchFormat(3), num_estimators=3)
    dropout = {"torch-uncertainty": lambda: draws(True), "torch-uncertainty, in a loop": lambda: draws(False)}
    deep = {"torch-uncertainty": lambda: Peer(deep_ensembles(plain, num_estimators=4), RepeatTarget(4))}
    packed = theirs(packed_resnet, RepeatTarget(4), num_estimators=4, alpha=2, gamma=1)
    return {
        "batch-ensemble": [
            Match("BatchEnsemble, M = 4", plain, tiled, both),
            Match("BatchEnsemble, M = 4, split batches", plain, split, replace(both, batches="split"), (STEP,)),
        ],
        "mimo": [Match("MIMO, M = 3", plain, mimo, MIMO(members=3))],
        "mc-dropout": [
            Match("MC dropout, K = 20", dropping, dropout, MCDropout(samples=20), (FORWARD,)),
            Match("MC dropout", dropping, {"torch-uncertainty": lambda: draws(True)}, MCDropout(samples=20), (STEP,)),
        ],
        "deep-ensemble": [Match("deep ensemble, M = 4", plain, deep, DeepEnsemble(members=4))],
        "packed": [Match("Packed ensemble, M = 4, α = 2", plain, packed, None)],
    }


def match_mlps(members: int = 32) -> dict[str, list[Match]]:
    """32 features, three hidden layers of 256, 10 classes.

    In tabm 0.0.3 `arch_type="tabm"` is the full BatchEnsemble: factors r and s and a bias for each member in every hidden
    layer ("tabm-mini" has only the first r). But its last layer is a whole matrix for each member, where a BatchEnsemble has
    rank-one factors: as many FLOPs, more parameters. So their layers are also measured in a network of exactly our structure.
    """
    import tabm

    sizes = (32, 256, 256, 256)
    hidden = [layer for i, o in pairwise(sizes) for layer in (nn.Linear(i, o), nn.ReLU())]
    base = nn.Sequential(*hidden, nn.Linear(sizes[-1], 10))

    def deal(batch: Batch) -> Batch:
        return batch[0], batch[1].repeat_interleave(members)  # answers are [B, M, C]

    def model() -> Peer:
        options = {"n_blocks": 3, "d_block": 256, "dropout": 0.0, "k": members, "arch_type": "tabm"}
        return Peer(tabm.TabM(n_num_features=32, d_out=10, start_scaling_init="random-signs", **options), deal)

    def layers() -> Peer:
        net = copy.deepcopy(base)
        tabm.batchensemble_linear_layers_(net, k=members, scaling_init="normal")
        return Peer(nn.Sequential(tabm.EnsembleView(k=members), net), deal)

    theirs = {"TabM": model, "TabM's layers": layers}
    return {"tabm": [Match(f"BatchEnsemble MLP, M = {members}", base, theirs, BatchEnsemble(members=members), targets=(STEP,))]}


NAMES = ("batch-ensemble", "mimo", "mc-dropout", "deep-ensemble", "packed", "tabm")


# --- workloads -----------------------------------------------------------------------------------------------------


def prepare_step(net: nn.Module, loss: Callable[[], Tensor]) -> Work:
    # The rate is low, because many steps on one batch must neither diverge nor end in denormal numbers.
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    net.train()

    def step() -> None:
        value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

    return step


def prepare_prediction(net: nn.Module, predict: Work) -> Work:
    net.eval()
    return use_inference_mode(predict)


def prepare_base(work: str, net: nn.Module, x: Tensor, y: Tensor) -> Work:
    net = copy.deepcopy(net)
    return prepare_prediction(net, lambda: net(x)) if work == FORWARD else prepare_step(net, lambda: F.cross_entropy(net(x), y))


def prepare_theirs(work: str, peer: Peer, x: Tensor, y: Tensor) -> Work:
    def loss() -> Tensor:
        views, targets = peer.deal((x, y))
        return F.cross_entropy(peer.net(views).flatten(0, -2), targets)

    return prepare_prediction(peer.net, lambda: peer.net(x)) if work == FORWARD else prepare_step(peer.net, loss)


def prepare_ours(work: str, ensemble: pluribus.Ensemble, x: Tensor, y: Tensor) -> Work:
    if work == FORWARD:
        return prepare_prediction(ensemble, lambda: ensemble.predict(x))
    return prepare_step(ensemble, lambda: ensemble.loss(x, y))


# --- measurement ----------------------------------------------------------------------------------------------------


def count_size(net: nn.Module, work: Work) -> dict[str, int | None]:
    """Count parameters, and FLOPs of one run of the workload."""
    return {"parameters": sum(p.numel() for p in net.parameters()), "flops": count_call_flops(work)}


def measure_match(match: Match, work: str, x: Tensor, y: Tensor, repeats: int) -> list[dict[str, Any]]:
    """Measure one method, and return a row for each way in which they do it."""
    peers = {name: make() for name, make in match.theirs.items()}
    nets: dict[str, nn.Module] = {"base": match.base} | {name: peer.net for name, peer in peers.items()}
    works = {"base": prepare_base(work, match.base, x, y)}
    works |= {name: prepare_theirs(work, peer, x, y) for name, peer in peers.items()}
    if match.ours is not None:
        nets["ours"] = ensemble = pluribus.ensemble(match.base, match.ours, example=x[:2])
        works["ours"] = prepare_ours(work, ensemble, x, y)
    print(f"\n{match.method}, {work}")
    sizes = {name: count_size(nets[name], works[name]) for name in works}
    for name, counts in sizes.items():
        parameters, flops = (format_share(sizes, name, key) for key in ("parameters", "flops"))
        print(f"  {name:<30}{counts['parameters']:>10,} parameters ({parameters}), FLOPs {flops}")
    timings = list(time_interleaved(works, repeats))
    seconds = {name: [timing[name] for timing in timings] for name in works}
    print(f"  base: {1000 * statistics.median(seconds['base']):.1f} ms")
    rows = []
    for name in peers:
        row = {"method": match.method, "work": work, "theirs": name, "base_seconds": statistics.median(seconds["base"])}
        row["sizes"] = {"base": sizes["base"], "theirs": sizes[name]}
        row["theirs_over_base"] = asdict(summarize_ratios(seconds[name], seconds["base"]))
        if match.ours is not None:
            row["sizes"]["ours"] = sizes["ours"]
            row["ours_over_base"] = asdict(summarize_ratios(seconds["ours"], seconds["base"]))
            row["theirs_over_ours"] = asdict(summarize_ratios(seconds[name], seconds["ours"]))
            row["target"] = work in match.targets
        rows.append(row)
        ratios = f"{format_ratio(row['theirs_over_base'])}, ours {format_ratio(row.get('ours_over_base'))}"
        print(f"  {name:<30}{ratios}; {format_verdict(row)}")
    return rows


# --- output ---------------------------------------------------------------------------------------------------------


def format_ratio(ratios: dict[str, float] | None) -> str:
    return "{median:.2f}× ({low:.2f} to {high:.2f})".format(**ratios) if ratios else "none"


def format_share(sizes: dict[str, dict[str, int | None]], who: str, key: str) -> str:
    own, base = sizes[who][key], sizes["base"][key]
    return f"{own / base:.2f}×" if own and base else "uncounted"


def is_missed(row: dict[str, Any]) -> bool:
    return row.get("target", False) and row["theirs_over_ours"]["median"] <= 1


def format_verdict(row: dict[str, Any]) -> str:
    if "theirs_over_ours" not in row:
        return "pluribus has no such method"
    aim = f" (target: above 1, {'MISSED' if is_missed(row) else 'met'})" if row["target"] else ""
    return f"theirs ÷ ours {format_ratio(row['theirs_over_ours'])}{aim}"


TABLE = """\
# The same methods elsewhere

| method | work | theirs | theirs × base | ours × base | theirs ÷ ours | parameters | FLOPs |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
{rows}

Median of {repeats} interleaved repeats, and the middle half of them. Where theirs ÷ ours is above 1, ours is faster.
Parameters and FLOPs: theirs / ours, over the base. ResNet-20 on batches of {batch} images ({layout}), MLPs on
{rows_at_once} rows. {cores} cores, {threads} threads. {versions}.

pluribus has no Packed ensembles; torch counts the backward pass of their grouped convolutions as if these had no groups. TabM's
last layer is a whole matrix for each member; "TabM's layers" are its layers in a network of exactly our structure.
"""


def format_table(record: dict[str, Any]) -> str:
    """Markdown."""
    lines = []
    for row in record["rows"]:
        who = [name for name in ("theirs", "ours") if name in row["sizes"]]
        times = [format_ratio(row.get(key)) for key in ("theirs_over_base", "ours_over_base", "theirs_over_ours")]
        counts = [" / ".join(format_share(row["sizes"], name, key) for name in who) for key in ("parameters", "flops")]
        lines.append(f"| {' | '.join([row['method'], row['work'], row['theirs'], *times, *counts])} |")
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return TABLE.format(rows="\n".join(lines), versions=versions, **record["settings"], **record["machine"])


def check_installed(names: Sequence[str], parser: argparse.ArgumentParser) -> None:
    needed = {"tabm" if name == "tabm" else "torch_uncertainty" for name in names}
    missing = sorted(PACKAGES[name] for name in needed if importlib.util.find_spec(name) is None)
    if missing:
        parser.exit(2, f"{' and '.join(missing)} must be installed: `make bench-peers` does it, in an environment apart\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="METHOD", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--repeats", type=int, default=9, help="how often each is timed (default 9)")
    parser.add_argument("--batch", type=int, default=128, help="images in a batch (default 128)")
    parser.add_argument("--rows", type=int, default=256, help="rows in a batch of the MLPs (default 256)")
    parser.add_argument("--contiguous", action="store_true", help="images and weights contiguous rather than channels last")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="where peers.json and peers.md go")
    options = parser.parse_args()
    for name in ("repeats", "batch", "rows"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    if options.batch % 4:
        parser.error(
            f"--batch must be a multiple of 4, got {options.batch}: four members split it, and theirs differ over the rest"
        )
    check_installed(options.only, parser)
    torch.manual_seed(0)
    torch.set_num_threads(2)
    layout = torch.contiguous_format if options.contiguous else torch.channels_last
    x = torch.randn(options.batch, 3, 32, 32).to(memory_format=layout)
    y = torch.randint(0, 10, (options.batch,))
    features, labels = torch.randn(options.rows, 32), torch.randint(0, 10, (options.rows,))

    matches = (match_resnets(layout) if set(options.only) - {"tabm"} else {}) | (match_mlps() if "tabm" in options.only else {})
    rows = []
    for name in options.only:
        batch = (features, labels) if name == "tabm" else (x, y)
        rows += [
            row for match in matches[name] for work in match.work for row in measure_match(match, work, *batch, options.repeats)
        ]
    settings = {"repeats": options.repeats, "batch": options.batch, "rows_at_once": options.rows}
    record = describe_machine() | {"settings": settings | {"layout": str(layout).removeprefix("torch.")}, "rows": rows}
    record["versions"] |= {package: metadata.version(package) for name, package in PACKAGES.items() if name in sys.modules}

    stem = "peers" if options.only == NAMES else "peers-" + "-".join(options.only)  # a part does not replace the whole
    options.out.mkdir(parents=True, exist_ok=True)
    write_file(options.out / f"{stem}.json", format_json(record))
    write_file(options.out / f"{stem}.md", format_table(record))
    print(f"\n{stem}.json and {stem}.md are in {options.out}")
    print("some targets were missed" if any(map(is_missed, rows)) else "no target was missed")


if __name__ == "__main__":
    main()
