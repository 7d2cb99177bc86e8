import pytest
import torch
from torch import nn

import pluribus
from pluribus import metrics
from pluribus.analysis import trace_anytime


def test_a_point_has_the_scores_of_the_prediction_until_its_threshold():
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), pluribus.DeepEnsemble(5)).double()
    x, y = 3 * torch.randn(50, 6, dtype=torch.double), torch.arange(50) % 4
    points = trace_anytime(ensemble.predict(x), y, [0.3, 0.4, 0.5, 1.0])
    for point in points:
        p = ensemble.predict(x, until=point.until)
        assert point.members == pytest.approx(p.used.double().mean().item())
        assert point.passes == pytest.approx(1 - p.saved)
        assert point.accuracy == pytest.approx(metrics.accuracy(p, y))
        assert point.nll == pytest.approx(metrics.nll(p, y))
    assert [point.passes for point in points] == sorted(point.passes for point in points)
    assert points[-1].passes == 1
    assert points[-1].nll == pytest.approx(metrics.nll(ensemble.predict(x), y))


def test_what_does_not_fit_is_refused():
    p = pluribus.Predictive(torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match="one target for each of 3 rows"):
        trace_anytime(p, torch.zeros(2))
    with pytest.raises(ValueError, match="until must be from 0 to 1"):
        trace_anytime(p, torch.zeros(3), [2.0])
