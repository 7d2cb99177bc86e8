"""A variational method whose penalty costs more than guessing is told so before it trains."""

import math
import warnings

import pytest
import torch
from torch import nn

import pluribus
from pluribus.training.penalty_check import describe_large_penalty


@pytest.fixture
def ensemble():
    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
    return pluribus.ensemble(net, pluribus.VariationalDropout(samples=2))


def test_the_limit_is_the_cost_of_guessing(ensemble):
    rows = ensemble.penalty().item() / math.log(3)  # with so many rows the penalty of a row is log 3
    assert describe_large_penalty(ensemble, 3, math.ceil(rows * 1.01), 1.0) is None
    assert "guessing costs 1.1" in describe_large_penalty(ensemble, 3, math.floor(rows * 0.99), 1.0)


def test_the_weight_that_it_names_is_enough(ensemble):
    said = describe_large_penalty(ensemble, 3, 10, 1.0)
    named = float(said.split("kl_weight below ")[1].split(",")[0])
    assert named == pytest.approx(10 * math.log(3) / ensemble.penalty().item(), rel=0.05)
    assert describe_large_penalty(ensemble, 3, 10, 0.95 * named) is None


def test_nothing_is_said_of_a_regression_or_a_method_without_a_penalty(ensemble):
    assert describe_large_penalty(pluribus.ensemble(ensemble.net, pluribus.Single()), 3, 1, 1.0) is None
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    regression = pluribus.ensemble(net, pluribus.VariationalDropout(samples=2), task="regression")
    assert describe_large_penalty(regression, 2, 1, 1.0) is None


def test_fit_warns_and_the_named_weight_ends_the_warning(ensemble):
    x = torch.randn(20, 4)
    data = (x, (x[:, 0] > 0).long())
    with pytest.warns(UserWarning, match="variational-dropout: the KL of its weights costs"):
        pluribus.fit(ensemble, data, epochs=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pluribus.fit(ensemble, data, epochs=1, kl_weight=1e-3, progress=False)
