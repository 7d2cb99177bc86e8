"""REINFORCE with deterministic, noisy and variance policies (figure 6): a draw of the weights explores too.

    h1 = relu(W1 x + b1),   h2 = relu(W h1 + b),   π(a | x) = softmax(W3 h2 + b3)

    deterministic     W = μ
    parameter noise   W = μ + σ ε          ε ~ N(0, 1), drawn once an episode
    variance          W = σ ε              (section 3.1)

    θ ← θ + Adam(Σ_t A_t ∇_θ log π(a_t | x_t)),   A_t = G_t − b_t,   G_t = Σ_{k≥t} γ^(k−t) r_k

after each episode, with its own ε, so that σ learns through σ ε (Williams, 1992; Sutton et al., 2000).

Seeds run in lockstep, each with its own weights `[S, …]`, its own world and its own draws. What is drawn in an episode is a
function of the seed and the episode alone: a seed does the same whichever others run beside it, a killed run goes on
exactly, and the three policies meet the same starts and the same luck.

The paper gives no discount, learning rate or baseline; `Settings` says what stands here. b_t is a moving mean of each seed's
returns from step t on. Returns normalised in their episode, the other usual choice, did worse for the deterministic policy
(mean of episodes 901–1000 of seeds 100 and 101: CartPole 174, 193, 191 against 200, 200, 196 with learning rates 1e-3, 3e-4,
1e-4; Acrobot −129 against −89 with 1e-3). The noise is on the weights of the layer and not on its bias, in both noisy policies
(Fortunato et al. have it on both).

Neklyudov et al., "Variance Networks: When Expectation Does Not Meet Your Expectations", ICLR 2019, section 6.2.
Fortunato et al., "Noisy Networks for Exploration", ICLR 2018: independent Gaussian noise, σ from 0.017.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from ...core.spec import require_choice, require_count, require_number, require_share

POLICIES = ("deterministic", "parameter noise", "variance")


class World(Protocol):
    """What is acted in. It keeps nothing: states `[n, …]` go in and come out, a row for each episode that still runs."""

    @property
    def inputs(self) -> int: ...

    @property
    def actions(self) -> int: ...

    @property
    def limit(self) -> int:
        """After this many steps an episode is cut off."""

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """One state."""

    def observe(self, state: np.ndarray) -> np.ndarray:
        """States → `[n, inputs]`."""

    def step(self, state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States, actions `[n]` → the next states, rewards `[n]`, whether each has ended `[n]`."""


