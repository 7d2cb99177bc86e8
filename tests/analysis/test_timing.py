"""Interleaved timing, with an invented clock."""

from collections import Counter

import pytest

from pluribus.analysis.timing import summarize_ratios, time_interleaved


def test_every_candidate_is_timed_once_a_repeat_in_orders_that_differ(clock):
    names = ["base", "a", "b", "c"]
    candidates = {name: clock.work(name, 0.01 * (place + 1)) for place, name in enumerate(names)}
    repeats = list(time_interleaved(candidates, 8))
    assert len(repeats) == 8
    assert all(set(repeat) == set(names) for repeat in repeats)
    assert repeats[0] == pytest.approx({"base": 0.01, "a": 0.02, "b": 0.03, "c": 0.04})
    assert len({tuple(repeat) for repeat in repeats}) > 3


def test_a_busy_moment_changes_no_ratio(clock):
    """The machine is ten times slower in every other repeat."""
    times = {"base": [], "twice": []}
    candidates = {"base": clock.work("base", 0.01), "twice": clock.work("twice", 0.02)}
    for repeat in time_interleaved(candidates, 6):
        for name, seconds in repeat.items():
            times[name].append(seconds)
        clock.busy = 11.0 - clock.busy
    assert max(times["base"]) == pytest.approx(10 * min(times["base"]))
    found = summarize_ratios(times["twice"], times["base"])
    assert (found.median, found.low, found.high) == pytest.approx((2, 2, 2))


def test_short_work_is_repeated_until_it_lasts_a_slice(clock):
    candidates = {"short": clock.work("short", 0.001), "long": clock.work("long", 0.1)}
    (repeat,) = time_interleaved(candidates, 1)
    assert repeat == pytest.approx({"short": 0.001, "long": 0.1})  # of one run, however many there were
    assert Counter(clock.log) == {"short": 2 + 5, "long": 2 + 1}  # a warm-up, one to find out how long it takes, the slice


def test_the_median_and_the_middle_half_are_of_the_ratios_not_of_the_times():
    found = summarize_ratios([2, 6, 20, 40, 50], [1, 2, 5, 8, 1])
    assert (found.low, found.median, found.high) == (3, 4, 5)
    assert summarize_ratios([3.0], [2.0]).median == 1.5
