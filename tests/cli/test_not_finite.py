"""A network that overflows: each output says so, none has a label, and JSON stays strict."""

import json
import math

import pytest
import torch

import pluribus as library
from pluribus.runs.grid import read_state
from pluribus.runs.loading import load_run
from pluribus.runs.run_folder import Run

from .files import file, png, rows


def overflow(path, column):
    """Let the first layer answer with numbers near the largest wherever an input column is not zero. All weights are finite."""
    run = Run(path)
    ensemble = load_run(run)[0]
    with torch.no_grad():
        first = next(p for p in ensemble.parameters() if p.dim() >= 2)
        first[..., column] = 3e38
        for parameter in list(ensemble.parameters())[1:]:
            parameter.fill_(10.0)
    library.save(ensemble, run.weights)


def strict(text):
    """JSON as it is defined: without NaN and Infinity."""

    def refuse(token):
        raise AssertionError(f"{token} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def flowers(a_copy, work):
    """A run that overflows on red flowers, and a table of red and blue ones."""
    run = a_copy("flowers")
    columns = json.loads((run / "data.json").read_text())["preparation"]["columns"]
    names = [value for column in columns for value in (column[4] if column[1] == "category" else [column[0]])]
    overflow(run, names.index("red"))
    file("some.csv", rows(6))(work)
    colours = [line.split(",")[2] for line in rows(6).splitlines()[1:]]
    assert {"red", "blue"} == set(colours)
    return colours


def test_predict_gives_no_label_where_the_answer_is_not_finite_and_ends_with_code_2(flowers, pluribus):
    answer = pluribus("predict run some.csv --json")
    assert answer.code == 2
    found = [strict(line) for line in answer.out.splitlines()]
    assert [row["label"] is None for row in found] == [colour == "red" for colour in flowers]
    for row, colour in zip(found, flowers, strict=True):
        if colour == "red":
            assert row["error"] == "the network's answer is not finite"
            assert row["confidence"] is row["uncertainty"] is row["probabilities"] is None
        else:
            assert "error" not in row
            assert math.isclose(sum(row["probabilities"].values()), 1, rel_tol=1e-5)
    lost = flowers.count("red")
    assert answer.err == (
        f"pluribus: the run has no finite answer to {lost} of 6 rows, the first is some.csv, row {flowers.index('red')}: the "
        "network overflows there, as it does on very large inputs\n"
    )


def test_the_table_of_predict_says_so(flowers, pluribus):
    answer = pluribus("predict run some.csv")
    assert answer.code == 2
    lines = [line for line in answer.out.splitlines() if "some.csv" in line]
    assert [("not finite" in line) for line in lines] == [colour == "red" for colour in flowers]
    assert not any(name in line for line in lines if "not finite" in line for name in ("tall", "small"))
    assert "nan" not in answer.out


def test_a_regression_has_no_value_there(a_copy, pluribus, work):
    overflow(a_copy("houses"), 0)
    file("some.csv", rows(4, target="price"))(work)
    answer = pluribus("predict run some.csv --json")
    assert answer.code == 2
    found = [strict(line) for line in answer.out.splitlines()]
    # The first layer ends in a ReLU: lengths below the mean leave it at zero.
    assert [row["value"] is row["spread"] is None and "error" in row for row in found] == [False, False, True, True]
    assert "no finite answer to 2 of 4 rows" in answer.err


@pytest.mark.parametrize("name", ["digits", "flowers", "houses"])
def test_evaluate_has_no_scores_then(name, a_copy, pluribus, work):
    run = a_copy(name)
    overflow(run, 20 if name == "digits" else 0)
    answer = pluribus("evaluate run --json --no-cost")
    assert answer.code == 2
    found = strict(answer.out)
    assert found == {key: value for key, value in strict((run / "evaluation.json").read_text()).items() if key != "digest"}
    assert found["not_finite"] > 0
    assert set(found["scores"].values()) == {None}
    assert all(bounds == [None, None] for bounds in found["intervals"].values())
    assert all(row["answer"] is None for row in found.get("unsure", []) if row["confidence"] is None)
    assert answer.err.splitlines()[-1].startswith("pluribus: the run has no finite answer to ")
    shown = pluribus("evaluate run --no-cost")
    assert shown.code == 2
    assert "not finite" in shown.out
    assert "nan" not in shown.out


def test_a_run_that_is_resumed_at_its_end_shows_what_its_result_has(a_copy, pluribus):
    run = a_copy("digits")
    record = json.loads((run / "result.json").read_text())
    del record["digest"]
    record["scores"], record["not_finite"] = dict.fromkeys(record["scores"]), 3
    (run / "result.json").write_text(json.dumps(record))
    answer = pluribus("train --resume run")
    assert answer.code == 0
    assert "not finite" in answer.out
    assert "3 rows have no finite answer" in answer.out
    cell = type("Cell", (), {"method": "single", "seed": 0, "options": {"epochs": 1}})
    assert set(read_state(Run(run), cell)["scores"].values()) == {None}


def test_images_get_no_label_either(a_copy, pluribus, work):
    overflow(a_copy("digits"), slice(None))
    png("a.png")(work)
    answer = pluribus("predict run a.png --json")
    assert answer.code == 2
    assert strict(answer.out)["label"] is None