@dataclass(frozen=True)
class CartPole:
    """gymnasium's CartPole, with the 200 steps of version 0. Barto, Sutton & Anderson, 1983."""

    limit: int = 200
    inputs: int = field(default=4, init=False)
    actions: int = field(default=2, init=False)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-0.05, 0.05, 4)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.astype(np.float32)

    def step(self, state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A cart of 1 kg with a pole of 0.1 kg and 1 m, pushed by ±10 N for 0.02 s; it has ended beyond 2.4 m or 12°."""
        _, speed, angle, turning = state.T
        cos, sin = np.cos(angle), np.sin(angle)
        pushed = (20.0 * action - 10.0 + 0.05 * turning**2 * sin) / 1.1
        turned = (9.8 * sin - cos * pushed) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        change = np.stack([speed, pushed - 0.05 * turned * cos / 1.1, turning, turned], axis=1)
        state = state + 0.02 * change
        ended = (np.abs(state[:, 0]) > 2.4) | (np.abs(state[:, 2]) > 12 * 2 * np.pi / 360)
        return state, np.ones(len(state)), ended


@dataclass(frozen=True)
class Acrobot:
    """gymnasium's Acrobot-v1: swing the end of two hanging links above the bar. Sutton, 1996."""

    limit: int = 500
    inputs: int = field(default=6, init=False)
    actions: int = field(default=3, init=False)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-0.1, 0.1, 4).astype(np.float32).astype(np.float64)  # gymnasium rounds it too

    def observe(self, state: np.ndarray) -> np.ndarray:
        angles, speeds = state[:, :2], state[:, 2:]
        turned = np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(-1, 4)
        return np.concatenate([turned, speeds], axis=1).astype(np.float32)

    def step(self, state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A torque of −1, 0 or 1 for 0.2 s, integrated by one step of Runge and Kutta's fourth order."""
        torque, span = action - 1.0, 0.2
        k1 = self.change(state, torque)
        k2 = self.change(state + span / 2 * k1, torque)
        k3 = self.change(state + span / 2 * k2, torque)
        k4 = self.change(state + span * k3, torque)
        state = state + span / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        angles, fastest = state[:, :2], np.array([4 * np.pi, 9 * np.pi])
        angles -= 2 * np.pi * np.rint(angles / (2 * np.pi))
        np.clip(state[:, 2:], -fastest, fastest, out=state[:, 2:])
        ended = -np.cos(angles[:, 0]) - np.cos(angles[:, 0] + angles[:, 1]) > 1.0
        return state, np.where(ended, 0.0, -1.0), ended

    @staticmethod
    def change(state: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """d/dt of (θ1, θ2, θ1', θ2') by Sutton & Barto's equations: links of 1 m, 1 kg and 1 kg m², centres of mass at ½ m."""
        angle1, angle2, turning1, turning2 = state.T
        cos2, sin2 = np.cos(angle2), np.sin(angle2)
        d1, d2 = 3.5 + cos2, 1.25 + 0.5 * cos2
        phi2 = 4.9 * np.sin(angle1 + angle2)
        phi1 = phi2 + 14.7 * np.sin(angle1) - (0.5 * turning2 + turning1) * turning2 * sin2
        ratio = d2 / d1
        turned2 = (torque + ratio * phi1 - 0.5 * turning1**2 * sin2 - phi2) / (1.25 - ratio * d2)
        return np.stack([turning1, turning2, -ratio * turned2 - phi1 / d1, turned2], axis=1)


@dataclass(frozen=True)
class Settings:
    """One curve of the figure."""

    policy: Literal["deterministic", "parameter noise", "variance"]
    world: World = field(default_factory=CartPole)
    hidden: int = 256
    """Neurons of each of the two hidden layers."""
    discount: float = 0.99
    """γ, of the returns that are learnt from; scores are not discounted."""
    learning_rate: float = 1e-3
    """Of Adam, with its usual other settings."""
    memory: float = 0.9
    """What the baseline keeps of itself: b_t is a moving mean of the returns from step t on, one for each seed."""
    first_sigma: float = 0.017
    """Where σ of the parameter noise begins. The variance policy's begins as the weights of a layer do: U(±1/√fan_in)."""
    double: bool = False
    """Compute in double precision."""

    def __post_init__(self) -> None:
        require_choice("policy", self.policy, POLICIES)
        require_count("hidden", self.hidden, 1, "a layer needs a neuron")
        require_share("discount", self.discount)
        require_share("memory", self.memory, below_one=True)
        require_number("learning_rate", self.learning_rate, positive=True)
        require_number("first_sigma", self.first_sigma, positive=True)


def learn(
    settings: Settings,
    seeds: Sequence[int],
    episodes: int,
    state: Mapping[str, Any] | None = None,
    after: Callable[["Learner"], None] | None = None,
) -> np.ndarray:
    """Scores `[S, episodes]`: the undiscounted return of each training episode, as it was played.

    Episode e is played with fresh noise by the policy that e updates have made, so its score evaluates that policy once.
    `after` is called with the learner after each episode; what its `state_dict()` gives goes in again as `state`.
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
    """What S seeds saw and did, padded with zeros to the longest of them."""

    seen: np.ndarray
    """`[S, T, inputs]`"""
    actions: np.ndarray
    """`[S, T]`"""
    rewards: np.ndarray
    """`[S, T]`"""
    present: np.ndarray
    """`[S, T]`, false in the padding."""
    noise: Tensor | None
    """ε, `[S, hidden, hidden]`; the deterministic policy has none."""


class Learner:
    """S policies, their optimiser and their scores so far."""

    def __init__(self, settings: Settings, seeds: Sequence[int]) -> None:
        if not seeds or len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
            raise ValueError(f"seeds must be different whole numbers from 0 to 2³² − 1, at least one, got {list(seeds)}")
        self.settings, self.seeds = settings, list(seeds)
        self.dtype = torch.float64 if settings.double else torch.float32
        each = [initial(settings, seed) for seed in seeds]
        self.parameters = {name: torch.stack([one[name] for one in each]).to(self.dtype).requires_grad_() for name in each[0]}
        # Adam works on each element by itself: a step of the stack is a step of each seed
        self.optimizer = torch.optim.Adam(self.parameters.values(), lr=settings.learning_rate, fused=True)
        self.scores = np.zeros((len(seeds), 0))
        self.usual = np.zeros((len(seeds), settings.world.limit))
        """What the returns from step t on have been of late."""
        self.visits = np.zeros((len(seeds), settings.world.limit))

    @property
    def episodes(self) -> int:
        return self.scores.shape[1]

    def play(self) -> Episode:
        """One episode for each seed, with one draw of the weights. Those that have ended cost nothing more."""
        world, rngs = self.settings.world, [np.random.default_rng([seed, self.episodes + 1]) for seed in self.seeds]
        state = np.stack([world.start(rng) for rng in rngs])
        chance = np.stack([rng.random(world.limit) for rng in rngs])
        noise = self.noise(rngs)  # drawn last: what comes before is the same for every policy
        layers = [(w.detach().numpy(), b.detach().numpy()) for w, b in self.layers(noise)]
        shape = (len(self.seeds), world.limit)
        seen = np.zeros((*shape, world.inputs), np.float64 if self.settings.double else np.float32)
        actions, rewards, present = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, bool)
        running, steps = np.arange(len(self.seeds)), 0
        while len(running) and steps < world.limit:
            x = world.observe(state).astype(seen.dtype, copy=False)
            action = choose(logits(x[:, None], layers)[:, 0], chance[:, steps])
            state, reward, ended = world.step(state, action)
            seen[running, steps], actions[running, steps], rewards[running, steps] = x, action, reward
            present[running, steps] = True
            steps += 1
            if ended.any():
                on = ~ended
                running, state, chance = running[on], state[on], chance[on]
                layers = [(w[on], b[on]) for w, b in layers]
        return Episode(seen[:, :steps], actions[:, :steps], rewards[:, :steps], present[:, :steps], noise)

    def learn_from(self, episode: Episode) -> None:
        """One step of each seed's policy, and its score."""
        returns = returns_to_go(episode.rewards, self.settings.discount)
        self.optimizer.zero_grad()
        loss(self.layers(episode.noise), episode, self.advantages(returns, episode.present)).backward()
        self.optimizer.step()
        self.scores = np.concatenate([self.scores, episode.rewards.sum(1, keepdims=True)], axis=1)

    def noise(self, rngs: Sequence[np.random.Generator]) -> Tensor | None:
        if self.settings.policy == "deterministic":
            return None
        shape, dtype = (self.settings.hidden, self.settings.hidden), np.float64 if self.settings.double else np.float32
        return torch.from_numpy(np.stack([rng.standard_normal(shape, dtype) for rng in rngs]))

    def layers(self, noise: Tensor | None) -> list[tuple[Tensor, Tensor]]:
        """Weights `[S, in, out]` and biases `[S, out]` of the three layers, with this noise in the second."""
        p = self.parameters
        return [(p["W1"], p["b1"]), (second(self.settings.policy, p, noise), p["b"]), (p["W3"], p["b3"])]

    def advantages(self, returns: np.ndarray, present: np.ndarray) -> np.ndarray:
        """A `[S, T]`, zero in the padding."""
        usual, visits = self.usual[:, : returns.shape[1]], self.visits[:, : returns.shape[1]]
        news = np.where(present, returns - usual, 0.0)
        advantage = np.where(visits > 0, news, 0.0)  # a step that was never reached has no usual return to compare with
        visits += present
        usual += np.maximum(1 - self.settings.memory, 1 / np.maximum(visits, 1)) * news
        return advantage

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next episode depends on but the settings: tensors, and the list of seeds."""
        state: dict[str, Any] = {"seeds": list(self.seeds)}
        for name in ("scores", "usual", "visits"):
            state[name] = torch.from_numpy(getattr(self, name).copy())
        for name, value in self.parameters.items():
            state[f"parameter.{name}"] = value.detach().clone()
            for moment, of_it in self.optimizer.state[value].items():
                state[f"{moment}.{name}"] = of_it.clone()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        shapes = {f"parameter.{name}": value.shape for name, value in self.parameters.items()}
        given = {key: value.shape for key, value in state.items() if key.startswith("parameter.")}
        if list(state["seeds"]) != self.seeds or given != shapes:
            raise ValueError(
                f"the state must be of seeds {self.seeds} and of {self.settings}; it is of seeds {list(state['seeds'])} with "
                f"{ {key: tuple(shape) for key, shape in given.items()} }: load it with the settings that it was saved with"
            )
        for name in ("scores", "usual", "visits"):
            setattr(self, name, state[name].numpy().copy())
        for name, value in self.parameters.items():
            value.data.copy_(state[f"parameter.{name}"])
            moments = ("step", "exp_avg", "exp_avg_sq")
            kept = {moment: state[f"{moment}.{name}"].clone() for moment in moments if f"{moment}.{name}" in state}
            self.optimizer.state[value] = kept


def initial(settings: Settings, seed: int) -> dict[str, Tensor]:
    """One seed's parameters, U(±1/√fan_in) as torch's layers begin, whether the second layer's are μ or σ."""
    rng, hidden = np.random.default_rng([seed, 0]), settings.hidden

    def drawn(fan_in: int, *shape: int) -> Tensor:
        return torch.from_numpy(rng.uniform(-1, 1, shape) / fan_in**0.5)

    inputs, actions = settings.world.inputs, settings.world.actions
    found = {"W1": drawn(inputs, inputs, hidden), "b1": drawn(inputs, hidden)}
    found |= {"sigma" if settings.policy == "variance" else "mu": drawn(hidden, hidden, hidden), "b": drawn(hidden, hidden)}
    found |= {"W3": drawn(hidden, hidden, actions), "b3": drawn(hidden, actions)}
    if settings.policy == "parameter noise":
        found["sigma"] = torch.full((hidden, hidden), settings.first_sigma, dtype=torch.float64)
    return found


def second(policy: str, p: Mapping[str, Tensor], noise: Tensor | None) -> Tensor:
    """W of the second hidden layer in one episode."""
    if noise is None:
        return p["mu"]
    if policy == "parameter noise":
        return p["mu"] + p["sigma"] * noise
    return p["sigma"] * noise


Array = TypeVar("Array", np.ndarray, Tensor)


def logits(x: Array, layers: Sequence[tuple[Array, Array]]) -> Array:
    """`[S, T, inputs]` → `[S, T, actions]`, each seed by its own weights. NumPy acts (less overhead), torch learns."""
    (w1, b1), (w, b), (w3, b3) = layers
    h1 = (x @ w1 + b1[:, None]).clip(0)
    h2 = (h1 @ w + b[:, None]).clip(0)
    return h2 @ w3 + b3[:, None]


def choose(logits: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Actions `[n]` with probabilities softmax(logits), by where a uniform `chance` falls among their sums."""
    sums = np.exp(logits - logits.max(1, keepdims=True)).cumsum(1)
    return (chance[:, None] * sums[:, -1:] >= sums[:, :-1]).sum(1)


def loss(layers: Sequence[tuple[Tensor, Tensor]], episode: Episode, advantages: np.ndarray) -> Tensor:
    """−Σ_t A_t log π(a_t | x_t), summed over the seeds, whose gradients are their own. Padding must have no advantage."""
    chosen = torch.from_numpy(episode.actions)[..., None]
    log_p = logits(torch.from_numpy(episode.seen), layers).log_softmax(-1).gather(-1, chosen)[..., 0]
    return -(torch.from_numpy(advantages).to(log_p.dtype) * log_p).sum()


def returns_to_go(rewards: np.ndarray, discount: float) -> np.ndarray:
    """G_t = r_t + γ G_{t+1}, `[S, T]`."""
    returns = rewards.copy()
    for t in reversed(range(rewards.shape[1] - 1)):
        returns[:, t] += discount * returns[:, t + 1]
    return returns
