"""The pinball loss of predicted quantiles: by hand, over batches, and among the scores of an evaluation."""

import pytest
import torch

from pluribus import Predictive
from pluribus.analysis.scores import create_scores
from pluribus.metrics import pinball
from pluribus.metrics.streaming import Tally

LEVELS = (0.1, 0.9)


def draw():
    """Three members, forty rows: means and quantiles, which are their lowest and their highest number."""
    torch.manual_seed(0)
    outputs = torch.randn(3, 40, 3, dtype=torch.double)
    outputs[..., 1:] = outputs[..., 1:].sort(-1).values
    return Predictive(outputs, "regression", quantile_levels=LEVELS), torch.randn(40, 1, dtype=torch.double)


def test_it_is_that_of_the_members_averaged_quantiles():
    p, y = draw()
    low, high = (p.outputs[..., place : place + 1].mean(0) for place in (1, 2))
    below, above = torch.where(y > low, 0.1, 0.9) * (y - low).abs(), torch.where(y > high, 0.9, 0.1) * (y - high).abs()
    expected = ((below + above) / 2).mean().item()
    assert pinball(p, y) == pytest.approx(expected, rel=1e-6)
    assert pinball(p.summarize(), y[:, 0]) == pytest.approx(pinball(p, y), rel=1e-12)


def test_batches_add_up_to_the_score_of_all_rows():
    p, y = draw()
    tally, scores = Tally("regression", has_quantiles=True), create_scores("regression", noise=1.0)
    for rows in (slice(0, 25), slice(25, 40)):
        part = Predictive(p.outputs[:, rows], "regression", quantile_levels=LEVELS)
        tally.add(part, y[rows])
        scores.add(part, y[rows])
    assert tally.scores()["pinball"] == pytest.approx(pinball(p, y), rel=1e-12)
    assert scores.scores()["pinball"] == pytest.approx(pinball(p, y), rel=1e-12)
    interval = scores.intervals()["pinball"]
    assert interval.low < pinball(p, y) < interval.high
    assert list(scores.scores())[:2] == list(tally.scores()) == ["rmse", "pinball"]


def test_members_without_quantiles_have_none():
    with pytest.raises(AttributeError, match="convert with quantiles="):
        pinball(Predictive(torch.zeros(2, 3, 1), "regression"), torch.zeros(3))
