"""mimo/figure-4: whose units the pre-activations are, where subnetworks go while they learn, and how diverse they become."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import lightning as L
import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from ...analysis.diversity import disagreement
from ...analysis.separation import measure_separation
from ...analysis.trajectories import Trajectories
from ...file_formats.schema import MOST_ENTRIES, NotNegative, Schema, Share, Values
from ...reports.svg import MUTED, line_style, marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, format_percent, judge_claim
from .configurations import HALF, SEEDS, configure, describe_mimo, require_regime
from .figure_3 import METHODS as SMALL_METHODS
from .figure_3 import SIZES as SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIVERSE: dict[str, Json] = {
    "multihead": {"name": "multihead", "members": 3},
    "TreeNet": {"name": "treenet", "members": 3},
    "BatchEnsemble": {"name": "batch-ensemble", "members": 3},
    "MIMO": describe_mimo(3),
    "independent": {"name": "deep-ensemble", "members": 3},
}
ROWS = {"smoke": 20, "cpu": 200, "paper": 500}
"""How many test rows the input of a subnetwork takes, and how many the trajectories are of."""
CONTEXTS = {"smoke": 2, "cpu": 16, "paper": 64}
SHOWN = 1500
"""Units in the pictures."""
TRAJECTORY_SEED = 10
"""Its training has no other recipe: it is recorded epoch by epoch."""


def list_cells(scale: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    size = {"rows": ROWS[scale], "contexts": CONTEXTS[scale]}
    for seed in range(SEEDS[scale]):
        for count in (2, 3):
            training = configure(scale, describe_mimo(count), seed)
            found[f"separation, M = {count}, seed {seed}"] = {"seed": seed, "kind": "separation", "training": training} | size
        for name, method in DIVERSE.items():
            training = configure(scale, method, seed, HALF)
            found[f"diversity, {name}, seed {seed}"] = {"seed": seed, "kind": "diversity", "training": training}
    training = SMALL[scale]["training"] | {"method": SMALL_METHODS["MIMO"], "seed": TRAJECTORY_SEED}
    found["trajectories"] = {"seed": TRAJECTORY_SEED, "kind": "trajectories", "training": training, "rows": ROWS[scale]}
    return found


Points = Annotated[list[Annotated[list[Values], Field(min_length=1)]], Field(min_length=1, max_length=MOST_ENTRIES)]


class Measured(Schema):
    """What one panel shows of one network; the others are None."""

    accuracy: Share
    separation: Share | None = None
    shares: Annotated[list[Values], Field(min_length=1, max_length=16)] | None = None
    """For each input, its part in the variance of each unit that is shown."""
    disagreement: Share | None = None
    linear: Points | None = None
    """By step and member, a point in two principal components."""
    explained: Share | None = None
    neighbours: Points | None = None
    """The same by t-SNE."""
    apart: NotNegative | None = None
    """The distance between members at the end, as a multiple of the way that each went."""


def measure(options: Json, workspace: Workspace) -> Json:
    if options["kind"] == "trajectories":
        return measure_trajectories(options, workspace)
    done = train_once(options["training"], workspace)
    answer = done.ensemble.predict(done.x)
    found: Json = {"accuracy": (answer.labels == done.y).double().mean().item()}
    if options["kind"] == "diversity":
        return found | {"disagreement": disagreement(answer)}
    workspace.report("conditional variances")
    measured = measure_separation(done.ensemble, done.x[: options["rows"]], contexts=options["contexts"])
    chosen = torch.randperm(measured.shares.shape[1], generator=torch.Generator().manual_seed(0))[:SHOWN]
    return found | {"separation": measured.score, "shares": measured.shares[:, chosen].tolist()}


def measure_trajectories(options: Json, workspace: Workspace) -> Json:
    """Train SmallCNN, and look at its members' predictions after every epoch."""
    folder = workspace.folder / "predictions"
    folder.mkdir(parents=True, exist_ok=True)
    rows = options["rows"]
    done = train_once(
        options["training"], workspace, lambda data: [PredictionRecorder(data.preparation(data.test.x[:rows]), folder)]
    )
    path = Trajectories(done.x[:rows])
    for place in sorted(folder.glob("epoch-*.npy")):
        path.add(torch.from_numpy(np.load(place, allow_pickle=False)), int(place.stem.partition("-")[2]))
    points = path.predictions
    travelled = (points[-1] - points[0]).norm(dim=-1).mean()
    between = torch.pdist(points[-1]).mean()
    linear, explained = path.project_linearly()
    near = path.project_by_neighbours(perplexity=min(10.0, points.shape[0] * points.shape[1] / 4))
    return {
        "accuracy": (done.ensemble.predict(done.x).labels == done.y).double().mean().item(),
        "linear": linear.tolist(),
        "explained": explained,
        "neighbours": near.tolist(),
        "apart": (between / travelled).item(),
    }


class PredictionRecorder(L.Callback):
    """Writes the members' probabilities before the first and after every epoch: a training may be stopped at any time."""

    def __init__(self, x: Tensor, folder: Path) -> None:
        self.x, self.folder = x, folder

    def write(self, epoch: int, module: Any) -> None:
        place = self.folder / f"epoch-{epoch:04d}.npy"
        temporary = place.with_suffix(".part")
        with temporary.open("wb") as file:
            np.save(file, module.ensemble.predict(self.x).members.numpy())
        temporary.replace(place)

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if trainer.current_epoch == 0:
            self.write(0, module)

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.write(trainer.current_epoch + 1, module)


