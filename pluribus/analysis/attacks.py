"""Adversarial attacks: a small change of an input that makes an ensemble answer wrongly, or answer a target class.

    L∞   x ← Π( x + step · sign ∇ℓ(x) )              iterated fast sign; one step of size epsilon is FGSM
    L2   x ← Π( x + step · ∇ℓ(x) / ‖∇ℓ(x)‖ )         PGD

An attack raises ℓ = −log p(y | x); a targeted attack lowers it. Π projects into the ball of radius epsilon about the input, and
then into the box [low, high] of valid inputs. The first run starts at the input itself, every restart at a random point of
the ball. Figure 7 of the variance paper is `Attack(epsilon=None, step=0.5, iterations=…, targeted=True)`: fast sign steps of
fixed length without a ball. The paper does not say in which units; for pixels from 0 to 1, two such steps would leave nothing
of an image.

**Noise can hide gradients**: the gradient of one draw may point anywhere. Each step therefore averages `samples` draws, in one
of two ways (`through`). "prediction", the default, follows −log (1/K) Σ_k p_k(y), the loss of the averaged prediction: a draw
is weighted by its p_k(y), so draws that have left the true class no longer pull. "losses" follows (1/K) Σ_k −log p_k(y), whose
gradient is unbiased for any K (expectation over transformation), but which goes on pushing draws that are wrong already. With
samples=1 both are the attack against which noise defends: report it only beside the other. Members that are not draws always
answer all together.

Only the direction of a gradient counts. The direction of the gradient of log (1 − p) − log p is that of −log p in exact
arithmetic, but it does not vanish where p rounds to 1. Through "prediction" a network is therefore not safe by being
overconfident.

Goodfellow et al., "Explaining and Harnessing Adversarial Examples", 2015; Kurakin et al., "Adversarial Examples in the Physical
World", 2017; Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks", 2018; Athalye et al., "Obfuscated
Gradients Give a False Sense of Security", 2018; Neklyudov et al., "Variance Networks", 2019, section 6.3.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.modes import copy_for_evaluation
from ..core.predictive import Predictive
from ..core.seeds import derive_seed, set_seed
from ..core.spec import require_choice, require_count, require_number
from .perturbation_region import Norm, PerturbationRegion

START, GRADIENT, ASSESSMENT, FINAL = range(4)
"""What a seed is for."""
MAX_ROWS_TIMES_MEMBERS = 1024
"""The most rows times members in one gradient, which keeps every activation in memory."""


@dataclass(frozen=True)
class Attack:
    """The settings of an attack. Lengths are in units of the inputs, or of the `scale` that `attack` takes.

    `epsilon` is the radius of the ball, or None for no ball. `restarts` counts the runs after the first. `samples` is the
    number of draws (of each part of a deep ensemble) in one gradient; None takes as many as the ensemble predicts with.

    >>> Attack(epsilon=8 / 255, step=2 / 255, iterations=10, restarts=1).norm
    'linf'
    """

    epsilon: float | None
    step: float
    iterations: int = 10
    norm: Norm = "linf"
    restarts: int = 0
    targeted: bool = False
    samples: int | None = None
    through: Literal["prediction", "losses"] = "prediction"

    def __post_init__(self) -> None:
        require_number("step", self.step, positive=True)
        require_count("iterations", self.iterations, 0, "0 leaves the inputs as they are")
        require_count("restarts", self.restarts, 0, "0 is the one run from the input itself")
        require_choice("norm", self.norm, ("linf", "l2"))
        require_choice("targeted", self.targeted, (True, False))
        require_choice("through", self.through, ("prediction", "losses"))
        if self.samples is not None:
            require_count("samples", self.samples, 1, "a gradient needs a draw")
        if self.epsilon is None:
            if self.restarts:
                raise ValueError(f"restarts begin at random points of a ball, got {self.restarts} and no ball: give epsilon")
        else:
            require_number("epsilon", self.epsilon)
            if self.epsilon < 0:
                raise ValueError(f"epsilon must be at least 0, got {self.epsilon}: it is a radius")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of an attack. Curves have `iterations + 1` numbers; the first is before any step.

    For every row the best point so far is kept: a point that succeeds is better than one that does not, and among equals the
    one with the greater odds for the attacker is better. A point is assessed with as many draws as the ensemble predicts with,
    and never with the draws of the gradient.
    """

    inputs: Tensor
    """The points that were kept for all rows, `[B, …]`."""
    fooled: Tensor
    """Whether the attack succeeds at each of these points, assessed once more with new draws: `[B]`."""
    entropies: Tensor
    """The predictive entropy in nats at each of these points, with the same new draws: `[B]`."""
    success: Tensor
    """The share of rows for which any run has succeeded up to an iteration; it never falls. Under noise it is the best of many
    assessments and flatters the attack: compare `final_success` instead."""
    entropy: Tensor
    """The mean predictive entropy of the points kept so far."""
    path_success: Tensor
    """The share of rows that succeed at an iteration of the first run, whatever came before (the variance paper's figure 7)."""
    path_entropy: Tensor
    """The mean predictive entropy at an iteration of the first run."""

    @property
    def final_success(self) -> float:
        """The share of rows that are fooled by the points that were kept."""
        return self.fooled.double().mean().item()

    @property
    def final_entropy(self) -> float:
        """The mean predictive entropy at the points that were kept."""
        return self.entropies.double().mean().item()


