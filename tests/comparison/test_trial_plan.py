"""Which configurations a tuning tries."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from pluribus.comparison.trial_plan import draw_configurations, list_settings, plan_trials
from pluribus.core.spec import Spec
from pluribus.data.dataset import Data, Part
from pluribus.data.preparation import Preparation
from pluribus.runs.config import ConfigError, build_config
from pluribus.runs.loading import passed_objects
from pluribus.runs.training import convert_network, resolve_config

SETTINGS = ("lr", "weight_decay", "label_smoothing")


@pytest.fixture
def data():
    made = Data("rows", *(Part(torch.randn(20, 4), torch.arange(20) % 2) for _ in "ab"), Preparation(), ("no", "yes"))
    with passed_objects({"<rows>": made}):
        yield made


def configure(data, method, **options):
    return resolve_config(
        build_config({"data": {"name": "<rows>"}, "model": "mlp:hidden=[8, 8]", "method": method} | options), data
    )


def find_settings(trial):
    return tuple(trial[name] for name in SETTINGS)


def test_the_first_trial_is_the_default_and_no_two_are_the_same(data):
    config = configure(data, "mimo")
    trials = plan_trials(config, data, 12, seed=0)
    assert trials[0] == config.model_dump(mode="json")
    assert len(trials) == len({str(trial) for trial in trials}) == 12
    assert {trial["method"].get("members", 3) for trial in trials} == {2, 3}
    assert {trial["lr"] for trial in trials} == {0.001, 0.000333, 0.003}
    assert {trial["weight_decay"] for trial in trials} == {0.01, 0.05}
    assert {trial["label_smoothing"] for trial in trials} == {0.0, 0.05, 0.1}


def test_the_trials_of_all_methods_have_the_same_settings(data):
    one, other = (plan_trials(configure(data, name), data, 8, seed=0) for name in ("single", "mimo"))
    assert [find_settings(trial) for trial in one] == [find_settings(trial) for trial in other]
    again = plan_trials(configure(data, "single"), data, 8, seed=1)
    assert [find_settings(trial) for trial in one] != [find_settings(trial) for trial in again]


def test_a_trial_depends_on_seed_method_and_number_alone(data):
    few, many = (plan_trials(configure(data, "mimo"), data, count, seed=5) for count in (4, 9))
    assert many[:4] == few


def test_options_that_were_set_are_kept_and_a_rate_that_was_set_is_what_candidates_are_multiples_of(data):
    trials = plan_trials(configure(data, "mimo:members=3,batch_repetition=1", lr=0.3, optimizer="sgd"), data, 10, seed=0)
    assert {(trial["method"]["members"], trial["method"]["batch_repetition"]) for trial in trials} == {(3, 1)}
    assert {trial["lr"] for trial in trials} == {0.1, 0.3, 0.9}
    assert {trial["weight_decay"] for trial in trials} == {5e-4, 2.5e-3}


def test_a_method_with_few_configurations_has_a_trial_for_each(data):
    trials = plan_trials(configure(data, "maxout", optimizer="adam"), data, 1000, seed=0)
    settings = math.prod(map(len, list_settings(configure(data, "maxout", optimizer="adam"), data).values()))
    assert len(trials) == len({str(trial) for trial in trials}) == 2 * settings


def test_a_regression_has_no_label_smoothing():
    rows = Part(torch.randn(20, 4), torch.randn(20))
    data = Data("rows", rows, rows, Preparation())
    with passed_objects({"<rows>": data}):
        assert "label_smoothing" not in list_settings(configure(data, "single"), data)
        assert {trial["label_smoothing"] for trial in plan_trials(configure(data, "single"), data, 8, seed=0)} == {0.0}


def test_what_cannot_be_converted_or_does_not_fit_the_budget_is_not_tried(data, monkeypatch):
    monkeypatch.setattr(Spec, "registry", dict(Spec.registry))

    @dataclass(frozen=True)
    class Fussy(Spec.registry["multihead"]):
        name: ClassVar[str] = "fussy"
        candidates: ClassVar[dict[str, Any]] = {"members": (2, 3, 4), "last": (None, "no such layer")}

    def fit(config):
        if config.spec.members == 4:
            raise ConfigError("too large")
        return {"epochs": 7} if config.spec.members == 2 else {}

    trials = plan_trials(configure(data, "fussy"), data, 10, seed=0, fit=fit)
    assert len(trials) == 10
    assert {trial["method"].get("members", 3) for trial in trials} == {2, 3}
    assert all("last" not in trial["method"] for trial in trials)
    assert all(trial["epochs"] == (7 if trial["method"].get("members") == 2 else 10) for trial in trials)


def test_a_method_that_does_not_fit_the_network_has_one_trial_which_will_say_so(data):
    config = configure(data, "mimo:first=nothing")
    assert plan_trials(config, data, 8, seed=0) == [config.model_dump(mode="json")]


def test_all_trials_but_the_first_have_a_penalty_that_costs_less_than_guessing(data):
    config = configure(data, "variational-dropout")
    trials = plan_trials(config, data, 8, seed=0)
    limit = 20 * math.log(2) / convert_network(config, data).penalty().item()
    found = [trial["kl_weight"] for trial in trials]
    assert len(found) == 8
    assert found[0] == 1.0
    assert {round(limit / weight) for weight in found[1:]} == {3, 30}
    chosen = plan_trials(configure(data, "variational-dropout", kl_weight=0.5), data, 8, seed=0)
    assert {trial["kl_weight"] for trial in chosen} == {0.5}


def test_draws_are_uniform_over_the_configurations():
    space = {"a": (0, 1, 2), "b": (0, 1)}
    first = [tuple(sorted(next(draw_configurations(space, seed)).items())) for seed in range(240)]
    counts = [first.count(each) for each in set(first)]
    assert len(counts) == 6
    assert all(abs(count - 40) < 5 * (40 * 5 / 6) ** 0.5 for count in counts)
