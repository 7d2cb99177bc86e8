"""variance/figure-7: targeted iterated fast sign attacks through one draw, as in the paper, and through averages.

Scale cpu takes about 70 minutes of one core beside table 2: the fast network 3 × 1,560 steps of 0.14 s with dropout, 2 ×
1,170 with a variance layer, and attacks, most of them through a hundred draws of dropout, 5 × 4 minutes, and of the variance
ensemble, 6 minutes.
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

import pluribus

from ...analysis.attacks import Attack, attack
from ...core.ensemble import Ensemble
from ...file_formats.schema import MOST_ENTRIES, Schema, Share, Size, Values
from ...methods.deep_ensemble import DeepEnsemble
from ...methods.mc_dropout import MCDropout
from ...methods.single import Single
from ...methods.variance import Variance
from ...methods.variational import VariationalDropout
from ...reports.svg import line_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim, skip_claim
from .configurations import FAST_DEPARTURE, configure_dropout_cifar, configure_variational_cifar, configure_zero_mean_cifar
from .preconditions import judge_under, require, require_accuracy
from .seeds import Estimate, average, estimate, format_points, group_seeds
from .table_2 import LEAST_BASE
from .trainings import Trained, Training, train_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("deterministic", "dropout", "deep ensemble", "variance", "variance ensemble")
OTHERS = ("deterministic", "dropout", "deep ensemble")
NOISY = ("dropout", "variance", "variance ensemble")
ONE, AVERAGE, MANY, TRANSFER = "one draw", "average", "100 draws", "transfer"
SAMPLES = {ONE: 1, AVERAGE: 10, MANY: 100, TRANSFER: 10}
"""Draws in one gradient, by what the attack goes through."""
PARTS, DRAWS, BLOCKS = 5, 10, 10
LEAST_IMAGES, LEAST_NETWORKS = 1000, 5
MOST_LOST = 0.03
"""By how much a variance network may be less accurate than one with dropout."""
STEP = 0.5 / 255


def list_cells(scale: str, images: int, iterations: int, parts: int = PARTS) -> dict[str, Json]:
    """The cells of every method by what the attack goes through, one for each network, and one for an ensemble of them all.

    A transferred attack follows the gradient of a deterministic network with another seed than all of these.
    """
    found: dict[str, Json] = {}
    noisy = configure_variational_cifar if scale == "paper" else configure_zero_mean_cifar
    source = configure_dropout_cifar(scale, parts + 1).to_json()
    for method in METHODS:
        make = noisy if "variance" in method else configure_dropout_cifar
        trainings = {seed: make(scale, seed).to_json() for seed in range(1, parts + 1)}
        for through in (ONE, AVERAGE, MANY, TRANSFER) if method in NOISY else (AVERAGE, TRANSFER):
            options: Json = {"images": images, "iterations": iterations, "through": through, "method": method}
            if through == TRANSFER:
                options["source"] = source
            groups = {1: list(trainings.values())} if "ensemble" in method else {seed: [own] for seed, own in trainings.items()}
            for seed, own in groups.items():
                found[f"{method}, {through}, seed {seed}"] = options | {"seed": seed, "trainings": own}
    return found


class Measured(Schema):
    """The accuracy without an attack; the attack's success and the entropy after each iteration; the number of images.

    `areas` has the mean success over iterations of every block of images, of a transferred attack the success at its end.
    """

    accuracy: Share
    success: Annotated[list[Share], Field(min_length=1, max_length=MOST_ENTRIES)]
    entropy: Values
    images: Size
    areas: Annotated[list[Share], Field(min_length=1, max_length=BLOCKS)] | None = None


def measure(options: Json, workspace: Workspace) -> Json:
    done = [train_once(Training.from_json(training), workspace) for training in options["trainings"]]
    net = Training.from_json(options["trainings"][0]).build()
    ensemble = join_networks([each.ensemble for each in done], options["method"], net)
    transferred = options["through"] == TRANSFER
    attacked = train_once(Training.from_json(options["source"]), workspace).ensemble if transferred else ensemble
    x, y, targets = choose_images(done[0], options["images"])
    mean, deviation = (torch.tensor(getattr(done[0].data.preparation, name)).view(-1, 1, 1) for name in ("mean", "std"))
    low, high = -mean / deviation, (1 - mean) / deviation
    spec = Attack(None, STEP, options["iterations"], targeted=True, samples=SAMPLES[options["through"]])
    paths, areas = list[Tensor](), list[float]()
    for block, (images, goals) in enumerate(zip(split_blocks(x), split_blocks(targets), strict=True)):
        workspace.report(f"block {block + 1} of {BLOCKS}")
        inputs = images.clamp(low, high)
        found = attack(attacked, inputs, goals, spec, low=low, high=high, scale=1 / deviation, seed=options["seed"])
        success, entropy = found.path_success, found.path_entropy
        if transferred:
            answers = [ensemble.predict(each) for each in (inputs, found.inputs)]
            success = torch.stack([(answer.labels == goals).double().mean() for answer in answers])
            entropy = torch.stack([answer.entropy.double().mean() for answer in answers])
        paths.append(torch.stack([success, entropy]) * len(images) / len(x))
        areas.append((success[-1] if transferred else success.mean()).item())
    success, entropy = torch.stack(paths).sum(0).clamp_min(0)
    clean = (ensemble.predict(x).labels == y).double().mean().item()
    return {
        "accuracy": clean,
        "success": success.clamp_max(1).tolist(),
        "entropy": entropy.tolist(),
        "images": len(x),
        "areas": areas,
    }


def choose_images(done: Trained, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first test images, their classes, and another class for each, the target: the same for all networks."""
    x, y = done.x[:count], done.y[:count]
    generator = torch.Generator().manual_seed(0)
    return x, y, (y + torch.randint(1, done.data.outputs, y.shape, generator=generator)) % done.data.outputs


