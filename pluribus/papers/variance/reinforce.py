"""REINFORCE with deterministic, noisy and variance policies (figure 6): a draw of the weights explores too.

    h1 = relu(W1 x + b1),   h2 = relu(W h1 + b),   π(a | x) = softmax(W3 h2 + b3)

    deterministic     W = μ
    parameter noise   W = μ + σ ε          ε ~ N(0, 1), drawn once an episode
    variance          W = σ ε              (section 3.1)

    θ ← θ + Adam(Σ_t A_t ∇_θ log π(a_t | x_t)),   A_t = G_t − b_t,   G_t = Σ_{k≥t} γ^(k−t) r_k

after each episode, with the ε of that episode, so that σ is learnt through σ ε (Williams, 1992; Sutton et al., 2000).

S seeds run in lockstep, each with its own weights `[S, …]`, its own environment and its own random numbers. The random numbers
of an episode depend on the seed and the episode alone. So a seed gives the same scores whichever other seeds run beside it, a
run that was killed continues exactly, and the three policies get the same initial states and the same random numbers.

The paper gives no discount, learning rate or baseline; `Settings` has our choices. b_t is a moving mean of each seed's
returns from step t on. Returns normalised in their episode, the other usual choice, did worse for the deterministic policy
(mean of episodes 901–1000 of seeds 100 and 101: CartPole 174, 193, 191 against 200, 200, 196 with learning rates 1e-3, 3e-4,
1e-4; Acrobot −129 against −89 with 1e-3). The noise is on the weights of the layer and not on its bias, in both noisy policies
(Fortunato et al. have it on both).

Neklyudov et al., "Variance Networks: When Expectation Does Not Meet Your Expectations", ICLR 2019, section 6.2.
Fortunato et al., "Noisy Networks for Exploration", ICLR 2018: independent Gaussian noise, σ from 0.017.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ...core.spec import require_choice, require_count, require_number, require_share
from .environments import CartPole, Environment

POLICIES = ("deterministic", "parameter noise", "variance")


@dataclass(frozen=True)
class Settings:
    """One curve of the figure."""

    policy: Literal["deterministic", "parameter noise", "variance"]
    environment: Environment = field(default_factory=CartPole)
    hidden: int = 256
    """Neurons of each of the two hidden layers."""
    discount: float = 0.99
    """γ of the returns in the loss; scores are not discounted."""
    learning_rate: float = 1e-3
    """The learning rate of Adam; its other settings are the usual ones."""
    memory: float = 0.9
    """The decay of the baseline: b_t is a moving mean of the returns from step t on, one for each seed."""
    first_sigma: float = 0.017
    """The initial σ of the parameter noise. That of the variance policy is drawn like the weights of a layer: U(±1/√fan_in)."""
    sigma_factor: float = 1.0
    """Multiplies the initial σ of both noisy policies."""
    double: bool = False
    """Compute in double precision."""

    def __post_init__(self) -> None:
        require_choice("policy", self.policy, POLICIES)
        require_count("hidden", self.hidden, 1, "a layer needs a neuron")
        require_share("discount", self.discount)
        require_share("memory", self.memory, below_one=True)
        require_number("learning_rate", self.learning_rate, positive=True)
        require_number("first_sigma", self.first_sigma, positive=True)
        require_number("sigma_factor", self.sigma_factor, positive=True)


def learn(
    settings: Settings,
    seeds: Sequence[int],
    episodes: int,
    state: Mapping[str, Any] | None = None,
    after: Callable[["Learner"], None] | None = None,
) -> np.ndarray:
    """Train a policy for each seed, and return the undiscounted return of each training episode.

    Args:
        settings: policy, environment and hyperparameters.
        seeds: S different seeds.
        episodes: how many episodes each seed plays.
        state: a `state_dict()` of a learner with the same settings and seeds, to continue from.
        after: is called with the learner after each episode.

    Returns:
        Scores `[S, episodes]`. Episode e is played with fresh noise by the policy after e updates, so its score evaluates that
        policy once.
    """
    learner = Learner(settings, seeds)
    if state is not None:
        learner.load_state_dict(state)
    while learner.episodes < episodes:
        learner.learn_from(learner.play())
        if after is not None:
            after(learner)
    return learner.scores[:, :episodes]


class Episode(NamedTuple):
    """One episode of each of S seeds, padded with zeros to the length T of the longest."""

    observations: np.ndarray
    """`[S, T, inputs]`"""
    actions: np.ndarray
    """`[S, T]`"""
    rewards: np.ndarray
    """`[S, T]`"""
    present: np.ndarray
    """`[S, T]`, False in the padding."""
    noise: Tensor | None
    """ε, `[S, hidden, hidden]`; the deterministic policy has none."""


class Learner:
    """S policies, their optimizer and their scores so far."""

    def __init__(self, settings: Settings, seeds: Sequence[int]) -> None:
        if not seeds or len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
            raise ValueError(f"seeds must be different whole numbers from 0 to 2³² − 1, at least one, got {list(seeds)}")
        self.settings, self.seeds = settings, list(seeds)
        self.dtype = torch.float64 if settings.double else torch.float32
        each = [draw_parameters(settings, seed) for seed in seeds]
        self.parameters = {name: torch.stack([one[name] for one in each]).to(self.dtype).requires_grad_() for name in each[0]}
        # Adam treats each element by itself, so a step of the stacked parameters is a step of each seed.
        self.optimizer = torch.optim.Adam(self.parameters.values(), lr=settings.learning_rate, fused=True)
        self.scores = np.zeros((len(seeds), 0))
        self.baseline = np.zeros((len(seeds), settings.environment.limit))
        """The baseline b_t: a moving mean of the returns from step t on, `[S, limit]`."""
        self.visits = np.zeros((len(seeds), settings.environment.limit))

    @property
    def episodes(self) -> int:
        """How many episodes have been learnt from."""
        return self.scores.shape[1]

    def play(self) -> Episode:
        """Play one episode for each seed with one draw of the weights; an episode that has ended is not computed further."""
        environment, rngs = self.settings.environment, [np.random.default_rng([seed, self.episodes + 1]) for seed in self.seeds]
        state = np.stack([environment.start(rng) for rng in rngs])
        chance = np.stack([rng.random(environment.limit) for rng in rngs])
        noise = self.draw_noise(rngs)  # drawn last, so that the numbers before it are the same for every policy
        layers = [(w.detach().numpy(), b.detach().numpy()) for w, b in self.layers(noise)]
        shape = (len(self.seeds), environment.limit)
        observations = np.zeros((*shape, environment.inputs), np.float64 if self.settings.double else np.float32)
        actions, rewards, present = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, bool)
        running, steps = np.arange(len(self.seeds)), 0
        while len(running) and steps < environment.limit:
            x = environment.observe(state).astype(observations.dtype, copy=False)
            action = choose_actions(compute_logits(x[:, None], layers)[:, 0], chance[:, steps])
            state, reward, ended = environment.step(state, action)
            observations[running, steps], actions[running, steps], rewards[running, steps] = x, action, reward
            present[running, steps] = True
            steps += 1
            if ended.any():
                on = ~ended
                running, state, chance = running[on], state[on], chance[on]
                layers = [(w[on], b[on]) for w, b in layers]
        return Episode(observations[:, :steps], actions[:, :steps], rewards[:, :steps], present[:, :steps], noise)

    def learn_from(self, episode: Episode) -> None:
        """Take one optimizer step for each seed's policy, and append its score."""
        returns = returns_to_go(episode.rewards, self.settings.discount)
        self.optimizer.zero_grad()
        reinforce_loss(self.layers(episode.noise), episode, self.compute_advantages(returns, episode.present)).backward()
        self.optimizer.step()
        self.scores = np.concatenate([self.scores, episode.rewards.sum(1, keepdims=True)], axis=1)

    def draw_noise(self, rngs: Sequence[np.random.Generator]) -> Tensor | None:
        """Draw ε of an episode, `[S, hidden, hidden]`; None for the deterministic policy."""
        if self.settings.policy == "deterministic":
            return None
        shape, dtype = (self.settings.hidden, self.settings.hidden), np.float64 if self.settings.double else np.float32
        return torch.from_numpy(np.stack([rng.standard_normal(shape, dtype) for rng in rngs]))

    def layers(self, noise: Tensor | None) -> list[tuple[Tensor, Tensor]]:
        """Weights `[S, in, out]` and biases `[S, out]` of the three layers, with this noise in the second."""
        p = self.parameters
        return [(p["W1"], p["b1"]), (combine_weights(self.settings.policy, p, noise), p["b"]), (p["W3"], p["b3"])]

    def compute_advantages(self, returns: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Return A, `[S, T]`, zero in the padding, and update the baseline."""
        baseline, visits = self.baseline[:, : returns.shape[1]], self.visits[:, : returns.shape[1]]
        surprise = np.where(present, returns - baseline, 0.0)
        advantage = np.where(visits > 0, surprise, 0.0)  # a step that is reached for the first time has no baseline yet
        visits += present
        baseline += np.maximum(1 - self.settings.memory, 1 / np.maximum(visits, 1)) * surprise
        return advantage

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the settings that the next episode depends on: tensors, and the list of seeds."""
        state: dict[str, Any] = {"seeds": list(self.seeds)}
        for name in ("scores", "baseline", "visits"):
            state[name] = torch.from_numpy(getattr(self, name).copy())
        for name, value in self.parameters.items():
            state[f"parameter.{name}"] = value.detach().clone()
            for moment, tensor in self.optimizer.state[value].items():
                state[f"{moment}.{name}"] = tensor.clone()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()`; raises ValueError if it is of other settings or seeds."""
        shapes = {f"parameter.{name}": value.shape for name, value in self.parameters.items()}
        loaded = {key: value.shape for key, value in state.items() if key.startswith("parameter.")}
        if list(state["seeds"]) != self.seeds or loaded != shapes:
            raise ValueError(
                f"the state must be of seeds {self.seeds} and of {self.settings}; it is of seeds {list(state['seeds'])} with "
                f"{ {key: tuple(shape) for key, shape in loaded.items()} }: load it with the settings that it was saved with"
            )
        for name in ("scores", "baseline", "visits"):
            setattr(self, name, state[name].numpy().copy())
        for name, value in self.parameters.items():
            value.data.copy_(state[f"parameter.{name}"])
            moments = ("step", "exp_avg", "exp_avg_sq")
            kept = {moment: state[f"{moment}.{name}"].clone() for moment in moments if f"{moment}.{name}" in state}
            self.optimizer.state[value] = kept


def draw_parameters(settings: Settings, seed: int) -> dict[str, Tensor]:
    """Draw one seed's parameters from U(±1/√fan_in), as torch's layers do; those of the second layer are μ or σ."""
    rng, hidden = np.random.default_rng([seed, 0]), settings.hidden

    def draw(fan_in: int, *shape: int) -> Tensor:
        return torch.from_numpy(rng.uniform(-1, 1, shape) / fan_in**0.5)

    inputs, actions = settings.environment.inputs, settings.environment.actions
    found = {"W1": draw(inputs, inputs, hidden), "b1": draw(inputs, hidden)}
    found |= {"sigma" if settings.policy == "variance" else "mu": draw(hidden, hidden, hidden), "b": draw(hidden, hidden)}
    found |= {"W3": draw(hidden, hidden, actions), "b3": draw(hidden, actions)}
    if settings.policy == "parameter noise":
        found["sigma"] = torch.full((hidden, hidden), settings.first_sigma, dtype=torch.float64)
    if "sigma" in found:
        found["sigma"] *= settings.sigma_factor
    return found


def combine_weights(policy: str, p: Mapping[str, Tensor], noise: Tensor | None) -> Tensor:
    """Return W of the second hidden layer in one episode."""
    if noise is None:
        return p["mu"]
    if policy == "parameter noise":
        return p["mu"] + p["sigma"] * noise
    return p["sigma"] * noise


Array = TypeVar("Array", np.ndarray, Tensor)


def compute_logits(x: Array, layers: Sequence[tuple[Array, Array]]) -> Array:
    """Observations `[S, T, inputs]` → logits `[S, T, actions]`, each seed by its own weights; for NumPy arrays and tensors."""
    (w1, b1), (w, b), (w3, b3) = layers
    h1 = (x @ w1 + b1[:, None]).clip(0)
    h2 = (h1 @ w + b[:, None]).clip(0)
    return h2 @ w3 + b3[:, None]


def choose_actions(logits: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Choose actions `[n]` with probabilities softmax(logits), from uniform numbers `chance` in [0, 1), `[n]`."""
    sums = np.exp(logits - logits.max(1, keepdims=True)).cumsum(1)
    return (chance[:, None] * sums[:, -1:] >= sums[:, :-1]).sum(1)


def reinforce_loss(layers: Sequence[tuple[Tensor, Tensor]], episode: Episode, advantages: np.ndarray) -> Tensor:
    """−Σ_t A_t log π(a_t | x_t), summed over the seeds, which share no parameter. Padding must have advantage zero."""
    chosen = torch.from_numpy(episode.actions)[..., None]
    log_p = compute_logits(torch.from_numpy(episode.observations), layers).log_softmax(-1).gather(-1, chosen)[..., 0]
    return -(torch.from_numpy(advantages).to(log_p.dtype) * log_p).sum()


def returns_to_go(rewards: np.ndarray, discount: float) -> np.ndarray:
    """G_t = r_t + γ G_{t+1}, `[S, T]`."""
    returns = rewards.copy()
    for t in reversed(range(rewards.shape[1] - 1)):
        returns[:, t] += discount * returns[:, t + 1]
    return returns
