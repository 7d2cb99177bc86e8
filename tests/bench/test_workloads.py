"""The works: the same for a base network and for an ensemble, and counted exactly."""

import copy

import pytest
import torch
from torch import nn

import pluribus
from pluribus.bench.workloads import (
    TrainingStep,
    count_workload_flops,
    measure_workload_memory,
    prepare_forward,
    prepare_workload,
)


def net():
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 3, bias=False))


WEIGHTS = 4 * (6 * 8 + 8 * 3)


@pytest.fixture
def batch():
    return torch.randn(16, 6), torch.randint(3, (16,))


def test_a_step_of_one_network_as_an_ensemble_is_its_own_step(batch):
    base = net()
    single = pluribus.ensemble(copy.deepcopy(base), pluribus.Single())
    for made in (base, single):
        step = TrainingStep(made, *batch)
        step(), step()
    for own, other in zip(single.parameters(), base.parameters(), strict=True):
        torch.testing.assert_close(own, other)


def test_a_method_with_a_penalty_takes_a_step(batch):
    made = pluribus.ensemble(net(), pluribus.VariationalDropout())
    TrainingStep(made, *batch)()
    assert all(parameter.grad.abs().sum() > 0 for parameter in made.parameters())


def test_an_answer_is_what_predict_gives(batch):
    noisy = pluribus.ensemble(net(), pluribus.MCDropout(samples=7)).train()
    assert prepare_forward(noisy, batch[0])().members.shape == (7, 16, 3)
    base = net().train()
    assert prepare_forward(base, batch[0])().shape == (16, 3)
    assert not base.training


def test_an_answer_is_timed_in_inference_mode(batch):
    seen = []

    class Spy(nn.Module):
        def forward(self, x):
            seen.append(torch.is_inference_mode_enabled())
            return x

    prepare_workload("forward", Spy(), *batch)()
    assert seen == [True]


def test_memory_is_what_stays_and_the_peak(batch):
    activations = 4 * 16 * 8
    assert measure_workload_memory("state", net(), *batch) == 2 * WEIGHTS  # and momentum
    assert measure_workload_memory("forward", net(), *batch) == WEIGHTS + 2 * activations  # before and after the ReLU
    step = measure_workload_memory("training step", net(), *batch)
    assert step > 3 * WEIGHTS + 2 * activations  # weights, momentum, gradients; what is kept for the backward pass
    assert measure_workload_memory("training step", net(), *batch) == step


def test_memory_of_copies_and_of_their_mean(batch):
    def state(spec):
        return measure_workload_memory("state", pluribus.ensemble(net(), spec), *batch)

    assert state(pluribus.Inner(copies=16)) == 16 * state(pluribus.Single())
    assert state(pluribus.Inner(copies=16, lean=True)) < 1.1 * state(pluribus.Single())


def test_counting_leaves_the_fused_kernels_as_they_were(batch):
    before = torch.backends.mha.get_fastpath_enabled()
    measure_workload_memory("forward", net(), *batch), count_workload_flops("forward", net(), *batch)
    assert torch.backends.mha.get_fastpath_enabled() == before


def test_flops_are_two_a_weight_and_row_and_in_a_step_three_times_that_but_for_the_input(batch):
    first, last = 2 * 16 * 6 * 8, 2 * 16 * 8 * 3
    assert count_workload_flops("forward", net(), *batch) == first + last
    assert count_workload_flops("training step", net(), *batch) == 2 * first + 3 * last
    deep = pluribus.ensemble(net(), pluribus.DeepEnsemble(members=3), example=batch[0])
    assert count_workload_flops("forward", deep, *batch) == 3 * (first + last)