def split_blocks(rows: Tensor) -> tuple[Tensor, ...]:
    """Split rows into at most ten blocks of equal size but for the last."""
    return rows.split(-(-len(rows) // BLOCKS))


def join_networks(parts: list[Ensemble], method: str, net: torch.nn.Module) -> Ensemble:
    """Return the ensemble that is attacked: one network, one noisy network with ten draws, or a deep ensemble of the parts.

    `net` is the plain network that the parts were made of, with any weights.
    """
    if method == "dropout":
        return pluribus.ensemble(parts[0].member(0), MCDropout(samples=DRAWS))
    if method in ("deterministic", "variance"):
        parts[0].samples = DRAWS
        return parts[0]
    spec = parts[0].spec
    assert isinstance(spec, Single | Variance | VariationalDropout)
    deep = pluribus.ensemble(net, DeepEnsemble(len(parts), of=spec))
    for own, part in zip([m for m in deep.net.children() if isinstance(m, Ensemble)], parts, strict=True):
        own.load_state_dict(part.state_dict())
        own.samples = DRAWS if own.sampled else own.samples
    return deep.eval()


def tabulate(found: Found) -> list[Json]:
    table = []
    for name, cells in group_seeds(found).items():
        method, through = name.split(", ")
        paths = [(cell["success"], cell["entropy"]) for cell in cells.values()]
        area = estimate_area(cells)
        table.append(
            {
                "method": method,
                "through": through,
                "accuracy": 100 * average(cells, "accuracy"),
                "early": None
                if through == TRANSFER
                else 100 * float(np.mean([success[len(success) // 4] for success, _ in paths])),
                "late": 100 * float(np.mean([success[-1] for success, _ in paths])),
                "area": 100 * area.value,
                "area_margin": None if area.margin is None else 100 * area.margin,
                "clean_entropy": float(np.mean([entropy[0] for _, entropy in paths])),
                "entropy": float(np.mean([entropy[-1] for _, entropy in paths])),
            }
        )
    return table


def average_success(cell: Json) -> float:
    """Return the mean success over all iterations."""
    return sum(cell["success"]) / len(cell["success"])


def average_blocks(cells: dict[int, Json]) -> np.ndarray:
    """Return the areas of every block of images, averaged over the networks of a row; one block if they were not kept."""
    return np.mean([cell.get("areas") or [average_success(cell)] for cell in cells.values()], axis=0)


def estimate_area(cells: dict[int, Json]) -> Estimate:
    """Return the mean area of a row, with its interval over blocks of images."""
    return estimate(average_blocks(cells))


def list_rows(found: Found, through: str) -> dict[str, dict[int, Json]]:
    """The cells of every method, by seed; methods that draw nothing are attacked through their own answer, an average."""
    rows = group_seeds(found)
    own = {method: through if method in NOISY or through == TRANSFER else AVERAGE for method in METHODS}
    return {method: rows[name] for method in METHODS if (name := f"{method}, {own[method]}") in rows}


def judge_attack(found: Found, claim: str, through: str) -> Verdict:
    """The verdict on the order of success of an attack."""
    rows = list_rows(found, through)
    if len(rows) < len(METHODS):
        return skip_claim(claim, f"what is recorded has no attack through {through}")
    blocks = {method: average_blocks(cells) for method, cells in rows.items()}
    areas = {method: float(values.mean()) for method, values in blocks.items()}
    gaps = {method: estimate(blocks["variance"] - blocks[method]) for method in OTHERS}
    lowest = min(areas, key=areas.__getitem__) == "variance ensemble"
    what = "success at the end" if through == TRANSFER else "mean success over iterations"
    return judge_claim(
        claim,
        f"{what}, over all networks of a kind: that of the variance ensemble is lowest, and that of variance is below all "
        "others, "
        "beyond the 95 % interval of the difference over ten blocks of images; direction: that of the variance ensemble "
        "is lowest",
        ", ".join(f"{method} {format_percent(areas[method], 0)}" for method in METHODS)
        + "; variance against "
        + ", ".join(f"{method} {format_points(gap, 1)}" for method, gap in gaps.items()),
        lowest and all(gap.high < 0 for gap in gaps.values()),
        lowest,
    )


def judge_entropy(found: Found) -> Verdict:
    rows = list_rows(found, ONE)
    gains = {
        method: estimate(cell["entropy"][-1] - cell["entropy"][0] for cell in cells.values()).value
        for method, cells in rows.items()
    }
    rises = min(gains["variance"], gains["variance ensemble"]) > 0
    return judge_claim(
        "Only variance networks are less sure of attacked images than of clean ones (earlier version).",
        "the mean entropy at the last iteration, over all networks of a kind, is above that before the first for both variance "
        "networks, and not for the others; direction: for both variance networks",
        ", ".join(f"{method} {value:+.2f}" for method, value in gains.items()) + " nats",
        rises and max(gains[method] for method in OTHERS) <= 0,
        rises,
    )


def judge(found: Found) -> list[Verdict]:
    rows = list_rows(found, ONE)
    accuracies = {method: average(cells, "accuracy") for method, cells in rows.items()}
    single = {method: float(len(cells)) for method, cells in rows.items() if "ensemble" not in method}
    conditions = [
        require(
            f"there are at least {LEAST_IMAGES:,} images",
            "images",
            {"": float(min(cell["images"] for cell in found.values()))},
            lambda count: count >= LEAST_IMAGES,
            "{:,.0f}".format,
        ),
        require(
            f"there are at least {LEAST_NETWORKS} networks of a kind",
            "networks of a kind",
            {"": min(single.values())},
            lambda count: count >= LEAST_NETWORKS,
            "{:.0f}".format,
        ),
        require_accuracy("deterministic networks are, before attacks,", LEAST_BASE, {"": accuracies["deterministic"]}),
        require(
            f"variance networks are at most {100 * MOST_LOST:g} points less accurate than networks with dropout",
            "accuracy that they lose",
            {"": accuracies["dropout"] - accuracies["variance"]},
            lambda lost: lost <= MOST_LOST,
            format_percent,
        ),
    ]
    untried = "Not tried in the papers: the same holds when the attack"
    verdicts = [
        judge_attack(found, "The variance ensemble is attacked least, then the variance network (through one draw).", ONE),
        judge_attack(found, f"{untried} follows the average over ten draws.", AVERAGE),
        judge_entropy(found),
        judge_attack(found, f"{untried} follows the average over a hundred draws.", MANY),
        judge_attack(found, f"{untried} is that of a deterministic network.", TRANSFER),
    ]
    return judge_under(verdicts, *conditions)


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(10, 7)
    panels = figure.subplots(2, 2, sharex=True)
    titles = {"one draw": "through one draw, as in the paper", "average": "through the average of ten draws"}
    for column, through in enumerate(titles):
        for index, method in enumerate(METHODS):
            name = f"{method}, {through if method in NOISY else AVERAGE}"
            cell = next(cell["found"] for key, cell in result["cells"].items() if key.startswith(name))
            steps = range(len(cell["success"]))
            panels[0][column].plot(
                steps, [100 * value for value in cell["success"]], label=None if column else method, **line_style(index)
            )
            panels[1][column].plot(steps, cell["entropy"], **line_style(index))
        panels[0][column].set_title(f"Attacked {titles[through]}", loc="left", fontsize=11)
        panels[0][column].set_ylabel("images with the target as answer, %")
        panels[1][column].set_ylabel("mean predictive entropy, nats")
        panels[1][column].set_xlabel("iterations of 0.5/255")
        for row in panels:
            row[column].set_xticks(range(0, len(cell["success"]), 5))
            style_axes(row[column])
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9)


RECIPE = Recipe(
    id="variance/figure-7",
    title="Targeted attacks",
    question="Are variance networks harder to attack, or only harder to find a gradient of?",
    source="figure 7, section 6.3; entropies: figure 2b of the earlier version",
    scales={
        "smoke": Scale(
            "100 digits in 32×32, narrow fast networks, 1 epoch; 4 images, 1 iteration.",
            list_cells("smoke", 4, 1, parts=2),
        ),
        "cpu": Scale(
            "The networks of table-2 with dropout and with one variance layer, five of each kind; 1,000 test images, 20 "
            "iterations "
            "of 0.5/255 in the sign's direction, ten draws in an answer; deep ensembles of five. The figure shows the "
            "first network.",
            list_cells("cpu", 1000, 20),
            ("cifar10",),
        ),
        "paper": Scale(
            "The VGG-like networks on CIFAR-10; 10,000 test images, 20 iterations.",
            list_cells("paper", 10_000, 20),
            ("cifar10",),
        ),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "method": "method",
        "through": "gradient through",
        "accuracy": "accuracy, %",
        "early": "success at a quarter, %",
        "late": "success at the end, %",
        "area": "mean success, %",
        "area_margin": "±",
        "clean_entropy": "entropy before, nats",
        "entropy": "entropy at the end, nats",
    },
    draw=draw,
    departures=[
        FAST_DEPARTURE,
        "The paper's step of 0.5 has no unit: ours is half a grey level of 255. In pixels from 0 to 1 two steps would leave "
        "no image.",
    ],
)
