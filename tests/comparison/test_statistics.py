"""From judged runs to numbers, and from numbers to words."""

import pytest
import torch
from scipy import stats

from pluribus.comparison.recommendation import recommend
from pluribus.comparison.statistics import PairedBootstrap, pool_reliability, summarize_seeds
from pluribus.data.corruptions import STANDARD
from pluribus.metrics import Interval
from pluribus.runs.robustness import mce

BASE, BEST = "single", "deep-ensemble"


def rows(mean, seeds=(0, 1, 2), count=2000, spread=0.1, seed=0):
    """The NLL of every row, alike between methods but for its mean: rows are hard or easy for all."""
    generator = torch.Generator().manual_seed(seed)
    hard = torch.rand(count, generator=generator).double()
    return {s: hard - hard.mean() + mean + spread * torch.randn(count, generator=generator).double() for s in seeds}


def test_a_number_has_its_mean_and_spread_over_seeds():
    assert summarize_seeds([1.0, 2.0, 6.0]) == {"mean": 3.0, "std": pytest.approx(7**0.5), "seeds": [1.0, 2.0, 6.0]}
    assert summarize_seeds([5.0])["std"] is None  # one seed has no spread, and zero would look like certainty


def test_the_share_is_the_gain_over_the_gain_of_the_deep_ensemble():
    draws = PairedBootstrap({BASE: rows(1.0, seed=1), "half": rows(0.9, seed=2), BEST: rows(0.8, seed=3)})
    share = draws.share("half", BASE, BEST)
    exact = (draws.values[BASE] - draws.values["half"]) / (draws.values[BASE] - draws.values[BEST])
    assert share.value == pytest.approx(exact)
    assert share.value == pytest.approx(0.5, abs=0.1)
    assert share.low < share.value < share.high


def test_pairing_by_rows_makes_intervals_as_narrow_as_the_differences_are():
    """Rows differ by far more than methods do: unpaired, no difference could be seen."""
    draws = PairedBootstrap({BASE: rows(1.0, seed=0), "better": rows(0.98, seed=0)})
    assert draws.gain("better", BASE).low > 0
    interval = draws.interval("better")
    assert interval.high - interval.low > 10 * (draws.gain("better", BASE).high - draws.gain("better", BASE).low)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """Over rows: 95 % intervals of 200 comparisons, whose difference is 0.05; ±3 standard errors of that share."""
    held = 0
    for trial in range(200):
        generator = torch.Generator().manual_seed(trial)
        noise = torch.randn(2, 150, generator=generator).double()
        draws = PairedBootstrap({BASE: {0: noise[0] + 0.05}, "better": {0: noise[1]}}, draws=200)
        interval = draws.gain("better", BASE)
        held += interval.low <= 0.05 <= interval.high
    assert 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5 <= held / 200 <= 1


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_over_seeds_alone_the_interval_is_students(seeds):
    """All rows of a seed are equal, so that only seeds differ. 40,000 draws: the edges to 5 % of the width (of t₁, 10 %)."""
    values = torch.randn(seeds).double()
    draws = PairedBootstrap({"a": {seed: value.expand(10) for seed, value in enumerate(values)}}, draws=40_000)
    interval = draws.interval("a")
    reach = stats.t.ppf(0.975, seeds - 1) * values.std().item() / seeds**0.5
    assert interval.high - interval.low == pytest.approx(2 * reach, rel=0.1 if seeds == 2 else 0.05)
    assert interval.value == pytest.approx(values.mean().item())


@pytest.mark.parametrize("seeds", [2, 3])
def test_methods_that_do_not_differ_are_rarely_told_apart_by_few_seeds(seeds):
    """One-sided, 2.5 %: of 400 pairs that differ by their seeds' luck alone, at most 2.5 % + 3 standard errors."""
    found = 0
    for trial in range(400):
        generator = torch.Generator().manual_seed(trial)
        luck = torch.randn(2, seeds, generator=generator).double()
        noise = 0.01 * torch.randn(2, 50, generator=generator).double()
        pair = {name: {s: noise[m] + luck[m, s] for s in range(seeds)} for m, name in enumerate((BASE, "same"))}
        found += PairedBootstrap(pair, draws=400).gain("same", BASE).low > 0
    assert found / 400 <= 0.025 + 3 * (0.025 * 0.975 / 400) ** 0.5


def test_rows_of_ones_own_for_every_seed_may_differ_in_number():
    draws = PairedBootstrap({"a": {0: torch.zeros(10), 1: torch.ones(11)}}, shared=False)
    assert draws.values["a"] == 0.5


def test_rows_that_all_seeds_share_are_drawn_together():
    """Four seeds on the same rows say no more about rows than one does."""
    column = torch.randn(200).double()
    one = PairedBootstrap({"a": {0: column}}).interval("a")
    shared = PairedBootstrap({"a": dict.fromkeys(range(4), column)}).interval("a")
    apart = PairedBootstrap({"a": dict.fromkeys(range(4), column)}, shared=False).interval("a")
    assert shared.high - shared.low == pytest.approx(one.high - one.low, rel=0.1)
    assert apart.high - apart.low == pytest.approx((one.high - one.low) / 2, rel=0.15)


