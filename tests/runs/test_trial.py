"""One trial of a tuning: what it is scored by, how it ends, and what it leaves."""

import json

import pytest
import torch

from pluribus.core.errors import NonFiniteWeights
from pluribus.core.predictive import Predictive
from pluribus.data.dataset import Data, Part
from pluribus.data.preparation import Preparation
from pluribus.file_formats.run_files import read_metrics
from pluribus.metrics.temperature import LOG_PRIOR, calibrated_nll
from pluribus.runs.config import build_config
from pluribus.runs.loading import load_run, passed_objects, split_rows
from pluribus.runs.run_folder import Run
from pluribus.runs.training import train_run
from pluribus.runs.trial import run_trial, score_validation

OPTIONS = {"data": {"name": "<rows>"}, "model": "mlp:hidden=[8]", "epochs": 3, "batch_size": 16, "validation": 0.3, "seed": 4}


def make_rows(test_seed=0, task="classification"):
    x = torch.randn(80, 4, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long() if task == "classification" else x.sum(1)
    noise = torch.randn(40, 4, generator=torch.Generator().manual_seed(test_seed))
    test = Part(noise, torch.full((40,), test_seed % 2) if task == "classification" else noise[:, 0])
    return Data("rows", Part(x, y), test, Preparation(), ("no", "yes") if task == "classification" else ())


def run(folder, data=None, others=(), **changes):
    run_trial(OPTIONS | changes, str(folder), others, {"<rows>": data or make_rows()})
    return Run(folder).read_json("trial.json")


def test_the_score_is_the_calibrated_nll_of_the_validation_rows(tmp_path):
    data = make_rows()
    with passed_objects({"<rows>": data}):
        train_run(build_config(OPTIONS), tmp_path / "run", progress=False)
        made, config, _, _ = load_run(Run(tmp_path / "run"))
        rows = split_rows(config, data)[1]
        by_hand = calibrated_nll(Predictive(made.predict(rows.x).outputs), rows.y, prior=LOG_PRIOR)
        assert score_validation(Run(tmp_path / "run")) == pytest.approx(by_hand, abs=1e-9)
    record = run(tmp_path / "trial", data)
    assert record["score"] == pytest.approx(by_hand, abs=1e-9)
    assert record["state"] == "complete"
    assert len(record["curve"]) == record["epochs"] == 3


def test_a_regression_is_scored_by_its_rmse_in_the_units_of_the_targets(tmp_path):
    data = make_rows(task="regression")
    record = run(tmp_path / "trial", data)
    last = read_metrics(tmp_path / "trial" / "metrics.csv")[-1]["validation_rmse"]
    assert record["score"] == pytest.approx(last, rel=1e-5)


def test_a_regression_that_predicts_its_noise_is_scored_by_the_likelihood_of_both(tmp_path):
    data = make_rows(task="regression")
    options = OPTIONS | {"noise": "gaussian"}
    with passed_objects({"<rows>": data}):
        train_run(build_config(options), tmp_path / "run", progress=False)
        made, config, _, _ = load_run(Run(tmp_path / "run"))
        rows = split_rows(config, data)[1]
        p, y = made.predict(rows.x), rows.y.double().unsqueeze(1)
        variance = p.variance.double()
        by_hand = (0.5 * (2 * torch.pi * variance).log() + (y - p.mean.double()) ** 2 / (2 * variance)).mean().item()
        assert score_validation(Run(tmp_path / "run")) == pytest.approx(by_hand, abs=1e-6)


def test_a_regression_that_predicts_quantiles_is_scored_by_their_pinball_loss(tmp_path):
    data = make_rows(task="regression")
    with passed_objects({"<rows>": data}):
        train_run(build_config(OPTIONS | {"quantiles": (0.1, 0.9)}), tmp_path / "run", progress=False)
        made, config, _, _ = load_run(Run(tmp_path / "run"))
        rows = split_rows(config, data)[1]
        low, high = rows.y.double() - made.predict(rows.x).quantiles.double().squeeze(2)
        by_hand = (torch.maximum(0.1 * low, -0.9 * low).mean() + torch.maximum(0.9 * high, -0.1 * high).mean()).item() / 2
        assert score_validation(Run(tmp_path / "run")) == pytest.approx(by_hand, abs=1e-6)
        record = run(tmp_path / "trial", data, quantiles=(0.1, 0.9))
        assert record["curve"] == [row["validation_pinball"] for row in read_metrics(tmp_path / "run" / "metrics.csv")]


def test_test_rows_are_not_read(tmp_path):
    records = [run(tmp_path / str(seed), make_rows(test_seed=seed)) for seed in (0, 1)]
    assert records[0] | {"seconds": 0} == records[1] | {"seconds": 0}
    result = Run(tmp_path / "0").read_json("result.json")
    assert (result["split"], result["scores"]) == (None, {})


def test_a_bad_trial_is_stopped_after_a_third_of_its_epochs_at_the_earliest(tmp_path):
    record = run(tmp_path / "trial", others=[[0.0] * 3, [0.0] * 3])
    assert (record["state"], record["epochs"], len(record["curve"])) == ("pruned", 2, 2)
    whole = run(tmp_path / "whole")
    assert record["curve"] == whole["curve"][:2]
    assert run(tmp_path / "last", others=[[9.0, 9.0, 0.0]])["state"] == "complete", "nothing is left to stop in the last epoch"


def test_a_trial_that_ended_but_was_killed_before_it_was_scored_ends_in_the_same_way(tmp_path):
    others = [[0.0] * 3]
    expected = run(tmp_path / "whole", others=others)
    data = {"<rows>": make_rows()}
    from pluribus.runs.pruning import Pruner, TrialPruning

    with passed_objects(data):
        train_run(
            *(build_config(OPTIONS), tmp_path / "killed"),
            progress=False,
            callbacks=[TrialPruning(Pruner(others))],
            scored=False,
        )
    assert run(tmp_path / "killed", others=others) | {"seconds": 0} == expected | {"seconds": 0}


def test_a_trial_that_diverges_has_failed_and_is_not_run_again(tmp_path):
    record = run(tmp_path / "trial", optimizer="sgd", lr=1e30)
    assert (record["state"], record["score"]) == ("failed", None)
    assert "the loss became" in record["reason"]
    before = (tmp_path / "trial" / "trial.json").read_bytes()
    run(tmp_path / "trial", optimizer="sgd", lr=1e30)
    assert (tmp_path / "trial" / "trial.json").read_bytes() == before


def test_a_trial_whose_weights_are_not_finite_has_failed_and_names_no_file(tmp_path, monkeypatch):
    def refuse(trial):
        raise NonFiniteWeights(f"{trial.path} holds a network that has diverged")

    monkeypatch.setattr("pluribus.runs.trial.score_validation", refuse)
    record = run(tmp_path / "trial")
    assert record["state"] == "failed"
    assert record["reason"] == "the network has diverged: some of its numbers are NaN or infinite"


def test_a_trial_leaves_no_weights(tmp_path):
    run(tmp_path / "trial")
    left = {path.name for path in (tmp_path / "trial").rglob("*") if path.is_file()}
    assert left - {".lock"} == {"about.json", "config.yaml", "data.json", "metrics.csv", "result.json", "trial.json"}
    assert json.loads((tmp_path / "trial" / "trial.json").read_text())["digest"].startswith("sha256:")
