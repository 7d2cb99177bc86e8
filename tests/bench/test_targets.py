"""Targets are measured as they are named, and judged by their median."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis.timing import Ratio
from pluribus.bench.measurement import CostRatios, convert_with
from pluribus.bench.networks import NETWORKS
from pluribus.bench.targets import (
    TARGET_GROUPS,
    LayerAverage,
    Target,
    TargetGroup,
    add_dropout_to_blocks,
    add_late_dropout,
    average_four_layers,
    get_verdict,
    judge_target,
    plan_targets,
)
from pluribus.bench.workloads import TrainingStep
from pluribus.core.spec import list_methods


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)


@pytest.mark.parametrize("place", range(len(TARGET_GROUPS)))
def test_every_target_is_measured(place):
    group = TARGET_GROUPS[place]
    job = plan_targets([group.network], list_methods())[[g for g in TARGET_GROUPS if g.network == group.network].index(group)]
    timings = []
    rows = job.make_rows(job.measurement.run(2, 1, timings.append))
    assert [row["name"] for row in rows] == [target.name for target in group.targets]
    assert sum(timings) == job.measurement.timings
    assert all((row["met"] is None) == (row["most"] is None) for row in rows)
    assert all((row["time"] is None) == (row["work"] == "state") for row in rows)


def test_targets_name_registered_methods():
    named = {target.method for group in TARGET_GROUPS for target in group.targets}
    assert named - {""} <= set(pluribus.Spec.registry)


def test_targets_are_selected_by_network_and_method_and_bring_the_naive_ways_of_their_group():
    (job,) = plan_targets(["lenet5"], ["variance"])
    names = [candidate.name for candidate in job.measurement.candidates]
    assert names == ["Variance, first dense layer, K = 20", "naive: 20 passes"]
    assert plan_targets(["lenet5"], ["mixture"]) == []
    assert plan_targets(["vit"], list_methods()) == []


def test_a_target_is_met_by_its_median_or_where_nothing_is_timed_by_memory():
    def judge(ratios, most):
        target = Target("it", convert_with(pluribus.Single()), most, "single")
        return judge_target(TargetGroup("mlp", "forward", ()), target, ratios)

    timed = CostRatios(Ratio(1.05, 1.0, 1.2), memory=9.0, flops=9.0)
    assert judge(timed, 1.05)["met"] is True
    assert judge(timed, 1.04)["met"] is False
    assert judge(timed, None)["met"] is None
    assert judge(CostRatios(None, memory=1.02, flops=None), 1.05)["value"] == 1.02


def test_a_target_is_missed_only_if_its_limit_lies_below_the_middle_half():
    def find(met, low, most=1.05):
        return get_verdict({"met": met, "most": most, "time": {"median": 1.1, "low": low, "high": 1.2}})

    assert find(True, 1.2) == "met"
    assert find(False, 1.05) == "within noise"
    assert find(False, 1.051) == "missed"
    assert find(None, 1.2) == ""
    assert get_verdict({"met": False, "most": 1.05, "time": None}) == "missed"  # memory is counted, without noise


def test_dropout_stands_between_the_convolutions_of_all_nine_blocks():
    x, _ = NETWORKS["resnet20"].draw_batch(2)
    net = NETWORKS["resnet20"].make().eval()
    before = net(x)
    ensemble = add_dropout_to_blocks(net, x)
    assert len(ensemble.conversion.changes) == 9
    torch.testing.assert_close(net.eval()(x), before)  # nothing else has changed
    block = net.get_submodule("1.0")
    assert isinstance(block.conv2[0], nn.Dropout)
    assert isinstance(block.conv2[1], nn.Conv2d)


def test_late_dropout_leaves_all_but_the_last_layer_to_one_pass():
    x, _ = NETWORKS["lenet5"].draw_batch(2)
    description = add_late_dropout(NETWORKS["lenet5"].make(), x).eval().describe()
    assert description.members == 20
    assert description.flops / description.base_flops < 1.1


def test_the_naive_average_runs_four_layers_for_each_convolution():
    x, y = NETWORKS["resnet20"].draw_batch(2)
    net = average_four_layers(NETWORKS["resnet20"].make(), x)
    averages = [module for module in net.modules() if isinstance(module, LayerAverage)]
    assert [len(average.layers) for average in averages] == [4] * 19
    weights = [layer.weight for layer in averages[5].layers]
    assert not torch.equal(weights[0], weights[1])
    TrainingStep(net, x, y)()
