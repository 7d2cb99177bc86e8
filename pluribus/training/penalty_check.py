"""Whether the penalty of a variational method outweighs the data before training begins.

    loss = E_q[−log p(y | x, w)] + kl_weight · KL(q || prior) / rows

The first term need never exceed log C for C classes, the cost of guessing. For the improper priors of variational dropout the
second is zero where the noise is infinite. So where `kl_weight · KL / rows` is above log C at the start, noise that guesses has
a smaller loss than the network as it is, and training leads there unless the data pull harder on the way.
"""

import math

import torch

from ..core.ensemble import Ensemble


class LargePenalty(UserWarning):
    """The penalty of an ensemble costs more than guessing would: a filter of `warnings` can name it."""


@torch.no_grad()
def find_largest_weight(ensemble: Ensemble, classes: int, rows: int, weight: float) -> float | None:
    """The weight at which the penalty of an ensemble that is not trained yet costs as much as guessing; None if it costs less.

    Args:
        classes: C of a classification.
        rows: number of training rows, by which the penalty is divided.
        weight: `kl_weight` of the settings.
    """
    if not ensemble.has_penalty or ensemble.task != "classification" or classes < 2:
        return None
    with torch.random.fork_rng(devices=[]):  # a divergence may be computed by drawing
        penalty, most = ensemble.penalty().item(), rows * math.log(classes)
    return most / penalty if weight * penalty > most else None


def describe_large_penalty(ensemble: Ensemble, classes: int, rows: int, weight: float) -> str | None:
    """Say that the penalty of an ensemble that is not trained yet costs more than guessing would; None if it does not.

    Takes what `find_largest_weight` takes.
    """
    most = find_largest_weight(ensemble, classes, rows, weight)
    if most is None:
        return None
    guessing = math.log(classes)
    cost = weight * guessing / most
    return (
        f"the KL of its weights costs {cost:.3g} nats for each of {rows:,} training rows, and guessing costs {guessing:.3g}: "
        f"training may end in noise. More rows, or kl_weight below {most:.2g}, let it learn from the data"
    )
