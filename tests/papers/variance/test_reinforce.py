"""REINFORCE on environments and networks small enough to compute by hand; in double precision where equality is claimed."""

import dataclasses
import io
import math

import numpy as np
import pytest
import torch

from pluribus.papers.variance.environments import CartPole
from pluribus.papers.variance.reinforce import (
    POLICIES,
    Episode,
    Learner,
    Settings,
    choose_actions,
    draw_parameters,
    learn,
    reinforce_loss,
    returns_to_go,
)


@dataclasses.dataclass(frozen=True)
class Arms:
    """Two arms: the better one pays 1, the other nothing. The observation never changes."""

    better: int = 1
    limit: int = 1
    inputs: int = 2
    actions: int = 2

    def start(self, rng):
        return np.zeros(1)

    def observe(self, state):
        return np.full((len(state), 2), 4.0)

    def step(self, state, action):
        return state, np.equal(action, self.better).astype(float), np.zeros(len(state), bool)


@dataclasses.dataclass(frozen=True)
class Walk:
    """Steps left, none and right with noisy pay, until beyond ±2.5: the episodes of several seeds differ in length."""

    limit: int = 12
    inputs: int = 2
    actions: int = 3

    def start(self, rng):
        return rng.uniform(-1, 1, 2)

    def observe(self, state):
        return state.copy()

    def step(self, state, action):
        state = state + np.stack([action - 1.0, 0.1 * np.ones(len(state))], axis=1)
        return state, np.sin(3 * state[:, 0]) + action, np.abs(state[:, 0]) > 2.5


def small(policy: str, **options) -> Settings:
    return Settings(**{"policy": policy, "environment": Walk(), "hidden": 4, "double": True, "learning_rate": 0.05} | options)


def log_probability(learner: Learner, seed: int, episode: Episode, t: int) -> torch.Tensor:
    """Of one action of one seed, a neuron at a time."""
    p = {name: value[seed] for name, value in learner.parameters.items()}
    hidden = learner.settings.hidden
    x = torch.tensor(episode.observations[seed, t])
    h1 = [torch.relu(sum(p["W1"][i, j] * x[i] for i in range(len(x))) + p["b1"][j]) for j in range(hidden)]

    def weight(i, j):
        match learner.settings.policy:
            case "deterministic":
                return p["mu"][i, j]
            case "parameter noise":
                return p["mu"][i, j] + p["sigma"][i, j] * episode.noise[seed, i, j]
            case "variance":
                return p["sigma"][i, j] * episode.noise[seed, i, j]

    h2 = [torch.relu(sum(weight(i, j) * h1[i] for i in range(hidden)) + p["b"][j]) for j in range(hidden)]
    out = torch.stack([sum(p["W3"][i, a] * h2[i] for i in range(hidden)) + p["b3"][a] for a in range(len(p["b3"]))])
    return out[int(episode.actions[seed, t])] - out.exp().sum().log()


def test_actions_come_with_the_probabilities_of_their_logits():
    logits, draws = np.array([[0.0, 1.0, -2.0]]), 200_000
    chosen = choose_actions(logits.repeat(draws, 0), np.random.default_rng(0).random(draws))
    wanted = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(np.bincount(chosen) / draws, wanted, atol=5 * 0.5 / draws**0.5)
    assert choose_actions(logits, np.array([0.0])) == 0
    assert choose_actions(logits, np.array([np.nextafter(1, 0)])) == 2


def test_returns_are_discounted_sums_of_what_is_still_to_come():
    rewards = np.array([[1.0, 2.0, 3.0], [5.0, 0.0, 0.0]])
    np.testing.assert_allclose(returns_to_go(rewards, 0.5), [[1 + 1 + 0.75, 2 + 1.5, 3], [5, 0, 0]])


