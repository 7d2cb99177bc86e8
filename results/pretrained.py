"""How to make an ensemble of a trained network: which start keeps its answers, and which is best after fine-tuning.

    python results/pretrained.py             run what is missing, and judge

A network is trained on half of the rows, converted, and fine-tuned on all of them for half as many epochs at a third of the
learning rate: small-cnn on the digits, and LeNet-5 of half the width on 1,000 rows of MNIST. AdamW, three seeds; the last rows
of the training set judge. Candidates:

    single        the network itself, fine-tuned for as long
    normal 0.5    BatchEnsemble, factors normal about one with this standard deviation, divided by √(1 + spread²); also 0.25,
                  0.1, 0.05, 0.02
    agreeing      the same with the largest spread at which the members name the class that the network names for 99 % of 256
                  training rows, found by halving between 0 and 0.5
    fast factors  spread 0.1, and ten times the learning rate for the factors
    ones, split   factors of exactly one; each member sees its own part of a batch
    low-rank      LowRank of rank 4, the shared weights trained; and frozen

From new weights, on all rows for all epochs at the whole learning rate, the default is trained, and the best spread beside it.

The rule, which is older than the results:

1. A start keeps the answers if right after conversion the mean accuracy of the members is at most one point below that of the
   trained network, with every seed on both data sets.
2. It parts the members if after fine-tuning they disagree about some row, with every seed on both data sets.
3. Of the starts of BatchEnsemble that do both, that one is best whose calibrated NLL after fine-tuning, divided by that of
   `single` and averaged over seeds and data sets, is lowest.
4. The best of the spreads that are the same for every network becomes the default if, from new weights, its calibrated NLL
   averaged over seeds is at most 1.05 times that of the default of 0.5, on each data set. Otherwise the default stays, and the
   best start is named for trained networks.
"""

import copy
import functools
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import pluribus
from pluribus.analysis import disagreement
from pluribus.core.files import write_file
from pluribus.core.seeds import set_seed
from pluribus.core.spec import Spec
from pluribus.metrics import accuracy, calibrated_nll, nll

PLACE = Path(__file__).parent / "ablations" / "pretrained.json"
SEEDS = (0, 1, 2)
SETTINGS: dict[str, dict[str, Any]] = {
    "digits": {"rows": 897, "judged": 400, "model": "small-cnn", "width": 1.0, "epochs": 60, "batch_size": 64},
    "mnist": {"rows": 1000, "judged": 1000, "model": "lenet5", "width": 0.5, "epochs": 12, "batch_size": 64},
}
RATE, AGREEMENT, AGREED_ROWS = 1e-3, 0.99, 256
LOST, WORSE = 0.01, 1.05
Json = dict[str, Any]
Rows = tuple[Tensor, Tensor]


def spread_factors(spread: float) -> Callable[..., Spec]:
    return lambda *_: pluribus.BatchEnsemble(members=4, spread=spread)


def find_agreeing_spread(net: nn.Module, x: Tensor) -> Spec:
    """The largest spread at which members name the network's classes."""
    low, high = 0.0, 0.5
    with torch.no_grad():
        named = net.eval()(x).argmax(1)
        while high - low > 0.005:
            middle = (low + high) / 2
            members = pluribus.ensemble(net, spread_factors(middle)(), example=x[:2]).eval()(x).argmax(2)
            low, high = (middle, high) if (members == named).double().mean() >= AGREEMENT else (low, middle)
    return pluribus.BatchEnsemble(members=4, spread=low)


TUNED: dict[str, Callable[[nn.Module, Tensor], Spec]] = {
    "single": lambda *_: pluribus.Single(),
    **{f"normal {spread}": spread_factors(spread) for spread in (0.5, 0.25, 0.1, 0.05, 0.02)},
    "agreeing": find_agreeing_spread,
    "fast factors": spread_factors(0.1),
    "ones, split": lambda *_: pluribus.BatchEnsemble(members=4, init="ones", batches="split"),
    "low-rank": lambda *_: pluribus.LowRank(members=4, rank=4),
    "low-rank, frozen": lambda *_: pluribus.LowRank(members=4, rank=4, frozen=True),
}
DEFAULT = "normal 0.5"


@functools.cache
def load_rows(name: str) -> tuple[pluribus.data.Data, Rows, Rows]:
    """The data, the rows that are trained on, and those that judge."""
    data, setting = pluribus.data.load(name), SETTINGS[name]
    begin = len(data.train) - setting["judged"]
    x = data.preparation(data.train.x)
    return data, (x[: setting["rows"]], data.train.y[: setting["rows"]]), (x[begin:], data.train.y[begin:])


@functools.cache
def train_network(name: str, seed: int) -> nn.Module:
    """The network that is trained on half of the rows."""
    half = SETTINGS[name]["rows"] // 2
    ensemble = train(name, build_network(name, seed), "single", seed, half, SETTINGS[name]["epochs"], RATE)
    return ensemble.member(0)


def build_network(name: str, seed: int) -> nn.Module:
    data, setting = load_rows(name)[0], SETTINGS[name]
    set_seed(seed)
    return pluribus.models.build(setting["model"], data.shape, data.outputs, width=setting["width"])


def train(name: str, net: nn.Module, cell: str, seed: int, rows: int, epochs: int, rate: float) -> pluribus.Ensemble:
    """Convert and train, and keep the scores of the start in `ensemble.start`."""
    (x, y), judged = load_rows(name)[1:]
    set_seed(seed)
    ensemble = pluribus.ensemble(net, TUNED[cell](net, x[:AGREED_ROWS]), example=x[:2])
    if cell == "fast factors":
        own = type(ensemble).param_groups
        groups = [group | ({"rate": 10.0} if group.get("weight_decay") == 0.0 else {}) for group in own(ensemble)]
        ensemble.param_groups = lambda: copy.copy(groups)  # type: ignore[method-assign]
    start = score(ensemble, judged)
    options = {"epochs": epochs, "batch_size": SETTINGS[name]["batch_size"], "lr": rate, "seed": seed}
    pluribus.fit(ensemble, (x[:rows], y[:rows]), progress=False, **options)
    ensemble.start = start  # type: ignore[assignment]
    return ensemble


