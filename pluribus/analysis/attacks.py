"""Attacks: a small change of an input that makes an ensemble wrong, or answer what it was told to.

    L∞   x ← Π( x + step · sign ∇ℓ(x) )              iterated fast sign; one step of size epsilon is FGSM
    L2   x ← Π( x + step · ∇ℓ(x) / ‖∇ℓ(x)‖ )         PGD

ℓ = −log p(y | x) is to rise, or, targeted, to fall; Π goes back into the ball of radius epsilon about the input, and then into
the box [low, high] of valid inputs. The first run begins at the input itself; every restart at a random point of the ball.
The variance paper's figure 7 is `Attack(epsilon=None, step=0.5, iterations=…, targeted=True)`: fast sign steps of fixed length
and no ball. It does not say in which units; in pixels from 0 to 1 two such steps would leave nothing of an image.

**Noise can hide gradients**: a draw's own gradient may point anywhere. So `samples` draws are averaged at each step, and there
are two averages (`through`). "prediction" follows −log (1/K) Σ_k p_k(y), the loss of what is answered, and is the default: a
draw weighs by its p_k(y), so those that left the true class no longer pull. "losses" follows (1/K) Σ_k −log p_k(y), whose
gradient is unbiased for any K (expectation over transformation), but goes on pushing draws that are lost already. With
samples=1 both are the attack that noise defends from, to be reported only beside the other. Members that are no draws always
answer all together.

Only the direction of a gradient counts, and that of log (1 − p) − log p is the direction of −log p in exact arithmetic; but it
does not vanish where p rounds to 1, so through "prediction" a network is not safe by being overconfident.

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
from ..core.modes import evaluation_mode
from ..core.predictive import Predictive
from ..core.seeds import derive_seed, set_seed
from ..core.spec import require_choice, require_count, require_number
from .perturbation_region import Norm, PerturbationRegion

START, CLIMB, JUDGE, FINAL = range(4)
ROWS_TIMES_MEMBERS = 1024
"""Rows times members in one gradient: it keeps every activation."""


@dataclass(frozen=True)
class Attack:
    """How to attack. Lengths are in the units of the inputs, or of `scale` where `attack` is given one.

    `epsilon` is the radius of the ball, or None for no ball; `restarts` counts the runs after the first; `samples` is how many
    draws (of each part of a deep ensemble) make one gradient: None for as many as answer.
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
        require_count("iterations", self.iterations, 0, "none leaves the inputs as they are")
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
    """What came of an attack. Curves have `iterations + 1` numbers, of which the first is before any step.

    Of every row the best point so far is kept: one that succeeds before one that does not, then the one with the greatest odds
    for the attacker. A point is judged with as many draws as the ensemble answers with, never those that made the gradient.
    """

    inputs: Tensor
    """The points that were kept, `[B, …]`."""
    fooled: Tensor
    """Whether the answer to each of them is wrong, or the target, once more with fresh draws: `[B]`."""
    entropies: Tensor
    """The predictive entropy of those last answers, in nats: `[B]`."""
    success: Tensor
    """The share of rows that succeeded up to an iteration, of any run. It never falls. Under noise it is the best of many
    looks, and flatters the attack: `final_success` is the share to compare."""
    entropy: Tensor
    """The mean predictive entropy of the points kept so far."""
    path_success: Tensor
    """The share of rows that succeed at an iteration of the first run, whatever was before (the paper's figure 7)."""
    path_entropy: Tensor
    """The mean predictive entropy there."""

    @property
    def final_success(self) -> float:
        return self.fooled.double().mean().item()

    @property
    def final_entropy(self) -> float:
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
    """Attack the answers to x, `[B, …]`; y holds the true classes `[B]`, or, targeted, the classes to be answered.

    Inputs stay from `low` to `high`: numbers, or tensors that broadcast to x. Pixels that were normalised by a mean and a
    deviation for each channel, both `[C, 1, 1]`, have `low=-mean/deviation, high=(1-mean)/deviation`; with `scale=1/deviation`
    epsilon and step are of pixels all the same. The result is a function of `seed` (and, with noise or restarts, of
    `batch_size`, the rows of one gradient); the ensemble, its gradients and modes, and the global generator stay as they were.

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
    low, high, scale = (expand_to(name, value, x) for name, value in (("low", low), ("high", high), ("scale", scale)))
    if not ((low <= x) & (x <= high)).all():
        raise ValueError(f"x must lie from low to high, got numbers from {x.min()} to {x.max()}: mind the units, or clamp it")
    if not (scale > 0).all():
        raise ValueError(f"scale must be positive, got {scale.min()}: it is one unit of epsilon and step, in units of x")
    if batch_size is not None:
        require_count("batch_size", batch_size, 1, "rows are attacked in parts of at least one")
    cuda = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    parts = []
    with evaluation_mode(ensemble), torch.random.fork_rng(devices=cuda):
        with sample_count(ensemble, spec.samples):
            size = batch_size or max(1, ROWS_TIMES_MEMBERS // ensemble.members)
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            region = PerturbationRegion(x[rows].detach(), low[rows], high[rows], scale[rows], spec.norm, spec.epsilon)
            parts.append(attack_rows(ensemble, region, y[rows], spec, derive_seed(seed, start)))
    kept, last, best, path = zip(*parts, strict=True)
    success, entropy = average_by_iteration(best)
    path_success, path_entropy = average_by_iteration(path)
    fooled, entropies = torch.cat([verdict.fooled for verdict in last]), torch.cat([verdict.entropy for verdict in last])
    return Outcome(torch.cat(kept), fooled, entropies, success, entropy, path_success, path_entropy)


class Assessment(NamedTuple):
    """An answer to each row, seen by the attacker: all `[B]`."""

    fooled: Tensor
    gain: Tensor
    """The log-odds for the attacker."""
    entropy: Tensor

    def beats(self, other: "Assessment") -> Tensor:
        return (self.fooled & ~other.fooled) | ((self.fooled == other.fooled) & (self.gain > other.gain))

    def or_better(self, other: "Assessment") -> "Assessment":
        beaten = other.beats(self)
        return Assessment(*(torch.where(beaten, theirs, own) for own, theirs in zip(self, other, strict=True)))


def attack_rows(
    ensemble: Ensemble, region: PerturbationRegion, y: Tensor, spec: Attack, seed: int
) -> tuple[Tensor, Assessment, list[Assessment], list[Assessment]]:
    """All runs on some rows → points kept, the last verdict on them, the best verdicts by iteration, those of the first run."""
    kept, best, path = region.centre, list[Assessment](), list[Assessment]()
    for run in range(1 + spec.restarts):
        set_seed(derive_seed(seed, run, 0, START))
        x = region.start() if run else region.centre
        so_far: list[Assessment] = []
        top = best[-1] if best else None
        for iteration in range(1 + spec.iterations):
            set_seed(derive_seed(seed, run, iteration, JUDGE))
            now = assess_points(ensemble, x, y, spec)
            better = torch.ones_like(now.fooled) if top is None else now.beats(top)
            kept = torch.where(better.view(-1, *(1 for _ in x.shape[1:])), x, kept)
            top = now if top is None else top.or_better(now)
            so_far.append(so_far[-1].or_better(now) if so_far else now)
            if run == 0:
                path.append(now)
            if iteration < spec.iterations:
                set_seed(derive_seed(seed, run, iteration, CLIMB))
                x = region.step(x, compute_gradient(ensemble, x, y, spec), spec.step)
        best = [old.or_better(new) for old, new in zip(best, so_far, strict=True)] if best else so_far
    set_seed(derive_seed(seed, 0, 0, FINAL))
    return kept, assess_points(ensemble, kept, y, spec), best, path


def compute_gradient(ensemble: Ensemble, x: Tensor, y: Tensor, spec: Attack) -> Tensor:
    """Where to go from x. Only its direction is meant."""
    with torch.enable_grad(), sample_count(ensemble, spec.samples):
        x = x.detach().requires_grad_()
        p = Predictive(ensemble(x))
        own = p.member_log_probs.gather(2, y.expand(len(p.outputs), -1).unsqueeze(2))
        value = log_odds_against(p, y) if spec.through == "prediction" else -own.mean(0)
        if not value.requires_grad:
            raise ValueError(
                "the answer must depend on x by differentiable steps, got one that does not: no gradient to follow"
            )
        (slope,) = torch.autograd.grad(value.sum(), x)  # of x alone: parameters get none
    slope = slope.nan_to_num()  # one root of zero in the network would otherwise turn the whole input into nan
    return -slope if spec.targeted else slope


@torch.no_grad()
def assess_points(ensemble: Ensemble, x: Tensor, y: Tensor, spec: Attack) -> Assessment:
    p = ensemble.predict(x)
    if p.labels.dim() > 1:
        raise ValueError(f"there must be one label a row, got answers of shape {list(p.outputs.shape)}")
    classes = p.log_probs.shape[1]
    if not ((y >= 0) & (y < classes)).all():
        raise ValueError(f"y must hold classes from 0 to {classes - 1}, got {y.min()} to {y.max()}")
    hit = p.labels == y
    return (
        Assessment(hit, -log_odds_against(p, y), p.entropy)
        if spec.targeted
        else Assessment(~hit, log_odds_against(p, y), p.entropy)
    )


def log_odds_against(p: Predictive, y: Tensor) -> Tensor:
    """The log-odds against class y, log (1 − p_y) − log p_y, without ever computing 1 − p_y: `[B]`."""
    log_probs, index = p.log_probs, y.unsqueeze(1)
    others = log_probs.scatter(1, index, -torch.inf).logsumexp(1)
    return others - log_probs.gather(1, index).squeeze(1)


@contextmanager
def sample_count(ensemble: Ensemble, samples: int | None) -> Iterator[None]:
    """Another number of draws for a while, in every part that draws."""
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
    """Success and entropy by iteration, over the rows of all parts."""
    steps = list(zip(*parts, strict=True))
    shares = [torch.cat([verdict.fooled for verdict in step]).double().mean() for step in steps]
    entropies = [torch.cat([verdict.entropy for verdict in step]).double().mean() for step in steps]
    return torch.stack(shares).cpu(), torch.stack(entropies).cpu()


def check_inputs(ensemble: Ensemble, x: Tensor, y: Tensor) -> Tensor:
    """The classes as `[B]`, if there is something to attack."""
    if ensemble.task != "classification":
        raise ValueError(f"an attack needs classes to be wrong about, got a {ensemble.task}")
    if not isinstance(x, Tensor) or x.dtype not in (torch.float, torch.double):
        found = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"x must be one tensor of floats or doubles, so that it can be moved by a little, got {found}")
    if x.dim() < 2 or len(x) == 0:
        raise ValueError(f"x must be [B, …] with at least one row, got {list(x.shape)}")
    if y.numel() != len(x) or y.is_floating_point():
        raise ValueError(f"y must hold a class for each of {len(x)} rows, got {y.dtype} of shape {list(y.shape)}")
    return y.reshape(-1).long()


def expand_to(name: str, value: float | Tensor, x: Tensor) -> Tensor:
    """A bound in the shape of x, without copies."""
    bound = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    try:
        return bound.expand(x.shape)
    except RuntimeError:
        raise ValueError(f"{name} must broadcast to x, {list(x.shape)}, got {list(bound.shape)}") from None
