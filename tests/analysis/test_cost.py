"""Costs as ratios to the base network: what is counted is exact; what is measured is only asked to be sensible."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis.cost import (
    Cost,
    choose_deployment,
    compare_cost,
    compare_latency,
    compare_training_flops,
    measure_peak_memory,
)


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def costs(spec, rows=16) -> Cost:
    x, y, base = torch.randn(rows, 6), torch.randint(3, (rows,)), net()
    return compare_cost(pluribus.ensemble(base, spec, example=x), base, x, y, repeats=3)


def test_a_single_network_costs_itself():
    found = costs(pluribus.Single())
    assert (found.parameters, found.deployed_parameters, found.flops, found.deployed_flops) == (1, 1, 1, 1)
    assert (found.training_flops, found.memory, found.passes, found.form) == (1, 1, 1, "folded")


def test_a_deep_ensemble_costs_its_members():
    found = costs(pluribus.DeepEnsemble(members=3))
    assert (found.parameters, found.flops, found.training_flops, found.passes) == (3, 3, 3, 3)
    assert found.memory > 1


def test_an_inner_ensemble_is_deployed_folded_and_a_batch_ensemble_as_it_is():
    inner, batch = costs(pluribus.Inner(copies=4)), costs(pluribus.BatchEnsemble(members=4))
    assert (inner.form, inner.deployed_parameters, inner.deployed_flops) == ("folded", 1, 1)
    assert inner.parameters > 1
    assert batch.form == "ensemble"  # folding it takes as many FLOPs, and four times the weights
    assert batch.deployed_parameters == batch.parameters < 4


def test_mimo_trains_its_first_and_last_layer_twice_and_the_rest_once():
    x, y = torch.randn(8, 6), torch.randint(3, (8,))
    base = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    mimo = pluribus.ensemble(base, pluribus.MIMO(members=2), example=x)
    # Forward and both gradients; the input itself needs none, so the first layer has one product less.
    first, middle, last = 2 * 6 * 8, 3 * 8 * 8, 3 * 8 * 3
    assert compare_training_flops(mimo, base, x, y) == pytest.approx((2 * first + middle + 2 * last) / (first + middle + last))


def test_an_ensemble_that_has_seen_no_input_is_measured_all_the_same():
    x, y, base = torch.randn(16, 6), torch.randint(3, (16,)), net()
    found = compare_cost(pluribus.ensemble(base, pluribus.MIMO(members=2)), base, x, y, repeats=2)
    assert found.form == "folded"
    assert found.deployed_flops is not None


def test_measuring_changes_neither_weights_nor_gradients_nor_modes():
    x, y, base = torch.randn(16, 6), torch.randint(3, (16,)), net()
    ensemble = pluribus.ensemble(base, pluribus.MCDropout(rate=0.5), example=x).train()
    before = {name: value.clone() for name, value in ensemble.state_dict().items()}
    state = torch.get_rng_state()
    compare_cost(ensemble, base, x, y, repeats=2)
    assert all(torch.equal(value, before[name]) for name, value in ensemble.state_dict().items())
    assert all(parameter.grad is None for parameter in ensemble.parameters())
    assert ensemble.training
    assert torch.equal(torch.get_rng_state(), state)


def test_costs_are_ratios_to_the_base_that_is_given_not_to_the_one_that_was_converted():
    x, y = torch.randn(16, 6), torch.randint(3, (16,))
    wide = nn.Sequential(nn.Linear(6, 80), nn.ReLU(), nn.Linear(80, 3))
    found = compare_cost(pluribus.ensemble(net(), pluribus.Single(), example=x), wide, x, y, repeats=2)
    assert found.deployed_flops == pytest.approx(0.1)


def test_the_peak_counts_what_lives_at_the_same_time():
    x = torch.zeros(1000)  # 4,000 bytes

    def chain():
        y = x + 1
        y = y + 1  # two at a time: the old one goes when the new one is there
        return y + 1

    def all_at_once():
        return torch.stack([x + 1, x + 2, x + 3])

    assert measure_peak_memory(chain) == 2 * 4000
    assert measure_peak_memory(all_at_once) == 3 * 4000 + 3 * 4000
    assert measure_peak_memory(lambda: x.view(10, 100)) == 0  # a view makes nothing


def test_memory_of_an_answer_grows_with_draws_and_folding_takes_it_back():
    few, many = (costs(pluribus.MCDropout(rate=0.5, samples=k)).memory for k in (2, 20))
    assert many > few > 1
    assert costs(pluribus.MIMO(members=3)).form == "folded"


def test_the_form_is_the_one_with_fewer_flops():
    x = torch.randn(4, 6)
    told = pluribus.ensemble(net(), pluribus.MCDropout(rate=0.5), example=x).eval().describe()
    assert choose_deployment(told)[0] == "ensemble"  # noise cannot be folded
    assert choose_deployment(told)[1:] == (told.flops, told.parameters)


def test_latency_is_the_ratio_of_times_on_a_machine_that_is_busy_now_and_then(clock):
    def slow_down_sometimes():
        clock.busy = 5.0 if len(clock.log) % 7 == 0 else 1.0

    run, base = clock.work("run", 0.04), clock.work("base", 0.01)
    found = compare_latency(lambda: (slow_down_sometimes(), run()), lambda: (slow_down_sometimes(), base()), repeats=15)
    assert found.value == pytest.approx(4)
    assert found.low <= found.value <= found.high
