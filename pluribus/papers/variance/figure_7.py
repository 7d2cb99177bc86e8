"""variance/figure-7: targeted iterated fast sign attacks through one draw, as in the paper, and through an average."""

from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field

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
from ..verdicts import Verdict, format_percent, judge_claim
from .configurations import configure_dropout_vgg, configure_variational_vgg, configure_zero_mean_vgg
from .trainings import Training, train_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("deterministic", "dropout", "deep ensemble", "variance", "variance ensemble")
OTHERS = ("deterministic", "dropout", "deep ensemble")
NOISY = ("dropout", "variance", "variance ensemble")
PARTS, DRAWS = 5, 10
STEP = 0.5 / 255


def list_cells(scale: str, images: int, iterations: int, parts: int = PARTS) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for method in METHODS:
        noisy = configure_variational_vgg if scale == "paper" else configure_zero_mean_vgg
        make = noisy if "variance" in method else configure_dropout_vgg
        seeds = range(parts) if "ensemble" in method else range(1)
        trainings = [make(scale, seed).to_json() for seed in seeds]
        for through in ("one draw", "average") if method in NOISY else ("average",):
            options = {"seed": 0, "images": images, "iterations": iterations, "through": through, "method": method}
            found[f"{method}, {through}"] = options | {"trainings": trainings}
    return found


class Measured(Schema):
    """The accuracy without an attack; the attack's success and the entropy after each iteration; the number of images."""

    accuracy: Share
    success: Annotated[list[Share], Field(min_length=1, max_length=MOST_ENTRIES)]
    entropy: Values
    images: Size


def measure(options: Json, workspace: Workspace) -> Json:
    done = [train_once(Training.from_json(training), workspace) for training in options["trainings"]]
    ensemble = join_networks([each.ensemble for each in done], options["method"])
    data, count = done[0].data, options["images"]
    x, y = done[0].x[:count], done[0].y[:count]
    generator = torch.Generator().manual_seed(options["seed"])
    targets = (y + torch.randint(1, data.outputs, y.shape, generator=generator)) % data.outputs
    preparation = data.preparation
    mean, deviation = (torch.tensor(getattr(preparation, name)).view(-1, 1, 1) for name in ("mean", "std"))
    spec = Attack(
        epsilon=None,
        step=STEP,
        iterations=options["iterations"],
        targeted=True,
        samples=1 if options["through"] == "one draw" else DRAWS,
    )
    workspace.report("attacking")
    low, high = -mean / deviation, (1 - mean) / deviation
    found = attack(ensemble, x.clamp(low, high), targets, spec, low=low, high=high, scale=1 / deviation, seed=options["seed"])
    clean = (ensemble.predict(x).labels == y).double().mean().item()
    return {
        "accuracy": clean,
        "success": found.path_success.tolist(),
        "entropy": found.path_entropy.tolist(),
        "images": count,
    }


def join_networks(parts: list[Ensemble], method: str) -> Ensemble:
    """Return the ensemble that is attacked: one network, one noisy network with ten draws, or a deep ensemble of the parts."""
    if method == "dropout":
        return pluribus.ensemble(parts[0].member(0), MCDropout(samples=DRAWS))
    if method in ("deterministic", "variance"):
        parts[0].samples = DRAWS
        return parts[0]
    spec = parts[0].spec
    assert isinstance(spec, Single | Variance | VariationalDropout)
    deep = pluribus.ensemble(copy_base_network(parts[0]), DeepEnsemble(len(parts), of=spec))
    for own, part in zip([m for m in deep.net.children() if isinstance(m, Ensemble)], parts, strict=True):
        own.load_state_dict(part.state_dict())
        own.samples = DRAWS if own.sampled else own.samples
    return deep.eval()


def copy_base_network(part: Ensemble) -> torch.nn.Module:
    """Return the network that the part was made from, with arbitrary weights."""
    return part.conversion.base.to_empty(device="cpu")


