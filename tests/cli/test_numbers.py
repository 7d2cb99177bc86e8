"""Numbers from a file through training to the answers of the command line."""

import json

import numpy as np
import pytest

from .files import npz

TRAIN = "train --quiet --epochs 60 --batch-size 32 --model mlp:hidden=[32] --out run --data"


@pytest.fixture
def timestamps(work):
    """Targets 1.7e9 + [0, 100), which follow from the one column."""
    x = np.linspace(0, 1, 200)
    (work / "t.csv").write_text("x,y\n" + "".join(f"{a:.4f},{1.7e9 + 100 * a:.3f}\n" for a in x))
    return 1.7e9 + 100 * x.round(4)


def test_large_targets_are_learned_and_shown_with_their_digits(pluribus, timestamps):
    assert pluribus(f"{TRAIN} t.csv").code == 0
    rows = [json.loads(line) for line in pluribus("predict run t.csv --json").out.splitlines()]
    errors = np.array([row["value"] for row in rows]) - timestamps
    assert np.sqrt((errors**2).mean()) < 10  # their standard deviation is 29, and single precision has steps of 128
    shown = [line.split("│")[3].strip() for line in pluribus("predict run t.csv").out.splitlines() if "t.csv" in line]
    assert np.abs(np.array(shown, float) - [row["value"] for row in rows]).max() < 0.01
    told = json.loads(pluribus("evaluate run --json").out)
    assert told["scores"]["rmse"] < 10


def test_targets_that_differ_beyond_single_precision_train(pluribus, work):
    x = np.linspace(0, 1, 64)
    (work / "t.csv").write_text("x,y\n" + "".join(f"{a},{1e9 + a}\n" for a in x.tolist()))
    assert pluribus("train --quiet --epochs 1 --model mlp --out run --data t.csv").code == 0
    assert json.loads((work / "run/data.json").read_text())["preparation"]["target"][1] == pytest.approx(x.std(), rel=0.1)


def test_a_cell_that_overflows_gets_a_sentence_and_no_label(pluribus, a_copy, work):
    a_copy("flowers")
    (work / "new.csv").write_text("length,width,colour\n1,1,red\n1e39,1,red\n")
    answer = pluribus("predict run new.csv")
    assert (answer.code, answer.out) == (2, "")
    assert "new.csv: column 'length', row 2: 1e+39 is too far from the training values" in answer.err


@pytest.mark.filterwarnings("always")
def test_unknown_categories_are_counted_on_standard_error(pluribus, a_copy, work):
    a_copy("flowers")
    (work / "new.csv").write_text("length,width,colour\n1,1,red\n1,1,green\n1,1,pink\n")
    answer = pluribus("predict run new.csv --json")
    assert "warning: column 'colour' has 2 of 3 cells with a category that training did not have" in answer.err
    assert (answer.code, len(answer.out.splitlines())) == (0, 3)


def test_one_class_is_refused_when_it_is_read(pluribus, work):
    npz(x=np.eye(8), y=np.zeros(8, int))(work)
    answer = pluribus("train --data rows.npz")
    assert answer.code == 2
    assert "at least two classes, got '0' alone" in answer.err
    assert not (work / "runs").exists()


def test_a_row_of_the_training_file_is_predicted_as_in_training(pluribus, a_copy, runs, work):
    """A file of one row, whose cells could be read as other types than in the whole file."""
    a_copy("flowers")
    head, *lines = (runs / "flowers.csv").read_text().splitlines()
    (work / "all.csv").write_text("\n".join([head, *lines]))
    (work / "one.csv").write_text("\n".join([head, lines[7]]))
    every = [json.loads(line) for line in pluribus("predict run all.csv --json").out.splitlines()]
    (one,) = [json.loads(line) for line in pluribus("predict run one.csv --json").out.splitlines()]
    assert one["label"] == every[7]["label"]
    assert one["confidence"] == pytest.approx(every[7]["confidence"], rel=1e-5)