def score(ensemble: pluribus.Ensemble, judged: Rows) -> Json:
    """Scores of all members together, the mean accuracy of one, and how often two name different classes."""
    x, y = judged
    p = ensemble.predict(x, batch_size=500)
    each = (p.outputs.argmax(2) == y).double().mean().item()
    scores = {one.__name__: float(one(p, y)) for one in (accuracy, nll, calibrated_nll)}
    return scores | {"member_accuracy": each, "disagreement": disagreement(p)}


def measure(name: str, start: str, cell: str, seed: int) -> Json:
    setting, judged, began = SETTINGS[name], load_rows(name)[2], time.time()
    if start == "untrained":
        ensemble = train(name, build_network(name, seed), cell, seed, setting["rows"], setting["epochs"], RATE)
        return {"end": score(ensemble, judged), "seconds": round(time.time() - began, 1)}
    net = train_network(name, seed)
    began = time.time()
    ensemble = train(name, net, cell, seed, setting["rows"], setting["epochs"] // 2, RATE / 3)
    found: Json = {"start": ensemble.start, "end": score(ensemble, judged), "seconds": round(time.time() - began, 1)}
    return found | ({"spread": ensemble.spec.spread} if cell == "agreeing" else {})  # type: ignore[attr-defined]


def judge(results: list[Json]) -> Json:
    """What points 1 to 3 of the rule say of the starts, and `best`, the best spread that is the same for every network."""
    by = {(one["data"], one["cell"], one["seed"]): one for one in results if one["from"] == "trained"}
    keep, part, ratio = [], [], {}
    for cell in TUNED:
        pairs = [(by[name, "single", seed], by[name, cell, seed]) for name in SETTINGS for seed in SEEDS]
        if all(single["start"]["accuracy"] - own["start"]["member_accuracy"] <= LOST for single, own in pairs):
            keep.append(cell)
        if all(own["end"]["disagreement"] > 0 for _, own in pairs):
            part.append(cell)
        ratio[cell] = statistics.mean(own["end"]["calibrated_nll"] / single["end"]["calibrated_nll"] for single, own in pairs)
    ours = [cell for cell in TUNED if cell in keep and cell in part and not cell.startswith(("single", "low-rank"))]
    spreads = [cell for cell in ours if cell.startswith("normal")]
    best = {"best": min(ours, key=ratio.__getitem__), "best spread": min(spreads, key=ratio.__getitem__)}
    return {"keep": keep, "part": part, "ratio": ratio} | best


def average(results: list[Json], name: str, start: str, cell: str, when: str, score: str) -> float:
    """The mean over seeds of a score."""
    return statistics.mean(
        one[when][score] for one in results if (one["data"], one["from"], one["cell"]) == (name, start, cell)
    )


def judge_default(results: list[Json], spread: str) -> Json:
    """What point 4 says of a spread: its calibrated NLL from new weights, divided by that of the default, on each data set."""
    own, old = (
        [average(results, name, "untrained", cell, "end", "calibrated_nll") for name in SETTINGS] for cell in (spread, DEFAULT)
    )
    ratio = {name: each / before for name, each, before in zip(SETTINGS, own, old, strict=True)}
    return {"untrained": ratio, "becomes default": max(ratio.values()) <= WORSE}


def format_table(content: Json) -> str:
    """The table of docs/pretrained.md: every start on both data sets."""
    head = [
        f"{score}, {name}" for name in content["settings"] for score in ("at the start, %", "after, %", "NLL", "disagree, %")
    ]
    lines = [f"| start | {' | '.join(head)} |", "|---" + "|---:" * len(head) + "|"]
    for cell in TUNED:
        numbers = []
        for name in content["settings"]:
            pick = functools.partial(average, content["results"], name, "trained", cell)
            numbers += [f"{100 * pick('start', 'member_accuracy'):.1f}", f"{100 * pick('end', 'accuracy'):.1f}"]
            numbers += [f"{pick('end', 'calibrated_nll'):.4f}", f"{100 * pick('end', 'disagreement'):.1f}"]
        lines.append(f"| {cell} | {' | '.join(numbers)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    known: list[Json] = json.loads(PLACE.read_text(encoding="utf-8"))["results"] if PLACE.is_file() else []

    def run(start: str, cells: Iterable[str]) -> None:
        for name, seed, cell in itertools.product(SETTINGS, SEEDS, cells):
            if any((one["data"], one["from"], one["cell"], one["seed"]) == (name, start, cell, seed) for one in known):
                continue
            known.append({"data": name, "from": start, "cell": cell, "seed": seed} | measure(name, start, cell, seed))
            write({})
            print(name, seed, start, cell, {key: round(value, 4) for key, value in known[-1]["end"].items()}, flush=True)

    def write(verdict: Json) -> None:
        content = {"command": "python results/pretrained.py", "settings": SETTINGS, "torch": torch.__version__}
        write_file(PLACE, (json.dumps(content | {"verdict": verdict, "results": known}, indent=1) + "\n").encode())

    run("trained", TUNED)
    verdict = judge(known)
    run("untrained", (DEFAULT, verdict["best spread"]))
    write(verdict | judge_default(known, verdict["best spread"]))
    print(json.dumps(verdict | judge_default(known, verdict["best spread"]), indent=1))


if __name__ == "__main__":
    main()
