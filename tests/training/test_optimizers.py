import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus.training import Settings
from pluribus.training.optimizers import compute_penalty_factor, compute_rate_factor, make_optimizer, separate_biases
from pluribus.training.settings import parse_interval


def rates(steps=100, epoch=10, **options):
    return [compute_rate_factor(step, steps, epoch, Settings(epochs=steps // epoch, **options)) for step in range(steps)]


def test_cosine_falls_from_one_to_nothing_by_half_a_wave():
    got = rates(schedule="cosine")
    assert got == pytest.approx([0.5 * (1 + math.cos(math.pi * t / 100)) for t in range(100)])
    assert got[0] == 1
    assert got[50] == pytest.approx(0.5)


def test_linear_falls_evenly():
    assert rates(schedule="linear") == pytest.approx([1 - t / 100 for t in range(100)])


def test_steps_fall_at_their_shares_of_the_run():
    got = rates(schedule="step", milestones=(0.5, 0.75), gamma=0.1)
    assert got == pytest.approx([1.0] * 50 + [0.1] * 25 + [0.01] * 25)


def test_wsd_stays_and_falls_evenly_in_its_last_share():
    got = rates(schedule="wsd", decay_share=0.4)
    assert got == pytest.approx([1.0] * 60 + [1 - t / 40 for t in range(40)])


def test_wsd_falls_from_where_it_is_told_to_the_end():
    settings = Settings(epochs="auto", warmup=1)
    got = [compute_rate_factor(step, 80, 10, settings, decay_from=6) for step in range(81)]
    assert got[:10] == pytest.approx([(t + 1) / 10 for t in range(10)])
    assert got[10:] == pytest.approx([1.0] * 50 + [1 - t / 20 for t in range(21)])


def test_constant_stays():
    assert set(rates(schedule="constant")) == {1.0}


@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear", "wsd"])
def test_the_warm_up_rises_evenly_to_one_and_the_rest_begins_at_one(schedule):
    got = rates(schedule=schedule, warmup=2)  # epochs of ten steps
    assert got[:20] == pytest.approx([(t + 1) / 20 for t in range(20)])
    assert got[20] == 1
    assert max(got) == 1


def test_the_penalty_rises_to_one_over_its_epochs_and_is_whole_without_a_warm_up():
    settings = Settings(kl_warmup=0.5)
    assert [compute_penalty_factor(t, 10, settings) for t in (0, 1, 4, 5, 99)] == pytest.approx([0.2, 0.4, 1, 1, 1])
    assert compute_penalty_factor(0, 10, Settings()) == 1
    assert compute_penalty_factor(1, 10, Settings(kl_warmup=0.5, kl_weight=0.1)) == pytest.approx(0.04)


def test_weight_decay_spares_what_the_ensemble_says():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), pluribus.BatchEnsemble(members=2))
    made = make_optimizer(ensemble.param_groups(), Settings(optimizer="sgd", weight_decay=0.3))
    assert [group["weight_decay"] for group in made.param_groups] == [0.3, 0.0]


@pytest.mark.parametrize("spec", [pluribus.Single(), pluribus.BatchEnsemble(members=2), pluribus.TreeNet(members=2)], ids=str)
def test_biases_and_norms_have_a_rate_of_their_own_and_no_decay_if_asked(spec):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 4), nn.Linear(4, 2))
    ensemble = pluribus.ensemble(net, spec)
    settings = Settings(optimizer="sgd", lr=0.1, weight_decay=0.3, bias_lr=4, bias_decay=False)
    plain = ensemble.param_groups()
    assert separate_biases(ensemble, plain, Settings()) is plain
    groups = separate_biases(ensemble, plain, settings)
    made = make_optimizer(groups, settings)
    assert sum(len(group["params"]) for group in groups) == sum(1 for _ in ensemble.parameters())
    names = {id(parameter): name for name, parameter in ensemble.named_parameters()}
    for group in made.param_groups:
        for parameter in group["params"]:
            name = names[id(parameter)]
            is_bias = "bias" in name or name.startswith("net.1.")
            assert group["lr"] == pytest.approx(0.4 if is_bias else 0.1), name
            is_spared = is_bias or name.endswith((".r", ".s"))  # factors of BatchEnsemble
            assert group["weight_decay"] == (0.0 if is_spared else 0.3), name


@pytest.mark.parametrize(
    ("options", "kind", "rate", "decay"),
    [
        ({"optimizer": "sgd"}, torch.optim.SGD, 0.05, 5e-4),
        ({"optimizer": "adam", "lr": 0.3}, torch.optim.Adam, 0.3, 0.0),
        ({}, torch.optim.AdamW, 1e-3, 1e-2),
    ],
)
def test_each_optimiser_has_its_rate_and_decay(options, kind, rate, decay):
    made = make_optimizer([{"params": [nn.Parameter(torch.zeros(1))]}], Settings(**options))
    assert type(made) is kind
    assert (made.param_groups[0]["lr"], made.param_groups[0]["weight_decay"]) == (rate, decay)
    if kind is torch.optim.SGD:
        assert made.param_groups[0]["nesterov"]
        assert made.param_groups[0]["momentum"] == 0.9


def test_momentum_zero_is_plain_sgd():
    settings = Settings(optimizer="sgd", momentum=0.0)
    made = make_optimizer([{"params": [nn.Parameter(torch.zeros(1))]}], settings)
    assert not made.param_groups[0]["nesterov"]


@pytest.mark.parametrize(("text", "meant"), [("7", ("steps", 7)), ("30s", ("seconds", 30)), ("1.5m", ("seconds", 90))])
def test_intervals_are_steps_or_time(text, meant):
    assert parse_interval(text) == meant


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0}, {"lr": -1}, {"lr": float("nan")}, {"momentum": 1}, {"optimizer": "lbfgs"}, {"checkpoint_every": "0"},
        {"checkpoint_every": "0s"}, {"checkpoint_every": "soon"}, {"milestones": (0.7, 0.5)}, {"milestones": (0, 1)},
        {"warmup": 10, "epochs": 10}, {"label_smoothing": 1}, {"nonsense": 1}, {"precision": "8"}, {"seed": -1},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(reversed(wrong)) if len(wrong) == 1 else "warmup"):
        Settings(**wrong)


def test_a_group_with_a_rate_learns_so_many_times_faster():
    """Adam's first step is the learning rate, whatever the gradient."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    ensemble = pluribus.ensemble(net, pluribus.VariationalDropout(log_alpha_rate=7.0, include="0"))
    optimizer = make_optimizer(ensemble.param_groups(), Settings(optimizer="adam", lr=0.01))
    before = {name: value.detach().clone() for name, value in ensemble.named_parameters()}
    ensemble.train().loss(torch.randn(5, 3), torch.tensor([0, 1, 0, 1, 0]), examples=5).backward()
    optimizer.step()
    for name, value in ensemble.named_parameters():
        moved = (value - before[name]).abs().max().item()
        assert moved == pytest.approx(0.07 if "log_alpha" in name else 0.01, rel=1e-3)


def test_a_rate_of_one_is_no_group_of_its_own():
    net = torch.nn.Linear(3, 2)
    groups = pluribus.ensemble(net, pluribus.VariationalDropout()).param_groups()
    assert all("rate" not in group for group in groups)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_beta1_reaches_the_optimiser(kind):
    groups = pluribus.ensemble(torch.nn.Linear(3, 2), pluribus.Single()).param_groups()
    made = make_optimizer(groups, Settings(optimizer=kind, beta1=0.95))
    assert made.param_groups[0]["betas"] == (0.95, 0.999)