@pytest.mark.parametrize("policy", POLICIES)
def test_the_gradient_is_that_of_each_seeds_log_probabilities_alone(policy):
    """Against a sum over the steps that were lived, each computed by itself from the definition."""
    learner = Learner(small(policy), [3, 4, 5])
    for _ in range(3):  # so that there is something usual
        learner.learn_from(learner.play())
    episode = learner.play()
    lengths = episode.present.sum(1)
    assert len(set(lengths)) > 1, "the test needs padding"
    usual, visits = learner.baseline.copy(), learner.visits.copy()
    before = {name: value.detach().clone() for name, value in learner.parameters.items()}
    goal = 0.0
    for seed in range(3):
        for t in range(lengths[seed]):
            ahead = sum(0.99 ** (k - t) * episode.rewards[seed, k] for k in range(t, lengths[seed]))
            if visits[seed, t]:
                goal = goal + (ahead - usual[seed, t]) * log_probability(learner, seed, episode, t)
    wanted = torch.autograd.grad(goal, list(learner.parameters.values()))
    learner.learn_from(episode)
    for (name, value), gradient in zip(learner.parameters.items(), wanted, strict=True):
        torch.testing.assert_close(-value.grad, gradient, rtol=1e-9, atol=1e-12)
        assert gradient.abs().sum() > 0, name
        assert (value != before[name]).any(), name


def test_averaged_over_actions_the_gradient_is_that_of_the_expected_reward():
    """Whatever the baseline: Σ_a π(a) (r(a) − b) ∇ log π(a) = ∇ Σ_a π(a) r(a)."""
    learner = Learner(small("variance"), [0])
    noise, seen, pay = learner.play().noise, np.array([[[0.3, -0.8]]]), torch.tensor([1.0, -2.0, 0.5], dtype=torch.double)
    one = lambda a: Episode(seen, np.array([[a]]), np.array([[float(pay[a])]]), np.ones((1, 1), bool), noise)  # noqa: E731
    values = list(learner.parameters.values())
    probability = torch.stack([-reinforce_loss(learner.layers(noise), one(a), np.ones((1, 1))) for a in range(3)]).exp()
    p = probability.tolist()
    wanted = torch.autograd.grad((probability * pay).sum(), values)
    for baseline in (0.0, 7.0):
        found = [
            torch.autograd.grad(reinforce_loss(learner.layers(noise), one(a), np.array([[float(pay[a]) - baseline]])), values)
            for a in range(3)
        ]
        for i, gradient in enumerate(wanted):
            torch.testing.assert_close(-sum(p[a] * found[a][i] for a in range(3)), gradient)


