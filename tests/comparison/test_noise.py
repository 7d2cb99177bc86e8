"""A comparison of networks that predict the noise of a regression."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.reports.figures import make_figures
from pluribus.reports.page import render_page
from pluribus.reports.table_columns import select_columns


def test_methods_are_compared_by_the_likelihood_of_their_own_noise():
    torch.manual_seed(0)
    x = torch.randn(300, 2)
    y = 1e5 * (x[:, 0] + (0.1 + x[:, 1].abs()) * torch.randn(300))
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    methods = [pluribus.Single(), pluribus.DeepEnsemble(members=2)]
    found = pluribus.compare(
        *(net, (x[:200], y[:200])),
        **{"test": (x[200:], y[200:]), "methods": methods, "seeds": 2, "tune": 2},
        **{"epochs": 2, "noise": "gaussian", "progress": False},
    )
    assert found.results["tuning"]["score"] == "nll"
    assert found.results["settings"]["noise"] == "gaussian"
    for method in found.results["methods"]:
        assert {"nll", "calibrated_nll", "crps", "coverage_95", "width_95"} <= set(method["scores"])
        assert len(method["interval_calibration"]["held"]) == 19
        assert len(method["residuals"]["predicted"]) == 100
        assert max(map(abs, method["residuals"]["truth"])) > 1e4  # in the target's own unit
    assert {"intervals", "residuals"} <= {figure.name for figure in make_figures(found.results)}


def test_methods_are_tuned_by_the_pinball_loss_of_their_quantiles():
    torch.manual_seed(0)
    x = torch.randn(200, 2)
    y = 1e5 * (x[:, 0] + (0.1 + x[:, 1].abs()) * torch.randn(200))
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    found = pluribus.compare(
        *(net, (x[:140], y[:140])),
        **{"test": (x[140:], y[140:]), "methods": [pluribus.Single(), pluribus.DeepEnsemble(members=2)], "seeds": 2, "tune": 2},
        **{"epochs": 2, "quantiles": (0.05, 0.95), "progress": False},
    )
    assert found.results["tuning"]["score"] == "pinball"
    columns = [column.key for column in select_columns(found.results)]
    assert columns.index("pinball") < columns.index("crps")
    page = render_page(found.results)
    assert "pinball" in page
    assert "pinball loss of the validation rows" in page


def test_students_learn_means_alone():
    x, y = torch.randn(20, 2), torch.randn(20)
    noisy = pluribus.ensemble(nn.Linear(2, 1), pluribus.DeepEnsemble(2), task="regression", noise="gaussian")
    student = pluribus.ensemble(nn.Linear(2, 1), pluribus.Single(), task="regression")
    with pytest.raises(ValueError, match="distillation is of means"):
        pluribus.fit(student, (x, y), teacher=noisy, epochs=1, progress=False)
