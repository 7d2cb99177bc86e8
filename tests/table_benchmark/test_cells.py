"""Cells: everybody gets the same rows, tuning goes on after a kill, and scores come back in the units of the targets."""

import importlib.util
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.table_benchmark import cells
from pluribus.table_benchmark.cells import draw_options, judge, restore_units, tune
from pluribus.table_benchmark.contender import Contender, Limits, Tuned
from pluribus.table_benchmark.contenders import ContenderError, find_contender, find_contenders, list_contenders
from pluribus.table_benchmark.rows import count_splits, load_rows, number_categories, unscale
from pluribus.table_benchmark.scores import Gaussians

SHORT = Limits(epochs=2, patience=2, trees=5, tree_patience=2)


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"a": generator.exponential(size=120), "b": ["x", "y", "z"] * 40, "c": generator.normal(size=120)})
    frame["price"] = 1000 + 50 * frame["a"] + 20 * (frame["b"] == "x")
    file = tmp_path / "prices.csv"
    frame.to_csv(file, index=False)
    return {"name": str(file)}


def test_rows_are_split_anew_for_every_split_and_scaled_by_the_training_rows(table):
    rows, again, other = (load_rows(table, None, split, None) for split in (0, 0, 1))
    assert (len(rows.train), len(rows.validation), len(rows.test)) == (77, 19, 24)
    assert torch.equal(rows.test.x, again.test.x)
    assert not torch.equal(rows.test.x, other.test.x)
    assert rows.column_widths == (0, 3, 0)
    targets = torch.cat([rows.train.y, rows.validation.y])
    assert targets.mean().abs() < 1e-5
    assert unscale(targets, rows).min() >= 999.9
    assert len(load_rows(table, None, 0, 50).train) == 40
    assert (count_splits({"name": "uci-energy"}, 12), count_splits(table, 12)) == (10, 12)


def test_an_unknown_category_has_a_number_of_its_own(table):
    rows = load_rows(table, None, 0, None)
    x = torch.tensor([[0.5, 0, 1, 0, -1.0], [0.5, 1, 0, 0, 0.0], [0.5, 0, 0, 0, 0.0]])
    assert number_categories(x, rows).tolist() == [[1], [0], [3]]


def test_a_table_without_splits_or_of_classes_is_refused(table, tmp_path):
    with pytest.raises(DataError, match="digits has no splits of its rows"):
        load_rows({"name": "digits"}, None, 0, None)
    with pytest.raises(DataError, match="is a classification, and the table benchmark is of regressions"):
        load_rows(table | {"target": "b"}, None, 0, None)
    with pytest.raises(DataError, match="seed is chosen by the benchmark"):
        load_rows(table | {"seed": 3}, None, 0, None)


def test_predictions_return_to_the_units_of_the_targets(table):
    rows = load_rows(table, None, 0, None)
    found = restore_units(Gaussians(rows.test.y, torch.ones(len(rows.test.y))), rows)
    scale = rows.target[1]
    torch.testing.assert_close(found.variance, torch.full_like(found.variance, scale**2))
    scores = judge(lambda x: Gaussians(torch.zeros(len(x)), torch.zeros(len(x))), rows)
    expected = (unscale(rows.test.y, rows) - rows.target[0]).square().mean().sqrt().item()
    assert scores["scores"]["rmse"] == pytest.approx(expected, rel=1e-6)


def make_counting(log):
    """A contender whose error on every row is its option."""

    def fit(rows, options, seed, limits):
        log.append(options["shift"])
        known = {tuple(x.tolist()): y for part in (rows.validation, rows.test) for x, y in zip(part.x, part.y, strict=True)}

        def predict(x):
            mean = torch.stack([known[tuple(row.tolist())] + options["shift"] for row in x])
            return Gaussians(mean, torch.zeros(len(x)))

        return predict

    return Contender("counting", "counting", fit, {"shift": Tuned(1.0, "float", (0.0, 2.0))})


