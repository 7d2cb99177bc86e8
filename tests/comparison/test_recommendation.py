"""The rule of the recommendation: gains just inside and just outside the noise, latencies at and just above each limit."""

import pytest

from pluribus.comparison.recommendation import recommend
from pluribus.metrics import Interval


class Gains:
    """Stands for a PairedBootstrap whose intervals over the baseline are given; among the others nobody beats another."""

    seeds = 3

    def __init__(self, lows, beats=()):
        self.lows, self.beats = lows, beats
        self.values = {"single": 1.0} | dict.fromkeys(lows, 0.9)

    def gain(self, name, other):
        low = self.lows[name] if other == "single" else 1e-9 if (name, other) in self.beats else 0.0
        return Interval(0.1, low, 0.2)


def choose(latencies, lows, beats=()):
    methods = [{"name": name, "cost": {"latency": {"value": value}}} for name, value in ({"single": 1.0} | latencies).items()]
    return [(each["limit"], each["method"]) for each in recommend(methods, Gains(lows, beats), "single")]


def test_a_gain_is_beyond_the_noise_if_its_interval_lies_above_zero():
    assert choose({"a": 1.0}, {"a": 1e-9}) == [("under 1.1× the latency of one network", "a")]
    assert choose({"a": 1.0}, {"a": 0.0}) == [("at any latency", None)]
    assert choose({"a": 1.0}, {"a": -1e-9}) == [("at any latency", None)]


@pytest.mark.parametrize(("limit", "following"), [(1.1, "under 2×"), (2.0, "under 5×"), (5.0, "at any latency")])
def test_a_method_at_a_limit_is_within_it_and_one_just_above_is_not(limit, following):
    assert choose({"a": limit}, {"a": 0.1})[-1] == (f"under {limit:g}× the latency of one network", "a")
    chosen = choose({"a": limit + 1e-6}, {"a": 0.1})[-1]
    assert chosen[0].startswith(following)
    assert chosen[1] == "a"


def test_the_fastest_of_those_that_no_candidate_beats_is_chosen():
    latencies, lows = {"slow": 1.05, "fast": 1.01}, {"slow": 0.1, "fast": 0.1}
    assert choose(latencies, lows)[0][1] == "fast"
    assert choose(latencies, lows, beats=[("slow", "fast")])[0][1] == "slow"
    assert choose(latencies, lows | {"slow": 0.0}, beats=[("slow", "fast")])[0][1] == "fast", "only a candidate can beat one"