def collect(found: Found, name: str, key: str) -> list[float]:
    """A number of the cells of one setting, by seed."""
    return [cell[key] for label, cell in found.items() if label.startswith(f"{name}, seed")]


def tabulate(found: Found) -> list[Json]:
    table: list[Json] = []
    for count in (2, 3):
        if scores := collect(found, f"separation, M = {count}", "separation"):
            table.append({"what": f"separation of units, MIMO M = {count}", "value": float(np.mean(scores))})
    if "trajectories" in found:
        table.append({"what": "distance of members over their way, SmallCNN", "value": found["trajectories"]["apart"]})
    for name in DIVERSE:
        if values := collect(found, f"diversity, {name}", "disagreement"):
            table.append({"what": f"disagreement of two members, {name}, %", "value": 100 * float(np.mean(values))})
    return table


def judge(found: Found) -> list[Verdict]:
    separated = {count: float(np.mean(collect(found, f"separation, M = {count}", "separation"))) for count in (2, 3)}
    diverse = {name: float(np.mean(collect(found, f"diversity, {name}", "disagreement"))) for name in DIVERSE}
    apart = found["trajectories"]["apart"]
    others = max(diverse[name] for name in ("multihead", "TreeNet", "BatchEnsemble"))
    regime = require_regime(max(cell["accuracy"] for cell in found.values()))
    verdicts = [
        judge_claim(
            "Almost all pre-activations react to one input alone.",
            "separation (1: each unit to one input, 0: all alike) at least 0.9 for M = 2 and M = 3; direction: at least 0.5",
            ", ".join(f"M = {count} {value:.2f}" for count, value in separated.items()),
            min(separated.values()) >= 0.9,
            min(separated.values()) >= 0.5,
        ),
        judge_claim(
            "The training trajectories of the subnetworks end in different optima.",
            "at the end, the distance between two subnetworks in prediction space is at least a quarter of the way that each "
            "went; direction: at least a tenth",
            f"{apart:.2f} of the way",
            apart >= 0.25,
            apart >= 0.1,
        ),
        judge_claim(
            "MIMO's members are more diverse than those of multihead, TreeNet and BatchEnsemble, and as diverse as independent "
            "networks.",
            "disagreement above the other three, and at least 0.9 times that of independent networks; direction: above the "
            "other three",
            ", ".join(f"{name} {format_percent(value, 1)}" for name, value in diverse.items()),
            diverse["MIMO"] > others and diverse["MIMO"] >= 0.9 * diverse["independent"],
            diverse["MIMO"] > others,
        ),
    ]
    return [regime.excuse(verdict) for verdict in verdicts]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(12, 6.4)
    panels = figure.subplots(2, 3)
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    two, three = (found[f"separation, M = {count}, seed 0"]["shares"] for count in (2, 3))
    panels[0][0].hist(two[0], bins=40, range=(0, 1), color=marker_style(0)["color"])
    panels[0][0].set_title("M = 2: units by the part of input 1", loc="left", fontsize=10)
    panels[0][0].set_xlabel("part of input 1 in the variance")
    panels[0][1].scatter(three[0], three[1], s=4, alpha=0.5, color=marker_style(0)["color"])
    panels[0][1].set_title("M = 3: units by the parts of inputs 1 and 2", loc="left", fontsize=10)
    panels[0][1].set_xlabel("part of input 1")
    panels[0][1].set_ylabel("part of input 2")
    names = [name for name in DIVERSE if collect(found, f"diversity, {name}", "disagreement")]
    values = [100 * float(np.mean(collect(found, f"diversity, {name}", "disagreement"))) for name in names]
    panels[0][2].barh(names[::-1], values[::-1], color=marker_style(0)["color"])
    panels[0][2].set_title("disagreement of two members, %", loc="left", fontsize=10)
    path = found["trajectories"]
    for axes, key, title in (
        (panels[1][0], "linear", f"trajectories, two components ({path['explained']:.0%})"),
        (panels[1][1], "neighbours", "trajectories, t-SNE"),
    ):
        points = np.array(path[key])
        for member in range(points.shape[1]):
            axes.plot(*points[:, member].T, label=f"member {member + 1}", **line_style(member))
            axes.scatter(*points[-1, member], s=30, color=line_style(member)["color"])
        axes.set_title(title, loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=7)
        axes.tick_params(labelsize=7, colors=MUTED)
    panels[1][2].axis("off")
    for axes in panels.flat[:5]:
        style_axes(axes)


RECIPE = Recipe(
    id="mimo/figure-4",
    title="Separation, trajectories and diversity",
    question="Do the subnetworks use units of their own, and do they become different functions?",
    source="figure 4, sections 3.2 and 3.3",
    scales={
        "smoke": Scale("100 digits, half of SmallCNN, 1 epoch.", list_cells("smoke")),
        "cpu": Scale(
            "Separation: the fast network on 5,000 rows of CIFAR-10, 40 epochs, ρ = 0, three seeds; 200 rows and 16 "
            "combinations of the other inputs. Diversity: the same, half as wide, three members each. Trajectories: SmallCNN "
            "on CIFAR-10, M = 3, 30 epochs, 200 test rows.",
            list_cells("cpu"),
            ("cifar10",),
        ),
        "paper": Scale("WRN-28-10 and SmallCNN on CIFAR-10.", list_cells("paper"), ("cifar10",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"what": "what", "value": "value"},
    draw=draw,
    departures=[
        "The text of section 3.3 describes the variance over the other inputs, its formula that over a subnetwork's own: the "
        "formula is used. A map of principal components stands beside the t-SNE of figure-4, which alone can mislead."
    ],
)
