"""variance/figure-6: policies that explore by the noise of their weights, learnt by REINFORCE.

Scale cpu takes about 130 minutes of one core at most: 66 pilots of 1,000 episodes, of which one of four seeds takes 0.08 s
with 500 steps in Acrobot, 0.03 s to 0.17 s in CartPole, and 9 runs of twelve seeds.
"""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from ...core.files import write_file
from ...file_formats.schema import MOST_ENTRIES, Count, Finite, Positive, Schema, Text, Values
from ...reports.svg import line_style, style_axes
from ...training.checkpoint_files import read_checkpoint, serialize_checkpoint
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Precondition, Verdict, judge_claim, skip_claim
from .environments import Acrobot, CartPole, Environment
from .preconditions import UNMEASURED, judge_under, require
from .reinforce import POLICIES, Learner, Settings, learn
from .seeds import Estimate, estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORLDS: dict[str, Environment] = {"CartPole": CartPole(), "CartPole-v1": CartPole(500), "Acrobot": Acrobot()}
"""CartPole has the 200 steps of version 0, which a good policy reaches; version 1 has 500."""
LIMITS = {"CartPole": 200, "CartPole-v1": 500}
"""The highest score that there is."""
SAVED = 50
"""Episodes between two saved states."""
SMOOTH = 20
RATES = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
"""Learning rates to choose from, for each policy and environment on the seeds PILOTS."""
FIRST_SIGMAS = (1 / 3, 1.0, 3.0)
"""Factors of the usual first σ to choose from after that, for the policies that have one."""
PILOTS = (100, 101, 102, 103)
SEEDS = tuple(range(20, 32))
"""Other seeds than those on which the rules were written."""
LEAST_SEEDS, LEAST_PILOTS, MOST_OF_LIMIT = 12, 4, 0.95


def list_cells(
    seeds: Sequence[int], episodes: int, hidden: int = 256, rates: Sequence[float] = RATES, pilots: Sequence[int] = PILOTS
) -> dict[str, Json]:
    shared = {"seeds": list(seeds), "episodes": episodes, "pilots": list(pilots), "rates": list(rates), "hidden": hidden}
    return {f"{world}, {policy}": {"world": world, "policy": policy} | shared for world, policy in product(WORLDS, POLICIES)}


class Measured(Schema):
    """What was chosen, the score of everything that was tried, and the scores of all episodes, `[seeds, episodes]`.

    Pilots are named by learning rate, those of other first σ by rate and factor; `pilot_seeds` and `pilot_episodes` say how
    much each of them played.
    """

    rate: Positive
    pilots: dict[Text, Finite]
    scores: Annotated[list[Values], Field(min_length=1, max_length=MOST_ENTRIES)]
    first_sigma: Positive | None = None
    pilot_seeds: Count | None = None
    pilot_episodes: Count | None = None


def measure(options: Json, workspace: Workspace) -> Json:
    episodes = options["episodes"]

    def play(rate: float, factor: float, seeds: Sequence[int]) -> np.ndarray:
        world = WORLDS[options["world"]]
        settings = Settings(options["policy"], world, options["hidden"], learning_rate=rate, sigma_factor=factor)
        file = workspace.folder / f"{rate:g}-{factor:.2g}-{seeds[0]}-{len(seeds)}.safetensors"
        state: Any = read_checkpoint(file) if file.is_file() else None

        def after(learner: Learner) -> None:
            if learner.episodes % SAVED == 0:
                workspace.report(
                    f"rate {rate:g}, σ times {factor:.2g}, {len(seeds)} seeds, episode {learner.episodes}/{episodes}"
                )
                write_file(file, serialize_checkpoint(learner.state_dict()))

        return learn(settings, seeds, episodes, state, after)

    def try_out(rate: float, factor: float) -> float:
        return float(average_last_tenth(play(rate, factor, options["pilots"])).mean())

    by_rate = {rate: try_out(rate, 1.0) for rate in options["rates"]}
    rate = max(by_rate, key=by_rate.__getitem__)
    by_factor = {1.0: by_rate[rate]}
    if options["policy"] != "deterministic":
        by_factor |= {factor: try_out(rate, factor) for factor in FIRST_SIGMAS if factor != 1}
    factor = max(by_factor, key=by_factor.__getitem__)
    tried = {f"{each:g}": score for each, score in by_rate.items()}
    tried |= {f"{rate:g}, σ times {each:.2g}": score for each, score in by_factor.items() if each != 1}
    return {
        "rate": rate,
        "pilots": tried,
        "scores": play(rate, factor, options["seeds"]).tolist(),
        "first_sigma": factor,
        "pilot_seeds": len(options["pilots"]),
        "pilot_episodes": episodes,
    }


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


def tabulate(found: Found) -> list[Json]:
    table = []
    for name, cell in found.items():
        world, policy = name.split(", ")
        mean, low, high = estimate(final_scores(found, name))
        row = {"world": world, "policy": policy, "rate": cell["rate"], "first_sigma": cell.get("first_sigma")}
        table.append(row | {"begin": float(early_scores(found, name).mean()), "end": mean, "low": low, "high": high})
    return table


def is_inside(cell: Json) -> bool:
    """Whether lower and higher learning rates than the chosen one were tried."""
    rates = [float(name) for name in cell["pilots"] if ", " not in name]
    return min(rates) < cell["rate"] < max(rates)


