"""What is held equal between methods."""

import pytest
import torch
from torch import nn

from pluribus.comparison import budgets
from pluribus.core.describe import count_flops, count_parameters
from pluribus.data import load
from pluribus.runs.config import ConfigError, build_config
from pluribus.runs.consent import give_consent
from pluribus.runs.loading import build_network
from pluribus.runs.training import resolve_config


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def config(digits, method, **options):
    return resolve_config(build_config({"data": "digits", "model": "mlp", "method": method} | options), digits)


def test_equal_epochs_change_nothing(digits):
    assert budgets.fit_to_budget(config(digits, "deep-ensemble"), digits, "epochs") == {}


def test_a_method_that_costs_four_times_as_much_a_step_gets_a_quarter_of_the_epochs(digits):
    given = budgets.fit_to_budget(config(digits, "deep-ensemble:members=4", epochs=20), digits, "training-flops")
    assert given == {"epochs": 5}
    assert budgets.fit_to_budget(config(digits, "single", epochs=20), digits, "training-flops") == {"epochs": 20}


def test_too_few_epochs_to_share_are_said_with_how_many_are_needed(digits):
    with pytest.raises(ConfigError, match=r"use --epochs 4 or more"):
        budgets.fit_to_budget(config(digits, "deep-ensemble:members=4", epochs=3), digits, "training-flops")


def test_a_budget_is_never_overspent(digits):
    assert budgets.fit_to_budget(config(digits, "deep-ensemble:members=4", epochs=7), digits, "training-flops") == {"epochs": 1}


def test_one_network_is_the_budget_and_stays_as_it_is(digits):
    assert budgets.fit_to_budget(config(digits, "single"), digits, "parameters") == {"model": {"name": "mlp"}}


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        *(("deep-ensemble:members=3", "parameters"), ("inner", "deployed-flops"), ("mimo", "parameters")),
        *(("treenet", "parameters"), ("treenet", "deployed-flops")),
    ],
)
def test_the_network_is_as_wide_as_the_budget_of_one_allows(kind, method, digits):
    wanted = config(digits, method)
    model = budgets.fit_to_budget(wanted, digits, kind)["model"]
    narrow = wanted.model_copy(update={"model": model})
    base = build_network(wanted, digits.shape, digits.outputs)
    x = digits.preparation(digits.train.x[:1])
    limit = count_parameters(base) if kind == "parameters" else count_flops(base, x)
    assert 0.9 * limit <= budgets.measure_deployed_cost(narrow, digits, kind) <= 1.005 * limit


def test_a_folded_inner_ensemble_keeps_its_width(digits):
    assert budgets.fit_to_budget(config(digits, "inner"), digits, "parameters")["model"]["width"] == 1.0


def test_what_never_fits_is_said(digits):
    with pytest.raises(ConfigError, match="fewer members or samples"):
        budgets.fit_to_budget(config(digits, "mc-dropout:samples=2000"), digits, "deployed-flops")


def test_a_network_without_width_cannot_be_made_narrower(digits):
    with pytest.raises(ConfigError, match=r"no option `width`"):
        budgets.fit_to_budget(config(digits, "inner", model="densenet40"), digits, "parameters")


def test_whole_widths_stay_whole(digits):
    wanted = config(digits, "deep-ensemble:members=2", model="wrn:depth=10,width=3")
    width = budgets.fit_to_budget(wanted, digits, "parameters")["model"]["width"]
    limit = 1.005 * budgets.measure_deployed_cost(config(digits, "single", model="wrn:depth=10,width=3"), digits, "parameters")
    costs = [
        budgets.measure_deployed_cost(wanted.model_copy(update={"model": wanted.model | {"width": w}}), digits, "parameters")
        for w in (width, width + 1)
    ]
    assert costs[0] <= limit < costs[1]


def test_ones_own_network_with_a_width_can_be_made_narrower(digits, monkeypatch, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def build(inputs, outputs, width: float = 1.0):\n"
        "    n = max(1, round(64 * width))\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, n), nn.ReLU(), nn.Linear(n, outputs))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with give_consent("mine:build"):
        given = budgets.fit_to_budget(config(digits, "deep-ensemble:members=4", model="mine:build"), digits, "parameters")
    assert given["model"]["width"] == pytest.approx(0.25, rel=0.1)


def test_an_unknown_budget_is_answered_with_those_there_are():
    with pytest.raises(ConfigError, match="epochs"):
        budgets.check_budget("flops")


@pytest.mark.parametrize("name", ["mlp", "lenet5", "small-cnn", "resnet20"])
def test_a_width_scales_the_network_and_one_is_the_network_itself(name):
    from pluribus.models.registry import build

    def size(**options) -> int:
        net = build(name, (1, 28, 28), 10, **options)
        assert isinstance(net, nn.Module)
        assert net.eval()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
        return count_parameters(net)

    assert size() == size(width=1.0)
    assert size(width=0.5) < 0.6 * size() < size()
