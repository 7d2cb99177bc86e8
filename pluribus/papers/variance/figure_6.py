"""variance/figure-6: policies that explore by the noise of their weights, learnt by REINFORCE."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from ...core.files import write_file
from ...file_formats.schema import MOST_ENTRIES, Finite, Positive, Schema, Text, Values
from ...reports.svg import line_style, style_axes
from ...training.checkpoint_files import read_checkpoint, serialize_checkpoint
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from .environments import Acrobot, CartPole
from .reinforce import POLICIES, Learner, Settings, learn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENVIRONMENTS: dict[str, type[CartPole] | type[Acrobot]] = {"CartPole": CartPole, "Acrobot": Acrobot}
SAVED = 50
"""Episodes between two saved states."""
SMOOTH = 20
STUDENT = {2: 12.706, 3: 4.303, 5: 2.776, 9: 2.306}
"""97.5 % quantiles of Student's t for a mean of so many seeds."""


RATES = (3e-3, 1e-3, 3e-4)
"""Learning rates to choose from, for each policy and environment on the seeds PILOTS."""
PILOTS = (100, 101)


def list_cells(seeds: int, episodes: int, pilot: int, hidden: int = 256) -> dict[str, Json]:
    shared = {"seeds": list(range(seeds)), "episodes": episodes, "pilot": pilot, "hidden": hidden}
    pairs = product(ENVIRONMENTS, POLICIES)
    return {f"{world}, {policy}": {"world": world, "policy": policy} | shared for world, policy in pairs}


class Measured(Schema):
    """The chosen learning rate, the score of every rate that was tried, and the scores of all episodes, `[seeds, episodes]`."""

    rate: Positive
    pilots: dict[Text, Finite]
    scores: Annotated[list[Values], Field(min_length=1, max_length=MOST_ENTRIES)]


def measure(options: Json, workspace: Workspace) -> Json:
    def play(rate: float, seeds: Sequence[int], episodes: int) -> np.ndarray:
        settings = Settings(options["policy"], ENVIRONMENTS[options["world"]](), options["hidden"], learning_rate=rate)
        file = workspace.folder / f"{rate:g}-{len(seeds)}-{episodes}.safetensors"
        state: Any = read_checkpoint(file) if file.is_file() else None

        def after(learner: Learner) -> None:
            if learner.episodes % SAVED == 0:
                workspace.report(f"rate {rate:g}, {len(seeds)} seeds, episode {learner.episodes}/{episodes}")
                write_file(file, serialize_checkpoint(learner.state_dict()))

        return learn(settings, seeds, episodes, state, after)

    pilots = {rate: float(average_last_tenth(play(rate, PILOTS, options["pilot"])).mean()) for rate in RATES}
    best = max(pilots, key=pilots.__getitem__)
    scores = play(best, options["seeds"], options["episodes"])
    return {"rate": best, "pilots": {f"{rate:g}": score for rate, score in pilots.items()}, "scores": scores.tolist()}