def test_a_share_without_an_end_is_no_share():
    draws = PairedBootstrap({BASE: rows(1.0, seed=1), "half": rows(0.9, seed=2), BEST: rows(0.8, seed=3)})
    gains = draws.drawn[BASE] - draws.drawn[BEST]
    draws.drawn[BEST][gains.argsort()[: len(gains) // 30]] = 10.0  # some draws have no gain to share
    draws.less = lambda *_: Interval(0.2, 0.1, 0.3)
    assert draws.share("half", BASE, BEST) is None


def test_no_share_where_the_deep_ensemble_gained_nothing_beyond_the_noise():
    draws = PairedBootstrap({BASE: rows(1.0, seed=1), "half": rows(0.9, seed=2), BEST: rows(1.0, seed=3)})
    assert draws.share("half", BASE, BEST) is None


def test_bins_are_pooled_by_their_rows():
    first = {"count": [1, 0], "confidence": [0.2, None], "accuracy": [0.0, None]}
    second = {"count": [3, 2], "confidence": [0.4, 0.9], "accuracy": [1.0, 0.5]}
    whole = pool_reliability([first, second])
    assert whole["count"] == [4, 2]
    assert whole["confidence"] == pytest.approx([(0.2 + 3 * 0.4) / 4, 0.9])
    assert whole["accuracy"] == pytest.approx([0.75, 0.5])


def test_mce_is_the_mean_over_kinds_of_errors_relative_to_the_base():
    own = {kind: {"accuracy": [0.9] * 5} for kind in STANDARD}
    base = {kind: {"accuracy": [0.8] * 5} for kind in STANDARD}
    own["fog"] = {"accuracy": [0.4] * 5}
    assert mce({"kinds": own}, {"kinds": base}) == pytest.approx((14 * 0.5 + 3.0) / 15)


# --- words ------------------------------------------------------------------------------------------------------------


def judged(latencies, means, **options):
    draws = PairedBootstrap({name: rows(mean, seed=place, **options) for place, (name, mean) in enumerate(means.items())})
    methods = [{"name": name, "share": None, "cost": {"latency": {"value": latencies[name]}}, "scores": {}} for name in means]
    return recommend(methods, draws, BASE)


def test_the_best_within_each_limit_is_named_with_its_reasons():
    told = judged({BASE: 1.0, "mimo": 1.05, "slow": 8.0, BEST: 4.0}, {BASE: 1.0, "mimo": 0.9, "slow": 0.95, BEST: 0.7})
    assert [(each["limit"], each["method"]) for each in told] == [
        ("under 1.1× the latency of one network", "mimo"),
        ("under 5× the latency of one network", BEST),
    ]
    assert told[0]["text"].startswith("Its calibrated NLL is 0.8995, lower than the single network's 0.9985 by 0.099 (")
    assert "1.05× the latency" in told[0]["text"]


def test_nothing_is_recommended_where_the_difference_is_within_the_noise():
    told = judged({BASE: 1.0, "mimo": 1.05, BEST: 4.0}, {BASE: 1.0, "mimo": 1.0, BEST: 1.0}, spread=0.5)
    assert [each["method"] for each in told] == [None]
    assert told[0]["text"].startswith("None of the 2 other methods has a lower calibrated NLL beyond the noise of 3 seeds")


def test_what_was_told_apart_stays_apart_under_a_wider_limit():
    """B beats A; a noisy C cannot be told from either. Whoever may pay for B is not sent back to A."""
    told = judged({BASE: 1.0, "a": 1.0, "b": 1.8}, {BASE: 1.0, "a": 0.9, "b": 0.85}, spread=0.05)
    assert [each["method"] for each in told] == ["a", "b"]
    latencies, means = {BASE: 1.0, "a": 1.0, "b": 1.8, "c": 4.0}, {BASE: 1.0, "a": 0.9, "b": 0.85, "c": 0.84}
    draws = PairedBootstrap({name: rows(mean, seed=place, spread=0.05) for place, (name, mean) in enumerate(means.items())})
    draws.drawn["c"] = draws.drawn["c"] + 0.1 * torch.randn(len(draws.drawn["c"])).double()
    methods = [{"name": name, "share": None, "cost": {"latency": {"value": latencies[name]}}, "scores": {}} for name in means]
    told = recommend(methods, draws, BASE)
    assert told[-1]["method"] == "b"
    assert "a" not in told[-1]["text"].split("The calibrated NLL of")[-1].split("cannot")[0].split()


def test_alone_there_is_nothing_to_recommend():
    assert judged({BASE: 1.0}, {BASE: 1.0}) == []


def test_of_those_that_cannot_be_told_apart_the_cheapest_is_named_and_the_others_are_said():
    told = judged({BASE: 1.0, "cheap": 1.5, "dear": 1.9}, {BASE: 1.0, "dear": 0.8, "cheap": 0.8001}, spread=0.3)
    assert told[-1]["method"] == "cheap"
    assert "dear cannot be told from it" in told[-1]["text"]


def test_a_worse_method_is_never_recommended_however_cheap():
    told = judged({BASE: 1.0, "bad": 0.5}, {BASE: 1.0, "bad": 2.0})
    assert [each["method"] for each in told] == [None]


def test_without_a_single_network_there_is_nothing_to_compare_with():
    assert judged({BEST: 4.0}, {BEST: 0.5}) == []
