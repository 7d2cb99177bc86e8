"""Smaller ensembles inside one of independent networks: each is judged as it would be alone."""

import pytest
import torch

from pluribus import metrics
from pluribus.analysis.sub_ensembles import MOST_TABLES, ROTATIONS, SubEnsembleScores, list_sub_ensembles
from pluribus.core.predictive import Predictive
from pluribus.metrics.temperature import cross_fit_nll, nll_at_temperatures


def collect(p, y, noise=None, size=30):
    collected = SubEnsembleScores(p.task, len(p.outputs), len(y), noise)
    for start in range(0, len(y), size):
        collected.add(Predictive(p.outputs[:, start : start + size], p.task), y[start : start + size])
    return collected.table()


@pytest.mark.parametrize("members", [2, 3, 4, 8, 11])
def test_every_size_has_distinct_members_that_are_used_equally_often(members):
    found = list_sub_ensembles(members)
    assert list(found) == list(range(1, members + 1))
    assert found[1] == [[member] for member in range(members)]
    assert found[members] == [list(range(members))]
    for size, subsets in found.items():
        assert size == 1 or len(subsets) <= ROTATIONS
        assert all(len(set(subset)) == size for subset in subsets)
        assert len({frozenset(subset) for subset in subsets}) == len(subsets)
        if members <= ROTATIONS:
            counts = torch.bincount(torch.tensor(subsets).flatten(), minlength=members)
            assert counts.min() == counts.max(), size


@pytest.mark.parametrize("rows", [1, 10_000, 100_000, 10**7])
def test_very_many_rows_have_fewer_rotations(rows):
    found = list_sub_ensembles(8, rows)
    kept = rows * sum(len(subsets) for subsets in found.values())
    assert kept <= max(MOST_TABLES, 8 * rows)
    assert all(found.values())


def test_a_row_has_the_mean_over_subsets_of_what_each_scores_alone():
    """In double precision up to the grid, which is kept in single: a mean of probabilities over subsets would differ."""
    p, y = Predictive(2 * torch.randn(3, 70, 4).double()), torch.randint(4, (70,))
    found = collect(p, y)
    for size, subsets in list_sub_ensembles(3).items():
        alone = [Predictive(p.outputs[members]) for members in subsets]
        nll = torch.stack([cross_fit_nll(nll_at_temperatures(one, y)) for one in alone]).mean(0)
        torch.testing.assert_close(found[f"calibrated_nll_{size}"], nll, rtol=1e-5, atol=1e-6)
        right = torch.stack([(one.labels == y).double() for one in alone]).mean(0)
        torch.testing.assert_close(found[f"right_{size}"], right)
    assert found["calibrated_nll_3"].mean().item() == pytest.approx(metrics.calibrated_nll(p, y), rel=1e-6)


def test_a_regression_has_the_calibrated_nll_of_its_parts():
    p, y = Predictive(torch.randn(3, 50, 1).double(), "regression"), torch.randn(50).double()
    found = collect(p, y, noise=1.0)
    for size, subsets in list_sub_ensembles(3).items():
        alone = [Predictive(p.outputs[members], "regression") for members in subsets]
        nll = sum(metrics.calibrated_gaussian_nll(one, y) for one in alone) / len(alone)
        assert found[f"calibrated_nll_{size}"].mean().item() == pytest.approx(nll, rel=1e-10)
        assert found[f"square_{size}"].mean().item() == pytest.approx(sum(metrics.rmse(o, y) ** 2 for o in alone) / len(alone))


def test_a_regression_whose_noise_is_not_known_has_none():
    assert collect(Predictive(torch.randn(3, 50, 1), "regression"), torch.randn(50)) == {}