def average_last_tenth(scores: np.ndarray) -> np.ndarray:
    """Return the mean score of the last tenth of the episodes, by seed: `[S, episodes]` → `[S]`."""
    return scores[:, -max(scores.shape[1] // 10, 1) :].mean(1)


def final_scores(found: Found, name: str) -> np.ndarray:
    """The mean score of the last tenth of the episodes of a cell, by seed."""
    return average_last_tenth(np.array(found[name]["scores"]))


def early_scores(found: Found, name: str) -> np.ndarray:
    """The mean score of the first three tenths of the episodes of a cell, by seed."""
    scores = np.array(found[name]["scores"])
    return scores[:, : max(3 * scores.shape[1] // 10, 1)].mean(1)


def student_interval(differences: np.ndarray) -> tuple[float, float, float]:
    """The mean over seeds, and its 95 % interval by Student's t."""
    mean, count = float(differences.mean()), len(differences)
    half = STUDENT[count] * float(differences.std(ddof=1)) / count**0.5
    return mean, mean - half, mean + half


def tabulate(found: Found) -> list[Json]:
    table = []
    for name in found:
        world, policy = name.split(", ")
        own = final_scores(found, name)
        mean, low, high = student_interval(own)
        table.append(
            {
                "world": world,
                "policy": policy,
                "rate": found[name]["rate"],
                "begin": float(early_scores(found, name).mean()),
                "end": mean,
                "low": low,
                "high": high,
            }
        )
    return table


def judge(found: Found) -> list[Verdict]:
    verdicts = []
    for world in ENVIRONMENTS:
        others = [policy for policy in POLICIES if policy != "variance"]
        gains = {
            policy: student_interval(final_scores(found, f"{world}, variance") - final_scores(found, f"{world}, {policy}"))
            for policy in others
        }
        slower = {
            policy: student_interval(early_scores(found, f"{world}, variance") - early_scores(found, f"{world}, {policy}"))
            for policy in others
        }
        verdicts += [
            judge_claim(
                f"{world}: the variance policy ends higher.",
                "the mean score of the last tenth of episodes is above both others', with a 95 % interval of the difference "
                "(paired by seed) above zero; direction: above both",
                format_differences(gains),
                all(low > 0 for _, low, _ in gains.values()),
                all(mean > 0 for mean, _, _ in gains.values()),
            ),
            judge_claim(
                f"{world}: the variance policy is slower.",
                "the same, below both others', over the first three tenths; direction: below both",
                format_differences(slower),
                all(high < 0 for _, _, high in slower.values()),
                all(mean < 0 for mean, _, _ in slower.values()),
            ),
        ]
    return verdicts


def format_differences(differences: dict[str, tuple[float, float, float]]) -> str:
    each = [f"{mean:+.1f} ({low:+.1f} to {high:+.1f}) against {policy}" for policy, (mean, low, high) in differences.items()]
    return ", ".join(each)


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(10, 4.2)
    for index, (axes, world) in enumerate(zip(figure.subplots(1, 2), ENVIRONMENTS, strict=True)):
        for place, policy in enumerate(POLICIES):
            scores = np.array(result["cells"][f"{world}, {policy}"]["found"]["scores"])
            width = min(SMOOTH, scores.shape[1])
            kernel = np.full(width, 1 / width)
            smooth = np.stack([np.convolve(each, kernel, "valid") for each in scores])
            at, own = np.arange(smooth.shape[1]) + width, line_style(place)
            mean, error = smooth.mean(0), smooth.std(0, ddof=1) / len(smooth) ** 0.5
            axes.plot(at, mean, label=policy if index == 0 else None, **own)
            axes.fill_between(at, mean - error, mean + error, color=own["color"], alpha=0.15, linewidth=0)
        axes.set_title(world, loc="left", fontsize=11)
        axes.set_xlabel("episode")
        axes.set_ylabel(f"score, mean of {width} episodes")
        style_axes(axes)
    figure.suptitle(f"Scores of {len(scores)} seeds: mean and standard error", x=0.01, ha="left", fontsize=11)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)


CHOICE = (
    f"The learning rate of each policy in each world is the best of {', '.join(f'{rate:g}' for rate in RATES)} on two other "
    "seeds after 200 episodes."
)
RECIPE = Recipe(
    id="variance/figure-6",
    title="REINFORCE with noisy policies",
    question="Does a variance layer explore better than a mean with noise?",
    source="figure 6, section 6.2",
    scales={
        "smoke": Scale("2 seeds, 2 episodes, 8 neurons a layer.", list_cells(2, 2, 1, 8)),
        "cpu": Scale(f"9 seeds, 1000 episodes, as published. {CHOICE}", list_cells(9, 1000, 200)),
        "paper": Scale(f"9 seeds, 1000 episodes. {CHOICE}", list_cells(9, 1000, 200)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "world": "world",
        "policy": "policy",
        "rate": "learning rate",
        "begin": "score, first three tenths",
        "end": "score, last tenth",
        "low": "interval from",
        "high": "to",
    },
    draw=draw,
    departures=["Discount, learning rate and baseline of REINFORCE are not in the paper; reinforce.py says what stands there."],
)