def attack(
    ensemble: Ensemble,
    x: Tensor,
    y: Tensor,
    spec: Attack,
    *,
    low: float | Tensor,
    high: float | Tensor,
    scale: float | Tensor = 1.0,
    seed: int = 0,
    batch_size: int | None = None,
) -> Outcome:
    """Attack the predictions of a classifier.

    The ensemble, its gradients and modes, and the global random generator stay as they were.

    Args:
        ensemble: The ensemble to attack, for classification.
        x: Inputs `[B, …]`, floats or doubles from `low` to `high`.
        y: The true classes `[B]`; for a targeted attack, the classes to reach.
        spec: The settings of the attack.
        low: The least valid input, a number or a tensor that broadcasts to x. Pixels that were normalised by a mean and a
            standard deviation for each channel, `[C, 1, 1]`, have `low=-mean/std`.
        high: The greatest valid input; for such pixels `high=(1-mean)/std`.
        scale: One unit of epsilon and step in units of x; with `scale=1/std` they are in units of pixels.
        seed: The result is a function of the seed (and, with noise or restarts, of `batch_size`).
        batch_size: Rows of one gradient; without it as many as memory allows.

    Returns:
        The perturbed inputs `[B, …]`, whether they succeed, and curves over the iterations.

    Raises:
        ValueError: The task is no classification, shapes or classes do not fit, x leaves the box, or predictions do not
            depend on x by differentiable steps.
        TypeError: x is no tensor of floats.

    >>> import pluribus
    >>> net = torch.nn.Linear(2, 2)
    >>> net.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    <All keys matched successfully>
    >>> single = pluribus.ensemble(net, pluribus.Single())
    >>> found = attack(single, torch.tensor([[0.6, 0.4]]), torch.tensor([0]), Attack(0.25, 0.0625, 4), low=0, high=1)
    >>> found.inputs, found.success
    (tensor([[0.3500, 0.6500]]), tensor([0., 0., 1., 1., 1.], dtype=torch.float64))
    """
    y = check_inputs(ensemble, x, y)
    low, high, scale = (expand_to_inputs(name, value, x) for name, value in (("low", low), ("high", high), ("scale", scale)))
    if not ((low <= x) & (x <= high)).all():
        raise ValueError(f"x must lie from low to high, got numbers from {x.min()} to {x.max()}: mind the units, or clamp it")
    if not (scale > 0).all():
        raise ValueError(f"scale must be positive, got {scale.min()}: it is one unit of epsilon and step, in units of x")
    if batch_size is not None:
        require_count("batch_size", batch_size, 1, "a batch has at least one row")
    cuda = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    parts = []
    ensemble = copy_for_evaluation(ensemble)
    with torch.random.fork_rng(devices=cuda):
        with sample_count(ensemble, spec.samples):
            size = batch_size or max(1, MAX_ROWS_TIMES_MEMBERS // ensemble.members)
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            region = PerturbationRegion(x[rows].detach(), low[rows], high[rows], scale[rows], spec.norm, spec.epsilon)
            parts.append(attack_rows(ensemble, region, y[rows], spec, derive_seed(seed, start)))
    kept, last, best, path = zip(*parts, strict=True)
    success, entropy = average_by_iteration(best)
    path_success, path_entropy = average_by_iteration(path)
    fooled, entropies = torch.cat([each.fooled for each in last]), torch.cat([each.entropy for each in last])
    return Outcome(torch.cat(kept), fooled, entropies, success, entropy, path_success, path_entropy)


class Assessment(NamedTuple):
    """The predictions for a batch from the attacker's point of view, all `[B]`."""

    fooled: Tensor
    log_odds: Tensor
    """The log-odds in favour of the attacker."""
    entropy: Tensor

    def is_better(self, other: "Assessment") -> Tensor:
        """Boolean mask `[B]` of the rows where this one is better for the attacker than another."""
        return (self.fooled & ~other.fooled) | ((self.fooled == other.fooled) & (self.log_odds > other.log_odds))

    def take_better(self, other: "Assessment") -> "Assessment":
        """Take the better of two assessments for each row."""
        replaced = other.is_better(self)
        return Assessment(*(torch.where(replaced, theirs, own) for own, theirs in zip(self, other, strict=True)))


def attack_rows(
    ensemble: Ensemble, region: PerturbationRegion, y: Tensor, spec: Attack, seed: int
) -> tuple[Tensor, Assessment, list[Assessment], list[Assessment]]:
    """Run all restarts on one batch.

    Returns the points that were kept, their final assessment, the best assessments by iteration, and those of the first run.
    """
    kept, best, path = region.centre, list[Assessment](), list[Assessment]()
    for run in range(1 + spec.restarts):
        set_seed(derive_seed(seed, run, 0, START))
        x = region.draw_start() if run else region.centre
        so_far: list[Assessment] = []
        top = best[-1] if best else None
        for iteration in range(1 + spec.iterations):
            set_seed(derive_seed(seed, run, iteration, ASSESSMENT))
            now = assess_points(ensemble, x, y, spec)
            better = torch.ones_like(now.fooled) if top is None else now.is_better(top)
            kept = torch.where(better.view(-1, *(1 for _ in x.shape[1:])), x, kept)
            top = now if top is None else top.take_better(now)
            so_far.append(so_far[-1].take_better(now) if so_far else now)
            if run == 0:
                path.append(now)
            if iteration < spec.iterations:
                set_seed(derive_seed(seed, run, iteration, GRADIENT))
                x = region.take_step(x, compute_gradient(ensemble, x, y, spec), spec.step)
        best = [old.take_better(new) for old, new in zip(best, so_far, strict=True)] if best else so_far
    set_seed(derive_seed(seed, 0, 0, FINAL))
    return kept, assess_points(ensemble, kept, y, spec), best, path


def compute_gradient(ensemble: Ensemble, x: Tensor, y: Tensor, spec: Attack) -> Tensor:
    """Return the direction in which to move x, `[B, …]`; its length means nothing."""
    with torch.enable_grad(), sample_count(ensemble, spec.samples):
        x = x.detach().requires_grad_()
        p = Predictive(ensemble(x))
        own = p.member_log_probs.gather(2, y.expand(len(p.outputs), -1).unsqueeze(2))
        value = log_odds_against(p, y) if spec.through == "prediction" else -own.mean(0)
        if not value.requires_grad:
            raise ValueError(
                "predictions must depend on x by differentiable steps, got some that do not: there is no gradient to follow"
            )
        (gradient,) = torch.autograd.grad(value.sum(), x)  # parameters get no gradient
    gradient = gradient.nan_to_num()  # a square root of zero in the network would otherwise turn the whole input into nan
    return -gradient if spec.targeted else gradient


@torch.no_grad()
def assess_points(ensemble: Ensemble, x: Tensor, y: Tensor, spec: Attack) -> Assessment:
    """Predict the points, and say whether the attack succeeds there."""
    p = ensemble.predict(x)
    if p.labels.dim() > 1:
        raise ValueError(f"there must be one label for each row, got predictions of shape {list(p.outputs.shape)}")
    classes = p.log_probs.shape[1]
    if not ((y >= 0) & (y < classes)).all():
        raise ValueError(f"y must hold classes from 0 to {classes - 1}, got {y.min()} to {y.max()}")
    is_answered, against = p.labels == y, log_odds_against(p, y)
    return Assessment(is_answered, -against, p.entropy) if spec.targeted else Assessment(~is_answered, against, p.entropy)


def log_odds_against(p: Predictive, y: Tensor) -> Tensor:
    """The log-odds against class y, log (1 − p_y) − log p_y, computed without 1 − p_y: `[B]`."""
    log_probs, index = p.log_probs, y.unsqueeze(1)
    others = log_probs.scatter(1, index, -torch.inf).logsumexp(1)
    return others - log_probs.gather(1, index).squeeze(1)


@contextmanager
def sample_count(ensemble: Ensemble, samples: int | None) -> Iterator[None]:
    """Another number of draws inside the block, in every part of the ensemble that draws."""
    noisy = [part for part in ensemble.modules() if isinstance(part, Ensemble) and part.sampled]
    before = [part.samples for part in noisy]
    try:
        for part in noisy:
            part.samples = part.samples if samples is None else samples
        yield
    finally:
        for part, count in zip(noisy, before, strict=True):
            part.samples = count


def average_by_iteration(parts: tuple[list[Assessment], ...]) -> tuple[Tensor, Tensor]:
    """Return the share of success and the mean entropy over the rows of all batches, both `[iterations + 1]`."""
    steps = list(zip(*parts, strict=True))
    # A row whose answer is not finite has no label that an attack could have changed: the share is then NaN, as the entropy is.
    entropies = [torch.cat([each.entropy for each in step]).double().mean() for step in steps]
    shares = [
        torch.cat([each.fooled for each in step]).double().mean() + 0 * lost
        for step, lost in zip(steps, entropies, strict=True)
    ]
    return torch.stack(shares).cpu(), torch.stack(entropies).cpu()


def check_inputs(ensemble: Ensemble, x: Tensor, y: Tensor) -> Tensor:
    """Check task, inputs and classes, and return the classes as `[B]`."""
    if ensemble.task != "classification":
        raise ValueError(f"an attack needs an ensemble for classification, got one for {ensemble.task}")
    if not isinstance(x, Tensor) or x.dtype not in (torch.float, torch.double):
        found = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of floats or doubles, because attacks change it gradually, got {found}")
    if x.dim() < 2 or len(x) == 0:
        raise ValueError(f"x must be [B, …] with at least one row, got {list(x.shape)}")
    if y.numel() != len(x) or y.is_floating_point():
        raise ValueError(f"y must hold a class for each of {len(x)} rows, got {y.dtype} of shape {list(y.shape)}")
    return y.reshape(-1).long()


def expand_to_inputs(name: str, value: float | Tensor, x: Tensor) -> Tensor:
    """Expand a bound to the shape of x, without copying it."""
    bound = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    try:
        return bound.expand(x.shape)
    except RuntimeError:
        raise ValueError(f"{name} must broadcast to x, {list(x.shape)}, got {list(bound.shape)}") from None