def tabulate(found: Found) -> list[Json]:
    table = []
    for name, cell in found.items():
        method, through = name.split(", ")
        quarter = len(cell["success"]) // 4
        table.append(
            {
                "method": method,
                "through": through,
                "accuracy": 100 * cell["accuracy"],
                "early": 100 * cell["success"][quarter],
                "late": 100 * cell["success"][-1],
                "clean_entropy": cell["entropy"][0],
                "entropy": cell["entropy"][-1],
            }
        )
    return table


def average_success(cell: Json) -> float:
    """Return the mean success over all iterations."""
    return sum(cell["success"]) / len(cell["success"])


def compare_success(success: dict[str, float]) -> tuple[bool, bool]:
    """Whether the attack succeeds least on the variance ensemble, then on the variance network; and whether the first holds."""
    variance, ensemble = success["variance"], success["variance ensemble"]
    best = min(success[method] for method in OTHERS)
    return ensemble <= variance < best, ensemble <= variance and ensemble < best


def judge(found: Found) -> list[Verdict]:
    paper = {method: found[f"{method}, {'one draw' if method in NOISY else 'average'}"] for method in METHODS}
    areas = {method: average_success(cell) for method, cell in paper.items()}
    evidence = ", ".join(f"{method} {format_percent(areas[method], 0)}" for method in METHODS)
    averaged = {method: average_success(found[f"{method}, average"]) for method in METHODS}
    strong = ", ".join(f"{method} {format_percent(averaged[method], 0)}" for method in METHODS)
    gain = {method: cell["entropy"][-1] - cell["entropy"][0] for method, cell in paper.items()}
    return [
        judge_claim(
            "The variance ensemble is attacked least, then the variance network (through one draw).",
            "mean success over iterations: variance ensemble lowest, variance below all others; direction: variance ensemble "
            "lowest",
            evidence,
            *compare_success(areas),
        ),
        judge_claim(
            "Not tried in the papers: the same holds when the attack follows the average over ten draws.",
            "variance below dropout, deterministic and the deep ensemble, and the variance ensemble lowest of all; "
            "direction: variance ensemble lowest",
            strong,
            *compare_success(averaged),
        ),
        judge_claim(
            "Only variance networks are less sure of attacked images than of clean ones (earlier version).",
            "the mean entropy at the last iteration is above that before the first for both variance networks, and not for "
            "the others; direction: for both variance networks",
            ", ".join(f"{method} {value:+.2f}" for method, value in gain.items()) + " nats",
            min(gain["variance"], gain["variance ensemble"]) > 0 and max(gain[method] for method in OTHERS) <= 0,
            min(gain["variance"], gain["variance ensemble"]) > 0,
        ),
    ]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(10, 7)
    panels = figure.subplots(2, 2, sharex=True)
    titles = {"one draw": "through one draw, as in the paper", "average": "through the average of ten draws"}
    for column, through in enumerate(titles):
        for index, method in enumerate(METHODS):
            cell = result["cells"][f"{method}, {through if method in NOISY else 'average'}"]["found"]
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
            "100 digits in 32×32, narrow VGG-like networks, 1 epoch; 10 images, 2 iterations.",
            list_cells("smoke", 10, 2, parts=2),
        ),
        "cpu": Scale(
            "Networks with dropout as in table-2's cpu scale, and from each of them one whose first dense layer is a "
            "variance layer (zero means), 4 epochs more; five of each kind. 200 test images, 20 iterations of 0.5/255 in the "
            "sign's direction, ten draws; deep ensembles of five.",
            list_cells("cpu", 200, 20),
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
        "clean_entropy": "entropy before, nats",
        "entropy": "entropy at the end, nats",
    },
    draw=draw,
    departures=[
        "The paper's step of 0.5 has no unit: ours is half a grey level of 255. In pixels from 0 to 1 two steps would leave "
        "no image."
    ],
)
