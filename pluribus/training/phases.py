"""The phases of a run whose learning rate warms up, stays, and falls to zero: where they begin, and when a run has converged.

With a fixed number of epochs, the fall takes the last `decay_share` of them. With `epochs="auto"`, it begins when the
validation score no longer improves:

    score        the calibrated NLL of the validation rows, or the RMSE of a regression; the median of the last three epochs
    converged    after n epochs, if the score has not become lower by 0.1 % or more for n / 3 epochs, at least 5, and 250 steps
    fall         after e epochs at the full rate, e · decay_share / (1 − decay_share) more epochs, rounded, and at least one

A network that learns slowly improves rarely but for long, hence the share of n; of few rows an epoch is a few steps, hence the
number of steps. With five epochs and a quarter of n, a network for the 927 rows of uci-concrete stopped after 37 epochs with a
test RMSE of 4.6; with this rule it takes 345 epochs to 4.1, MIMO 600 to 3.7 (4.0), a variance network 330 to 500 to 4.3 (4.9 of
one seed). The median is taken because one lucky epoch is
not surpassed for long: on the digits with 130 validation rows, one network would stop after 48 epochs without it, and after 91
with it. The fall begins in time to end at `max_epochs`; a run in which the maximum forces the fall is `still_improving`.

The phases are a function of the history of scores, which a checkpoint holds: a resumed run decides as one that was never
interrupted.

Hu et al., "MiniCPM: Unveiling the Potential of Small Language Models with Scalable Training Strategies", 2024, section 4.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .settings import Settings

PATIENCE = 5
PATIENCE_STEPS = 250
PATIENCE_SHARE = 1 / 3
LEAST_GAIN = 1e-3
SMOOTHED = 3
SCORES = ("validation_calibrated_nll", "validation_nll", "validation_pinball", "validation_rmse")
"""What a run is judged by: the first of them that its history has."""

History = Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class Phases:
    """The plan of a run after some of its epochs. `decay_from` and `epochs` are final once `has_fallen` is true."""

    warmup: float
    decay_from: float
    """Epochs at the end of which the fall begins."""
    epochs: int
    has_fallen: bool
    """Whether the fall has begun."""
    still_improving: bool
    """Whether the score was still improving when the fall began, or is so now."""

    def name_phase(self, done: int) -> str:
        """Return the phase of the epoch after `done` epochs: "warm-up", "stable" or "decay"."""
        if done < self.warmup and done < self.decay_from:
            return "warm-up"
        return "stable" if done < self.decay_from else "decay"


def plan_phases(history: History, settings: Settings) -> Phases | None:
    """Return the phases of a run after the epochs of its history.

    Args:
        history: a row for every epoch so far, with its validation scores, as `fit` returns it.
        settings: those of the run.

    Returns:
        None if the schedule is not "wsd". Before the fall begins, `decay_from` and `epochs` are the latest possible.

    >>> history = [{"validation_nll": score} for score in (0.9, 0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)]
    >>> settings = Settings(epochs="auto", max_epochs=40)
    >>> phases = plan_phases(history[:8], settings)
    >>> phases.decay_from, phases.epochs, phases.has_fallen
    (30, 40, False)
    >>> phases = plan_phases(history, settings)
    >>> phases.decay_from, phases.epochs, phases.has_fallen
    (9, 12, True)
    """
    if settings.schedule != "wsd":
        return None
    patience = max(PATIENCE, math.ceil(PATIENCE_STEPS / count_epoch_steps(history)))
    done, converged = len(history), find_convergence(read_scores(history), settings, patience)
    if settings.epochs != "auto":
        decay_from = settings.epochs * (1 - settings.decay_share)
        improving = converged is None or converged > decay_from
        return Phases(settings.warmup, decay_from, settings.epochs, done >= decay_from, improving)
    latest = find_latest_decay(settings)
    begin = latest if converged is None else min(converged, latest)
    improving = converged is None or converged > latest
    return Phases(settings.warmup, begin, begin + count_decay_epochs(begin, settings.decay_share), done >= begin, improving)


def count_epoch_steps(history: History) -> int:
    """Return how many steps an epoch takes, if the history says so; else so many that their number does not matter."""
    return max(int(history[0].get("step", PATIENCE_STEPS)) if history else PATIENCE_STEPS, 1)


def find_convergence(scores: Sequence[float], settings: Settings, patience: int = PATIENCE) -> int | None:
    """Return after how many epochs the scores, of which smaller is better, had not improved for long; None if never.

    Epochs in which the learning rate or the penalty warms up do not count. `patience` is the least number of epochs without an
    improvement.

    >>> find_convergence([0.9, 0.8, 0.7, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], Settings())
    >>> find_convergence([0.9, 0.8, 0.7, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4], Settings())
    10
    """
    first = math.ceil(max(settings.warmup, settings.kl_warmup))
    best, since = math.inf, 0
    for done in range(first + 1, len(scores) + 1):
        score = statistics.median(scores[max(first, done - SMOOTHED) : done])
        since += 1
        if score < best * (1 - LEAST_GAIN):
            best, since = score, 0
        if since >= max(patience, PATIENCE_SHARE * done):
            return done
    return None


def read_scores(history: History) -> list[float]:
    """Return the score of every epoch that a run is judged by; infinity where it is missing or NaN."""
    name = next((name for name in SCORES if any(name in row for row in history)), SCORES[0])
    found = (row.get(name, math.inf) for row in history)
    return [math.inf if math.isnan(score) else score for score in found]


def count_decay_epochs(before: int, share: float) -> int:
    """Return how many epochs the fall takes after `before` epochs, so that it is `share` of them all; at least one.

    >>> [count_decay_epochs(before, 0.25) for before in (1, 9, 75)]
    [1, 3, 25]
    """
    return max(round(before * share / (1 - share)), 1)


def find_latest_decay(settings: Settings) -> int:
    """Return after how many epochs the fall must begin to end within `max_epochs`.

    >>> find_latest_decay(Settings(epochs="auto", max_epochs=100, decay_share=0.25))
    75
    """
    most, share = settings.max_epochs, settings.decay_share
    guess = math.ceil(most * (1 - share)) + 1  # the number of epochs of the fall is rounded
    return next(count for count in range(guess, -1, -1) if count + count_decay_epochs(count, share) <= most)