def test_padding_contributes_nothing():
    learner = Learner(small("parameter noise"), [0, 1, 2])
    learner.learn_from(learner.play())
    episode = learner.play()
    padding = ~episode.present
    assert padding.any()
    assert not episode.rewards[padding].any()
    gradients = []
    for rubbish in (0.0, 100.0):
        twin = Learner(learner.settings, [0, 1, 2])
        twin.load_state_dict(learner.state_dict())
        seen = np.where(padding[..., None], rubbish, episode.observations)
        twin.learn_from(episode._replace(observations=seen, actions=np.where(padding, 2 * (rubbish > 0), episode.actions)))
        gradients.append([value.grad for value in twin.parameters.values()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_the_baseline_is_the_mean_of_past_returns_then_a_moving_one():
    learner = Learner(small("deterministic", memory=0.5), [0])
    here = np.array([[True, True, False]])
    found = [learner.compute_advantages(np.array([[g, g / 2, 0.0]]), here) for g in (4.0, 6.0, 9.0)]
    np.testing.assert_allclose(found, [[[0, 0, 0]], [[2, 1, 0]], [[4, 2, 0]]])
    np.testing.assert_allclose(learner.baseline[0, :3], [7.0, 3.5, 0])  # 4; (4 + 6)/2; 5 + ½ (9 − 5)
    assert not learner.baseline[0, 3:].any()


@pytest.mark.parametrize("better", [0, 1])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_learns_the_better_arm(policy, better):
    scores = learn(Settings(policy=policy, environment=Arms(better), hidden=8, learning_rate=0.02), range(10), 200)
    assert scores[:, -50:].mean() > 0.9


def test_noise_is_fixed_in_an_episode_and_fresh_in_the_next():
    """On one observation: between episodes frequencies scatter by the noise; within one, by coin flips alone."""
    environment, episodes = Arms(limit=400), 20

    def frequencies(policy: str) -> tuple[np.ndarray, np.ndarray, list[torch.Tensor | None]]:
        learner = Learner(small(policy, environment=environment, learning_rate=1e-12, hidden=6, first_sigma=0.5), [0])
        played = []
        for _ in range(episodes):
            played.append(learner.play())
            learner.learn_from(played[-1])
        exact = [math.exp(log_probability(learner, 0, e._replace(actions=np.ones_like(e.actions)), 0).item()) for e in played]
        return np.array([e.actions.mean() for e in played]), np.array(exact), [e.noise for e in played]

    coin = 0.5 / environment.limit**0.5
    for policy in ("parameter noise", "variance"):
        found, exact, noises = frequencies(policy)
        assert np.abs(found - exact).max() < 4.5 * coin
        assert exact.std() > 3 * coin
        flat = torch.stack([noise.flatten() for noise in noises])
        assert len(flat.unique(dim=0)) == episodes
        assert abs(float(flat.mean())) < 5 / flat.numel() ** 0.5
        assert abs(float(flat.var()) - 1) < 5 * (2 / flat.numel()) ** 0.5
    found, exact, noises = frequencies("deterministic")
    assert set(noises) == {None}
    assert np.ptp(exact) < 1e-6
    assert found.std() < 2 * coin


@pytest.mark.parametrize("environment", [Walk(), CartPole(limit=30)])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_seed_does_the_same_alone_as_beside_others(policy, environment):
    settings = small(policy, environment=environment, hidden=8, learning_rate=0.01)
    together, alone = Learner(settings, [0, 1, 2]), Learner(settings, [1])
    for learner in (together, alone):
        for _ in range(10):
            learner.learn_from(learner.play())
    np.testing.assert_allclose(together.scores[1:2], alone.scores, rtol=0, atol=1e-9)
    for name, value in alone.parameters.items():
        torch.testing.assert_close(together.parameters[name][1:2], value, rtol=0, atol=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_stopping_and_going_on_changes_nothing(policy):
    settings = small(policy, double=False)
    kept: list[bytes] = []

    def keep(learner: Learner) -> None:
        if learner.episodes == 3:
            file = io.BytesIO()
            torch.save(learner.state_dict(), file)
            kept.append(file.getvalue())

    ends: list[Learner] = []
    whole = learn(settings, [5, 6], 6, after=lambda learner: (keep(learner), ends.append(learner)))
    state = torch.load(io.BytesIO(kept[0]), weights_only=True)
    resumed = learn(settings, [5, 6], 6, state=state, after=ends.append)
    np.testing.assert_array_equal(resumed, whole)
    one, other = ends[5].state_dict(), ends[-1].state_dict()
    assert one.keys() == other.keys()
    for key in one.keys() - {"seeds"}:
        torch.testing.assert_close(one[key], other[key], rtol=0, atol=0, msg=key)


def test_a_learner_begins_like_torchs_layers_and_the_policies_begin_alike():
    deterministic, noisy, variance = (Learner(Settings(policy=policy), [0, 1]).parameters for policy in POLICIES)
    for name, fan_in in {"W1": 4, "b1": 4, "mu": 256, "b": 256, "W3": 256, "b3": 256}.items():
        value, bound = deterministic[name].detach(), fan_in**-0.5
        assert value.abs().max() <= bound
        assert not torch.equal(value[0], value[1])
        if value.numel() > 1000:
            assert abs(float(value.var()) / (bound**2 / 3) - 1) < 0.1
        torch.testing.assert_close(noisy[name].detach(), value, rtol=0, atol=0)
        torch.testing.assert_close(variance["sigma" if name == "mu" else name].detach(), value, rtol=0, atol=0)
    assert noisy["sigma"].detach().unique().tolist() == pytest.approx([0.017])
    assert set(variance) == {"W1", "b1", "sigma", "b", "W3", "b3"}


def test_wrong_settings_and_states_are_answered_with_a_sentence():
    with pytest.raises(ValueError, match="policy must be one of"):
        Settings(policy="greedy")
    with pytest.raises(ValueError, match="discount must be from 0 to 1"):
        Settings(policy="variance", discount=1.5)
    with pytest.raises(ValueError, match="seeds must be different"):
        Learner(small("variance"), [1, 1])
    with pytest.raises(ValueError, match="load it with the settings"):
        Learner(small("variance"), [1]).load_state_dict(Learner(small("deterministic"), [1]).state_dict())
    with pytest.raises(ValueError, match=r"must be of seeds \[1\]"):
        Learner(small("variance"), [1]).load_state_dict(Learner(small("variance"), [2]).state_dict())


@pytest.mark.parametrize("policy", ["parameter noise", "variance"])
def test_the_first_sigma_can_be_scaled_and_the_rest_stays(policy):
    usual, larger = (draw_parameters(Settings(policy, hidden=8, sigma_factor=factor), 0) for factor in (1.0, 3.0))
    for name, value in usual.items():
        torch.testing.assert_close(larger[name], value * (3.0 if name == "sigma" else 1.0))