def test_the_trial_with_the_smallest_error_is_chosen_and_a_killed_cell_goes_on_as_it_would_have(table, tmp_path):
    rows, log = load_rows(table, None, 0, None), []
    contender = make_counting(log)
    records, chosen, predict = tune(contender, rows, 0, 6, SHORT, tmp_path / "whole.json")
    assert log[0] == 1.0, "the default comes first"
    assert log[chosen] == min(log)
    assert (predict(rows.test.x).mean - rows.test.y).mean().item() == pytest.approx(min(log), abs=1e-5)
    tune(contender, rows, 0, 3, SHORT, tmp_path / "killed.json")
    again, chosen_again, predict = tune(contender, rows, 0, 6, SHORT, tmp_path / "killed.json")
    assert [record["options"] for record in again] == [record["options"] for record in records]
    assert chosen_again == chosen
    assert (predict(rows.test.x).mean - rows.test.y).mean().item() == pytest.approx(min(log), abs=1e-5)


def test_the_test_rows_choose_nothing(table, tmp_path):
    rows, log = load_rows(table, None, 0, None), []
    other = replace(rows, test=replace(rows.test, y=rows.test.y.flip(0)))
    options = [
        [record["options"] for record in tune(make_counting(log), each, 0, 4, SHORT, tmp_path / f"{number}.json")[0]]
        for number, each in enumerate((rows, other))
    ]
    assert options[0] == options[1]


@pytest.mark.parametrize("name", list_contenders())
def test_defaults_lie_in_the_space_that_is_searched(name):
    space = find_contender(name).space
    records = [{"options": {key: tuned.default for key, tuned in space.items()}, "validation_rmse": 1.0}]
    assert set(draw_options(space, records, 0)) == set(space)


@pytest.mark.parametrize("name", list_contenders())
def test_every_contender_fits_and_predicts_a_table_with_categories(name, table):
    contender = find_contender(name)
    if contender.find_missing():
        pytest.skip(contender.find_missing())
    rows = load_rows(table, None, 0, None)
    small = {"width": 8, "d_block": 16, "n_blocks": 1, "depth": 1} if name != "catboost" else {"depth": 3}
    options = contender.defaults | {key: value for key, value in small.items() if key in contender.space}
    found = contender.fit(rows, options, 0, SHORT)(rows.test.x)
    assert found.mean.shape == found.variance.shape == (24,)
    assert bool(found.mean.isfinite().all())
    assert found.mean.std() > 0
    assert bool((found.variance >= 0).all())
    again = contender.fit(rows, options, 0, SHORT)(rows.test.x)
    torch.testing.assert_close(again.mean, found.mean)


def test_a_method_of_ours_takes_part_by_its_choice_and_others_are_refused():
    assert find_contender("mimo:members=2").is_ours
    assert [found.name for found in find_contenders(["single", "single"])] == ["single"]
    with pytest.raises(ContenderError, match="no contender 'lightgmb': did you mean 'lightgbm'"):
        find_contender("lightgmb")
    with pytest.raises(ContenderError, match="contenders must be names between commas: single"):
        find_contenders([])


def test_a_missing_library_is_said_with_its_cure(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "catboost" else object())
    assert find_contender("catboost").find_missing() == "catboost not installed: pip install 'pluribus[tables]'"
    assert find_contender("single").find_missing() == ""


def test_a_cell_leaves_what_it_found(table, tmp_path):
    cells.run_cell(str(tmp_path / "cell"), table, "prices", 0, "hist-gradient-boosting", 2, SHORT, None, None)
    found = json.loads((tmp_path / "cell" / "found.json").read_text())
    assert (found["table"], found["split"], found["contender"]) == ("prices", 0, "hist-gradient-boosting")
    assert len(found["trials"]) == 2
    assert found["scores"] == found["trials"][found["chosen"]]["scores"]
    assert found["base_train_seconds"] > 0
    assert found["predict"]["low"] <= found["predict"]["median"] <= found["predict"]["high"]
