"""The environments compute what gymnasium's do."""

import numpy as np
import pytest

from pluribus.papers.variance.environments import Acrobot, CartPole


def record_steps(name: str, policy, seeds: int, steps: int, kick=None) -> dict[str, np.ndarray]:
    """Steps of gymnasium's environment: state before, action, state after, observation, reward, whether it ended."""
    environment = pytest.importorskip("gymnasium").make(name).unwrapped
    rows: dict[str, list] = {key: [] for key in ("before", "action", "after", "seen", "reward", "ended")}
    for seed in range(seeds):
        environment.reset(seed=seed)
        if kick is not None and seed % 4 == 0:
            environment.state = kick(seed)
        for _ in range(steps):
            before = np.array(environment.state, dtype=float)
            action = policy(seed, before)
            seen, reward, ended, _, _ = environment.step(action)
            for key, value in zip(rows, (before, action, np.array(environment.state), seen, reward, ended), strict=True):
                rows[key].append(value)
            if ended:
                break
    return {key: np.stack(values) for key, values in rows.items()}


def check_steps(environment, theirs: dict[str, np.ndarray]) -> None:
    state, reward, ended = environment.step(theirs["before"], theirs["action"])
    np.testing.assert_allclose(state, theirs["after"], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(reward, theirs["reward"])
    np.testing.assert_array_equal(ended, theirs["ended"])
    np.testing.assert_array_equal(environment.observe(theirs["after"]), theirs["seen"])


def test_cart_pole_is_gymnasiums():
    rng = np.random.default_rng(0)
    balancing = lambda state: int(state[2] + 0.5 * state[3] > 0)  # noqa: E731
    theirs = record_steps("CartPole-v1", lambda seed, state: balancing(state) if seed % 2 else int(rng.integers(2)), 30, 200)
    check_steps(CartPole(), theirs)
    assert 10 < theirs["ended"].sum() < len(theirs["ended"]) / 20


def test_acrobot_is_gymnasiums():
    rng = np.random.default_rng(0)
    fast = lambda seed: np.array([3.0, -3.0, 12.5, 28.0]) * rng.choice([-1, 1], 4)  # noqa: E731
    swinging = lambda state: int(np.sign(state[3])) + 1  # noqa: E731
    theirs = record_steps(
        "Acrobot-v1", lambda seed, state: swinging(state) if seed % 2 else int(rng.integers(3)), 20, 300, fast
    )
    check_steps(Acrobot(), theirs)
    assert theirs["ended"].sum() > 5
    assert (np.abs(theirs["after"] - theirs["before"])[:, :2] > 5).sum() > 5, "angles must wrap"
    assert (np.abs(theirs["after"][:, 2:]) == [4 * np.pi, 9 * np.pi]).sum(0).min() > 0, "both speeds must reach their bounds"


@pytest.mark.parametrize(("name", "environment"), [("CartPole-v1", CartPole()), ("Acrobot-v1", Acrobot())])
def test_environments_begin_where_gymnasiums_do_and_have_its_sizes(name, environment):
    theirs = pytest.importorskip("gymnasium").make(name)
    for seed in range(20):
        seen, _ = theirs.reset(seed=seed)
        state = environment.start(np.random.default_rng(seed))
        np.testing.assert_array_equal(state, theirs.unwrapped.state)
        np.testing.assert_allclose(environment.observe(state[None])[0], seen, rtol=0, atol=1e-7)
    assert (environment.inputs,) == theirs.observation_space.shape
    assert environment.actions == theirs.action_space.n
    assert environment.limit == {"CartPole-v1": 200, "Acrobot-v1": theirs.spec.max_episode_steps}[name]
