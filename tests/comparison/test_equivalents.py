"""Deep-ensemble equivalents: the edges of the curve, its interval, and that a method that is l networks is worth l."""

import pytest
import torch

from pluribus.comparison.equivalents import EquivalentsCurve, find_equivalents, format_equivalents
from pluribus.comparison.recommendation import recommend
from pluribus.comparison.statistics import PairedBootstrap
from pluribus.metrics import Interval

CURVE = torch.tensor([1.0, 0.8, 0.7, 0.65], dtype=torch.double)
TINY = 1e-12


def equivalents(nll, curve=CURVE):
    found, below, above = find_equivalents(curve, torch.tensor(nll, dtype=torch.double))
    return found.item(), below.item(), above.item()


@pytest.mark.parametrize(
    ("nll", "expected"),
    [(1.0, 1.0), (0.95, 1.25), (0.8, 2.0), (0.75, 2.5), (0.7, 3.0), (0.66, 3.8), (0.65, 4.0)],
)
def test_it_is_linear_between_sizes_and_exact_at_them(nll, expected):
    assert equivalents(nll) == (pytest.approx(expected, abs=1e-12), False, False)


def test_nothing_is_extrapolated_beyond_either_end():
    assert equivalents(1.0 + TINY) == (1.0, True, False)
    assert equivalents(5.0) == (1.0, True, False)
    assert equivalents(0.65 - TINY) == (4.0, False, True)
    assert equivalents(-3.0) == (4.0, False, True)
    assert equivalents(1.0 - TINY) == (pytest.approx(1.0, abs=1e-10), False, False)
    assert equivalents(0.65 + TINY) == (pytest.approx(4.0, abs=1e-10), False, False)


def test_a_curve_that_rises_in_between_is_taken_as_flat_there_and_the_smallest_size_counts():
    curve = torch.tensor([1.0, 0.8, 0.9, 0.6], dtype=torch.double)  # 1.0, 0.8, 0.8, 0.6
    assert equivalents(0.8, curve)[0] == 2.0
    assert equivalents(0.8 - TINY, curve)[0] == pytest.approx(3.0, abs=1e-10)
    assert equivalents(0.7, curve)[0] == pytest.approx(3.5)
    assert equivalents(0.9, curve)[0] == pytest.approx(1.5)


def test_where_more_networks_gain_nothing_one_suffices_or_none_does():
    flat = torch.ones(3, dtype=torch.double)
    assert equivalents(1.0, flat) == (1.0, False, False)
    assert equivalents(1.0 + TINY, flat) == (1.0, True, False)
    assert equivalents(1.0 - TINY, flat) == (3.0, False, True)


def test_many_draws_are_those_of_one_after_the_other():
    generator = torch.Generator().manual_seed(0)
    curves = torch.rand(50, 5, generator=generator, dtype=torch.double)
    nll = 1.4 * torch.rand(50, generator=generator, dtype=torch.double) - 0.2
    found = find_equivalents(curves, nll)
    for draw in range(50):
        alone = find_equivalents(curves[draw], nll[draw])
        assert [each[draw].item() for each in found] == [each.item() for each in alone]


# --- with the bootstrap -----------------------------------------------------------------------------------------------

TRUE = {1: 0.50, 2: 0.42, 3: 0.39, 4: 0.375}


def draw_networks(size, generator, hard, seeds=3):
    """The NLL of every row of `seeds` ensembles of `size` networks: rows are hard for all, and seeds have their luck."""
    luck = 0.004 * torch.randn(seeds, generator=generator, dtype=torch.double)
    noise = 0.3 * torch.randn(seeds, len(hard), generator=generator, dtype=torch.double) / size**0.5
    return {seed: TRUE[size] + hard + luck[seed] + noise[seed] for seed in range(seeds)}


def compare(generator, method=2, rows=400):
    hard = torch.rand(rows, generator=generator, dtype=torch.double)
    tables = {f"[{size}]": draw_networks(size, generator, hard - hard.mean()) for size in TRUE}
    tables["single"] = draw_networks(1, generator, hard - hard.mean())
    tables["method"] = draw_networks(method, generator, hard - hard.mean())
    return EquivalentsCurve(PairedBootstrap(tables, draws=400), tuple(f"[{size}]" for size in TRUE))


