"""Learning curves in results.json, and the note on runs that were stopped while they were still improving."""

import pytest
import torch

import pluribus
from pluribus.comparison.budgets import check_length, describe_budget
from pluribus.comparison.learning_curves import add_training, note_still_improving, thin_rows
from pluribus.file_formats.comparison_files import Results
from pluribus.file_formats.reading import read_json
from pluribus.runs.config import ConfigError, build_config, save_config
from pluribus.runs.grid import Cell, read_state
from pluribus.runs.run_folder import Run


def make_run(path, seed, epochs, score="validation_calibrated_nll", **facts):
    """The folder of a finished run whose score was 1 / epoch."""
    run = Run(path / f"run-{seed}-{epochs}")
    run.create()
    save_config(build_config({"seed": seed, "epochs": "auto"}), run.config)
    run.write_metrics(
        [{"epoch": e, "step": e, "loss": 1.0, "validation_nll": 2 / e, score: 1 / e} for e in range(1, epochs + 1)]
    )
    result = {"title": "t", "split": "test", "scores": {}, "parameters": 1, "base_parameters": 1}
    run.write_json("result.json", result | {"epochs": epochs, "steps": epochs, "seconds": 1.0} | facts)
    return run.path.name


def test_every_run_has_its_curve_and_how_it_ended(tmp_path):
    runs = [make_run(tmp_path, 0, 12, decay_from=9, still_improving=False), make_run(tmp_path, 3, 16)]
    methods = [{"name": "single", "runs": runs}]
    add_training(methods, tmp_path)
    found = methods[0]["training"]
    assert found["score"] == "calibrated_nll"
    assert (found["epochs"]["mean"], found["epochs"]["seeds"]) == (14, [12, 16])
    first, second = found["curves"]
    assert first["epochs"] == list(range(1, 13))
    assert first["scores"] == pytest.approx([1 / epoch for epoch in range(1, 13)])
    assert (first["seed"], first["decay_from"], first["still_improving"]) == (0, 9, False)
    assert (second["seed"], second["decay_from"], second["still_improving"]) == (3, None, None)


def test_runs_are_drawn_by_a_score_that_all_of_them_have(tmp_path):
    methods = [
        {"name": "new", "runs": [make_run(tmp_path, 0, 3)]},
        {"name": "old", "runs": [make_run(tmp_path, 1, 3, score="validation_ece")]},
    ]
    add_training(methods, tmp_path)
    assert [method["training"]["score"] for method in methods] == ["nll", "nll"]
    assert methods[0]["training"]["curves"][0]["scores"] == pytest.approx([2, 1, 2 / 3])


def test_without_validation_scores_there_is_no_curve(tmp_path):
    name = make_run(tmp_path, 0, 2)
    (tmp_path / name / "metrics.csv").write_text("epoch,step,loss\n1,1,0.5\n2,2,0.4\n")
    methods = [{"name": "single", "runs": [name]}]
    add_training(methods, tmp_path)
    assert methods[0]["training"] is None
    assert note_still_improving(methods, {}) == []


def test_long_curves_are_thinned_to_the_same_epochs_and_keep_their_end():
    for count in (200, 201, 399, 400, 5000):
        kept = thin_rows(list(range(count)))
        assert len(kept) <= 200
        assert (kept[0], kept[-1]) == (0, count - 1)
    assert thin_rows(list(range(390)))[:5] == thin_rows(list(range(250)))[:5] == [0, 2, 4, 6, 8]


def test_methods_that_were_still_improving_are_named_with_the_flag_that_helps():
    def method(name, *still, epochs=20):
        curve = {"epochs": [1, epochs], "scores": [1.0, 0.5]}
        return {"name": name, "training": {"curves": [curve | {"still_improving": each} for each in still]}}

    auto = {"epochs": "auto"}
    assert note_still_improving([method("a", False), method("b", None)], auto) == []
    assert note_still_improving([method("a", True), method("b", False)], auto) == [
        "a was still improving when it was stopped after 20 epochs: raise --max-epochs."
    ]
    several = [method("a", True, True), method("b", True, False, epochs=30), method("c", True)]
    assert note_still_improving(several, {"epochs": 30}) == [
        "a, b (1 of 2 seeds) and c were still improving when they were stopped after 20 to 30 epochs: raise --epochs."
    ]


def test_a_comparison_trains_until_converged_and_says_who_was_not(tmp_path):
    x = torch.randn(120, 4, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    net = torch.nn.Linear(4, 2)
    options = {"methods": ["single"], "seeds": 2, "max_epochs": 4, "validation": 0.25, "progress": False}
    found = pluribus.compare(net, (x[:80], y[:80]), test=(x[80:], y[80:]), folder=tmp_path / "c", lr=0.1, **options)
    (method,) = read_json(tmp_path / "c/results.json", Results)["methods"]
    assert method == found.methods["single"]
    assert found.results["settings"]["epochs"] == "auto"
    assert "at most 4 epochs" in found.results["budget"]["text"]
    assert method["epochs"] == 4
    assert [curve["epochs"] for curve in method["training"]["curves"]] == [[1, 2, 3, 4]] * 2
    assert [(curve["decay_from"], curve["still_improving"]) for curve in method["training"]["curves"]] == [(3, True)] * 2
    assert any("single was still improving when it was stopped after 4 epochs" in note for note in found.results["notes"])
    assert "Learning curves" in found.page()
    assert not any("more --epochs may well help" in note for note in found.results["notes"])
    result = Run(tmp_path / "c/single-seed0").read_json("result.json")
    assert (result["epochs"], result["decay_from"], result["still_improving"]) == (4, 3, True)


def test_flops_of_training_need_a_number_of_epochs():
    auto = build_config({"epochs": "auto", "max_epochs": 50})
    with pytest.raises(ConfigError, match="--epochs N"):
        check_length("training-flops", auto)
    check_length("deployed-flops", auto)
    check_length("training-flops", build_config({"epochs": 3}))
    assert describe_budget("epochs", {"epochs": 3}) == "epochs"


def test_a_grid_shows_the_most_epochs_until_the_number_is_known(tmp_path):
    options = build_config({"epochs": "auto", "max_epochs": 40}).model_dump(mode="json")
    run, cell = Run(tmp_path / "single-seed0"), Cell("single-seed0", options)
    run.create()
    scores = {"loss": 1.0, "validation_nll": 1.0, "validation_calibrated_nll": 1.0}
    rows = [{"epoch": epoch, "step": 50 * epoch} | scores for epoch in range(1, 8)]
    run.write_metrics(rows[:3])
    assert read_state(run, cell)["state"] == "epoch 3/≤40"
    run.write_metrics(rows)
    assert read_state(run, cell)["state"] == "epoch 7/8"
    assert set(read_state(run, cell)["scores"]) == {"nll"}