def require_choice(cells: dict[str, Json]) -> list[Precondition]:
    """The conditions of a fair choice of the learning rates, of every policy in a world."""
    edges = [f"{policy} at {cell['rate']:g}" for policy, cell in cells.items() if not is_inside(cell)]
    fair = [
        cell.get("pilot_seeds") is not None
        and cell["pilot_seeds"] >= LEAST_PILOTS
        and cell["pilot_episodes"] == len(cell["scores"][0])
        for cell in cells.values()
    ]
    seen = {(cell.get("pilot_seeds"), cell.get("pilot_episodes")) for cell in cells.values()}
    listed = "; ".join(
        f"the length of pilots {UNMEASURED}" if count is None else f"{count} seeds, {length} episodes" for count, length in seen
    )
    return [
        Precondition(
            "the best learning rate of every policy lies inside those that were tried",
            f"the best lies at the edge: {', '.join(edges)}" if edges else "it does",
            not edges,
        ),
        Precondition(
            f"rates were chosen on at least {LEAST_PILOTS} other seeds after as many episodes as are played", listed, all(fair)
        ),
    ]


def judge(found: Found) -> list[Verdict]:
    return [verdict for world in WORLDS for verdict in judge_world(found, world)]


def judge_world(found: Found, world: str) -> list[Verdict]:
    """The verdicts on one world."""
    claims = [f"{world}: the variance policy ends higher.", f"{world}: the variance policy is slower."]
    cells = {policy: found[f"{world}, {policy}"] for policy in POLICIES if f"{world}, {policy}" in found}
    if len(cells) < len(POLICIES):
        return [skip_claim(claim, "what is recorded does not have this world") for claim in claims]
    others = [policy for policy in POLICIES if policy != "variance"]
    ends, begins = ({policy: take(found, f"{world}, {policy}") for policy in POLICIES} for take in (final_scores, early_scores))
    gains = {policy: estimate(ends["variance"] - ends[policy]) for policy in others}
    slower = {policy: estimate(begins["variance"] - begins[policy]) for policy in others}
    higher = judge_claim(
        claims[0],
        "the mean score of the last tenth of episodes is above both others', with a 95 % interval of the difference (paired by "
        "seed) above zero; direction: above both",
        format_differences(gains),
        all(gain.low > 0 for gain in gains.values()),
        all(gain.value > 0 for gain in gains.values()),
    )
    late = judge_claim(
        claims[1],
        "the same, below both others', over the first three tenths; direction: below both",
        format_differences(slower),
        all(gain.high < 0 for gain in slower.values()),
        all(gain.value < 0 for gain in slower.values()),
    )
    enough = require(
        f"there are at least {LEAST_SEEDS} seeds",
        "seeds",
        {"": float(min(len(cell["scores"]) for cell in cells.values()))},
        lambda count: count >= LEAST_SEEDS,
        "{:.0f}".format,
    )
    conditions = [enough, *require_choice(cells)]
    room = []
    if world in LIMITS:
        room.append(
            require(
                f"both others leave room above them: they end at no more than {100 * MOST_OF_LIMIT:g} % of "
                f"{LIMITS[world]}, the "
                "highest score",
                "they end at",
                {policy: float(ends[policy].mean()) for policy in others},
                lambda score: score <= MOST_OF_LIMIT * LIMITS[world],
                "{:.1f}".format,
            )
        )
    return [*judge_under([higher], *conditions, *room), *judge_under([late], *conditions)]


def format_differences(differences: dict[str, Estimate]) -> str:
    each = [f"{mean:+.1f} ({low:+.1f} to {high:+.1f}) against {policy}" for policy, (mean, low, high) in differences.items()]
    return ", ".join(each)


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(13, 4.2)
    for index, (axes, world) in enumerate(zip(figure.subplots(1, len(WORLDS)), WORLDS, strict=True)):
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
    f"The learning rate of each policy in each world is the best of {', '.join(f'{rate:g}' for rate in RATES)} on four "
    "other seeds, "
    "by the last tenth of all episodes; then the first σ is the best of a third, one and three times the usual one."
)
RECIPE = Recipe(
    id="variance/figure-6",
    title="REINFORCE with noisy policies",
    question="Does a variance layer explore better than a mean with noise?",
    source="figure 6, section 6.2",
    scales={
        "smoke": Scale("2 seeds, 2 episodes, 8 neurons a layer.", list_cells((20, 21), 2, 8, (1e-3,), (100,))),
        "cpu": Scale(f"12 seeds, 1000 episodes. {CHOICE}", list_cells(SEEDS, 1000)),
        "paper": Scale(f"12 seeds (the paper: 9), 1000 episodes. {CHOICE}", list_cells(SEEDS, 1000)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "world": "world",
        "policy": "policy",
        "rate": "learning rate",
        "first_sigma": "first σ, times the usual",
        "begin": "score, first three tenths",
        "end": "score, last tenth",
        "low": "interval from",
        "high": "to",
    },
    draw=draw,
    departures=[
        "Discount, learning rate and baseline of REINFORCE are not in the paper; reinforce.py says what stands there.",
        "CartPole has the 200 steps of version 0; CartPole-v1, with 500, is not in the paper.",
    ],
)