def test_a_method_that_is_two_networks_is_worth_two_within_its_interval():
    """Of 100 simulated comparisons at least 88 intervals hold 2, of which 95 % should: −3 standard errors."""
    held, values = 0, []
    for trial in range(100):
        found = compare(torch.Generator().manual_seed(trial)).measure("method")
        held += found["low"] <= 2 <= found["high"]
        values.append(found["value"])
    assert held >= 88
    assert sorted(values)[50] == pytest.approx(2, abs=0.15)


def test_the_ends_of_the_curve_are_worth_one_network_and_all_of_them():
    curve = compare(torch.Generator().manual_seed(0))
    for name, size in (("[1]", 1.0), ("[4]", 4.0)):
        found = curve.measure(name)
        assert (found["value"], found["below"], found["above"], found["most"]) == (size, False, False, 4)
        assert found["high"] == size  # in some draws fewer networks do as well as all


def test_a_method_below_one_network_or_above_all_says_so():
    generator = torch.Generator().manual_seed(3)
    hard = torch.rand(400, generator=generator, dtype=torch.double)
    tables = {f"[{size}]": draw_networks(size, generator, hard) for size in TRUE}
    tables["worse"] = {seed: rows + 0.1 for seed, rows in tables["[1]"].items()}
    tables["better"] = {seed: rows - 0.1 for seed, rows in tables["[4]"].items()}
    curve = EquivalentsCurve(PairedBootstrap(tables, draws=200), tuple(f"[{size}]" for size in TRUE))
    worse, better = curve.measure("worse"), curve.measure("better")
    assert (worse["value"], worse["low"], worse["high"], worse["below"], worse["above"]) == (1, 1, 1, True, False)
    assert (better["value"], better["low"], better["high"], better["below"], better["above"]) == (4, 4, 4, False, True)
    assert (format_equivalents(worse), format_equivalents(better)) == ("< 1", "> 4")


def test_the_curve_in_the_results_has_a_latency_for_each_network():
    found = compare(torch.Generator().manual_seed(0)).describe("deep-ensemble", 3.7)
    assert found["latency"] == pytest.approx([1.0, 1.9, 2.8, 3.7])
    assert [entry["value"] for entry in found["nll"]] == pytest.approx(list(TRUE.values()), abs=0.03)
    assert compare(torch.Generator().manual_seed(0)).describe("deep-ensemble", None)["latency"] is None


# --- in words ---------------------------------------------------------------------------------------------------------


def recommend_by(curve, latencies, names):
    methods = [{"name": name, "share": None, "cost": {"latency": {"value": latencies[name]}}} for name in names]
    smaller = [
        {"name": f"[{size}]", "title": f"deep:members={size}", "remark": "Parts.", "cost": {"latency": {"value": float(size)}}}
        for size in (2, 3)
    ]
    return recommend(methods, curve.draws, "single", curve, smaller)


def test_the_text_says_how_many_networks_a_method_is_worth():
    told = recommend_by(compare(torch.Generator().manual_seed(0)), {"single": 1.0, "method": 1.05}, ["single", "method"])
    assert (told[0]["limit"], told[0]["method"]) == ("under 1.1× the latency of one network", "method")
    assert "worth 2.0 (" in told[0]["text"]
    assert "independent networks, at 1.05× the latency." in told[0]["text"]


def test_fewer_networks_of_the_reference_are_recommended_where_they_are_best_within_a_limit():
    curve = compare(torch.Generator().manual_seed(0), method=1)
    told = recommend_by(curve, {"single": 1.0, "method": 1.05}, ["single", "method"])
    chosen = {each["limit"]: each["method"] for each in told}
    assert chosen["under 1.1× the latency of one network"] is None
    assert chosen["under 2× the latency of one network"] == "deep:members=2"
    assert chosen["under 5× the latency of one network"] == "deep:members=3"
    assert told[1]["text"].endswith("at 2.00× the latency. Parts.")


def test_if_only_fewer_networks_are_within_a_limit_and_gain_nothing_they_are_named():
    flat = {name: {0: torch.ones(50) + 0.1 * torch.randn(50)} for name in ("single", "[1]", "[2]", "[3]", "[4]")}
    curve = EquivalentsCurve(PairedBootstrap(flat, draws=50), ("[1]", "[2]", "[3]", "[4]"))
    curve.draws.gain = lambda *_: Interval(0.0, -1.0, 1.0)
    told = recommend_by(curve, {"single": 1.0}, ["single"])
    assert [each["method"] for each in told] == [None]
    assert told[0]["text"].startswith(
        "deep:members=2 and deep:members=3 would not have a lower calibrated NLL beyond the noise"
    )
