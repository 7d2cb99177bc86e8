"""Every method on every network builds, learns and answers; targets are what they say."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis.timing import Ratio
from pluribus.bench.measurement import CostRatios, convert_with
from pluribus.bench.networks import CLASSES, NETWORKS
from pluribus.bench.targets import (
    METHODS,
    TARGET_GROUPS,
    LayerAverage,
    Target,
    TargetGroup,
    _judge_target,
    add_dropout_to_blocks,
    add_late_dropout,
    average_four_layers,
    plan_table,
    plan_targets,
)
from pluribus.bench.workloads import TrainingStep, prepare_forward


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pluribus.bench.race.SLICE", 0.0)


def test_every_method_is_there_at_the_size_that_the_table_says():
    assert set(METHODS) == set(pluribus.Spec.registry)
    for name, spec in METHODS.items():
        sizes = [getattr(spec, option) for option in ("members", "copies", "samples") if hasattr(spec, option)]
        assert sizes == {"single": [], "mimo": [3]}.get(name, [20] if hasattr(spec, "samples") else [4])


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_and_answers_on_every_network(method, network):
    x, y = NETWORKS[network].batch(2)
    made = convert_with(METHODS[method])(NETWORKS[network].make(), x)
    before = [parameter.clone() for parameter in made.parameters()]
    TrainingStep(made, x, y)()
    assert any(not torch.equal(old, new) for old, new in zip(before, made.parameters(), strict=True))
    probs = prepare_forward(made, x)().probs
    assert probs.shape == (2, CLASSES)
    assert probs.isfinite().all()


@pytest.mark.parametrize("network", NETWORKS)
def test_a_batch_fits_its_network_and_images_have_their_channels_last(network):
    x, y = NETWORKS[network].batch(3)
    assert NETWORKS[network].make().eval()(x).shape == (3, CLASSES)
    assert y.shape == (3,)
    assert x.dim() == 2 or x.is_contiguous(memory_format=torch.channels_last)


def test_the_table_has_a_training_step_and_an_answer_of_every_method_on_every_network():
    assert len(plan_table(NETWORKS, METHODS)) == 2 * len(NETWORKS) * len(METHODS)
    assert len(plan_table(["mlp"], ["mimo", "inner"])) == 4
    job = plan_table(["mlp"], ["mimo"])[0]
    (row,) = job.rows(job.heat.run(4, 2, lambda slices: None))
    assert {"network": "mlp", "method": "mimo", "work": "training step"}.items() <= row.items()
    assert row["time"]["low"] <= row["time"]["median"] <= row["time"]["high"]
    assert row["memory"] > 1
    assert row["flops"] > 1


@pytest.mark.parametrize("place", range(len(TARGET_GROUPS)))
def test_every_target_is_measured(place):
    trial = TARGET_GROUPS[place]
    job = plan_targets([trial.network], METHODS)[[t for t in TARGET_GROUPS if t.network == trial.network].index(trial)]
    told = []
    rows = job.rows(job.heat.run(2, 1, told.append))
    assert [row["name"] for row in rows] == [target.name for target in trial.targets]
    assert sum(told) == job.heat.slices
    assert all((row["met"] is None) == (row["most"] is None) for row in rows)
    assert all((row["time"] is None) == (row["work"] == "state") for row in rows)


def test_targets_are_chosen_by_network_and_method_and_bring_what_is_shown_beside_them():
    (job,) = plan_targets(["lenet5"], ["variance"])
    assert [entry.name for entry in job.heat.entries] == ["Variance, first dense layer, K = 20", "naive: 20 passes"]
    assert plan_targets(["lenet5"], ["mixture"]) == []
    assert plan_targets(["vit"], METHODS) == []


def test_a_target_is_met_by_its_median_or_where_nothing_is_timed_by_memory():
    def verdict(found, most):
        return _judge_target(
            TargetGroup("mlp", "forward", ()), Target("it", convert_with(pluribus.Single()), most, "single"), found
        )

    timed = CostRatios(Ratio(1.05, 1.0, 1.2), memory=9.0, flops=9.0)
    assert verdict(timed, 1.05)["met"] is True
    assert verdict(timed, 1.04)["met"] is False
    assert verdict(timed, None)["met"] is None
    assert verdict(CostRatios(None, memory=1.02, flops=None), 1.05)["value"] == 1.02


def test_dropout_stands_between_the_convolutions_of_all_nine_blocks():
    x, _ = NETWORKS["resnet20"].batch(2)
    net = NETWORKS["resnet20"].make().eval()
    before = net(x)
    made = add_dropout_to_blocks(net, x)
    assert len(made.changes) == 9
    torch.testing.assert_close(net.eval()(x), before)  # nothing else has changed
    block = net.get_submodule("1.0")
    assert isinstance(block.conv2[0], nn.Dropout)
    assert isinstance(block.conv2[1], nn.Conv2d)


def test_late_dropout_leaves_all_but_the_last_layer_to_one_pass():
    x, _ = NETWORKS["lenet5"].batch(2)
    told = add_late_dropout(NETWORKS["lenet5"].make(), x).eval().describe()
    assert told.members == 20
    assert told.flops / told.base_flops < 1.1


def test_the_naive_average_runs_four_layers_for_each_convolution():
    x, y = NETWORKS["resnet20"].batch(2)
    net = average_four_layers(NETWORKS["resnet20"].make(), x)
    averages = [module for module in net.modules() if isinstance(module, LayerAverage)]
    assert [len(average.layers) for average in averages] == [4] * 19
    weights = [layer.weight for layer in averages[5].layers]
    assert not torch.equal(weights[0], weights[1])
    TrainingStep(net, x, y)()
