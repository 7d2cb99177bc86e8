"""The environments of figure 6, CartPole and Acrobot: gymnasium's equations for many episodes at once.

Barto, Sutton & Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems", 1983.
Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse coding", 1996.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


class Environment(Protocol):
    """An environment without a state of its own: states `[n, …]` go in and come out, one row for each running episode."""

    @property
    def inputs(self) -> int:
        """The length of an observation."""

    @property
    def actions(self) -> int:
        """The number of actions."""

    @property
    def limit(self) -> int:
        """The number of steps after which an episode is cut off."""

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Draw an initial state."""

    def observe(self, state: np.ndarray) -> np.ndarray:
        """States → observations `[n, inputs]`."""

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
        """A cart of 1 kg with a pole of 0.1 kg and 1 m, pushed by ±10 N for 0.02 s; an episode ends beyond 2.4 m or 12°."""
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
        k1 = self.differentiate(state, torque)
        k2 = self.differentiate(state + span / 2 * k1, torque)
        k3 = self.differentiate(state + span / 2 * k2, torque)
        k4 = self.differentiate(state + span * k3, torque)
        state = state + span / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        angles, fastest = state[:, :2], np.array([4 * np.pi, 9 * np.pi])
        angles -= 2 * np.pi * np.rint(angles / (2 * np.pi))
        np.clip(state[:, 2:], -fastest, fastest, out=state[:, 2:])
        ended = -np.cos(angles[:, 0]) - np.cos(angles[:, 0] + angles[:, 1]) > 1.0
        return state, np.where(ended, 0.0, -1.0), ended

    @staticmethod
    def differentiate(state: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """d/dt of (θ1, θ2, θ1', θ2') by Sutton & Barto's equations: links of 1 m, 1 kg and 1 kg m², centres of mass at ½ m."""
        angle1, angle2, turning1, turning2 = state.T
        cos2, sin2 = np.cos(angle2), np.sin(angle2)
        d1, d2 = 3.5 + cos2, 1.25 + 0.5 * cos2
        phi2 = 4.9 * np.sin(angle1 + angle2)
        phi1 = phi2 + 14.7 * np.sin(angle1) - (0.5 * turning2 + turning1) * turning2 * sin2
        ratio = d2 / d1
        turned2 = (torque + ratio * phi1 - 0.5 * turning1**2 * sin2 - phi2) / (1.25 - ratio * d2)
        return np.stack([turning1, turning2, -ratio * turned2 - phi1 / d1, turned2], axis=1)
