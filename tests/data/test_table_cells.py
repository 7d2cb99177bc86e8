"""Cells keep their meaning from training to prediction, in text files and in Parquet."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import load
from pluribus.data.preparation import measure_spread
from pluribus.data.table_files import read_table
from pluribus.runs.prediction import read_rows

SUFFIXES = [".csv", ".parquet"]


def write(folder, columns, suffix=".csv", name="table"):
    """Write a table whose cells are the texts, or the values, that were given."""
    path = folder / f"{name}{suffix}"
    frame = pd.DataFrame(columns)
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


def encode(folder, train, new, suffix=".csv", later=None):
    """The rows of the second table, as the encoding of the first one reads them; y is the target of the first."""
    rows = len(next(iter(train.values())))
    data = load(str(write(folder, train | {"y": np.arange(rows) % 2}, suffix, "train")), test=0, target="y")
    return read_rows(write(folder, new, later or suffix, "new"), data.preparation, data.shape).tolist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_spaces_around_labels_and_categories_mean_nothing(tmp_path, suffix):
    columns = {"a": np.arange(20.0), "colour": ["red", "red ", " blue", "blue"] * 5, "y": ["x ", "x", "z", " z"] * 5}
    data = load(str(write(tmp_path, columns, suffix)), test=0)
    assert data.classes == ("x", "z")
    assert data.train.y.tolist() == [0, 0, 1, 1] * 5
    assert data.preparation.features == ("a", "colour=blue", "colour=red")
    part = read_rows(write(tmp_path, {"a": [0], "colour": [" red  "]}, suffix, "new"), data.preparation, data.shape)
    assert part[0, 1:].tolist() == [0, 1]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("later", SUFFIXES)
def test_a_leading_zero_is_never_lost(tmp_path, suffix, later):
    assert encode(tmp_path, {"code": ["01", "1"] * 10}, {"code": ["1", "01"]}, suffix, later) == [[0, 1], [1, 0]]
    assert encode(tmp_path, {"code": ["01", "1"] * 10}, {"code": ["1"]}, suffix, later) == [[0, 1]]
    assert encode(tmp_path, {"code": ["01", "1"] * 10}, {"code": ["01"]}, suffix, later) == [[1, 0]]


def test_a_category_that_looks_like_a_number_in_a_new_file_stays_a_text(tmp_path):
    train = {"code": ["1.0", "1e3", "x", "true"] * 5}
    for text, column in (("1.0", 0), ("1e3", 1), ("true", 2), ("x", 3)):
        assert encode(tmp_path, train, {"code": [text]}) == [[float(column == i) for i in range(4)]]


@pytest.mark.parametrize("train", [[True, False], ["True", "False"], ["true", "false"], [1, 0], [1.0, 0.0]])
@pytest.mark.parametrize("new", [[True, False], ["True", "False"], ["TRUE", "FALSE"], ["true", "false"], [1, 0], [1.0, 0.0]])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truth_values_may_be_written_in_any_way(tmp_path, train, new, suffix):
    yes, no = encode(tmp_path, {"member": train * 10}, {"member": new}, suffix)
    assert [yes, no] == encode(tmp_path, {"member": train * 10}, {"member": train}, suffix)
    assert yes != no
    assert any(yes)


@pytest.mark.parametrize("train", [[True, False], [1, 0], [0.5, 7]])
@pytest.mark.parametrize("new", [["yes"], ["maybe"], ["True", "yes"]])
def test_anything_else_than_a_truth_value_is_refused(tmp_path, train, new):
    said = "must hold True or False, or 1 or 0, as in training, got" if train[0] is True else "must hold numbers, got"
    with pytest.raises(DataError, match=f"column 'member' {said}"):
        encode(tmp_path, {"member": train * 10}, {"member": new})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_truth_value_is_no_number_of_another_column(tmp_path, suffix):
    with pytest.raises(DataError, match="'age' must hold numbers, got 'True' in row 1"):
        encode(tmp_path, {"age": [20, 30] * 10}, {"age": [True, False]}, suffix)


def test_an_empty_truth_value_is_refused_unless_training_had_one(tmp_path):
    with pytest.raises(DataError, match=r"'member' must hold True or False.*got '' in row 2"):
        encode(tmp_path, {"member": [True, False] * 10}, {"member": [True, None]})
    assert encode(tmp_path, {"member": [True, False, None, True] * 5}, {"member": [True, None]}) == [[0, 1, 0], [0, 0, 1]]


def test_categories_that_training_did_not_have_are_counted(tmp_path):
    with pytest.warns(UserWarning, match="column 'colour' has 2 of 3 cells with a category .* such as 'green'"):
        assert encode(tmp_path, {"colour": ["red", "blue"] * 10}, {"colour": ["green", "red", "pink"]}) == [
            [0, 0],
            [0, 1],
            [0, 0],
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(tmp_path, {"colour": ["red", "blue"] * 10}, {"colour": ["red"]})


def test_categories_of_test_rows_only_are_among_the_facts(tmp_path):
    columns = {"colour": ["red", "blue"] * 9 + ["green", "green"], "y": [0, 1] * 10}
    data = load(str(write(tmp_path, columns)), test_mask=[0] * 18 + [1] * 2)
    assert {"colour": 2} in data.facts.values()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_for_texts_and_texts_for_numbers_are_refused(tmp_path, suffix):
    with pytest.raises(DataError, match=r"'colour' must hold texts as in training, such as 'blue', got '3.5' in row 1"):
        encode(tmp_path, {"colour": ["red", "blue"] * 10}, {"colour": [3.5, 4.5]}, suffix)
    with pytest.raises(DataError, match="'size' must hold numbers, got 'red' in row 2"):
        encode(tmp_path, {"size": [1, 2] * 10}, {"size": ["3", "red"]}, suffix)


def test_numbers_beyond_single_precision_are_standardised_in_double(tmp_path):
    times = 1.7e9 + np.arange(20.0)
    data = load(str(write(tmp_path, {"time": times, "y": [0, 1] * 10})), test=0)
    expected = (np.arange(20) - 9.5) / np.arange(20).std()
    torch.testing.assert_close(data.train.x[:, 0].double(), torch.from_numpy(expected), atol=1e-6, rtol=0)
    new = read_rows(write(tmp_path, {"time": [1.7e9 + 3]}, name="new"), data.preparation, data.shape)
    assert new.item() == pytest.approx(expected[3], abs=1e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_cell_that_would_become_infinite_is_named(tmp_path, suffix):
    with pytest.raises(DataError, match=r"new\.\w+: column 'a', row 2: 1e\+39 is too far from the training values"):
        encode(tmp_path, {"a": np.arange(20.0)}, {"a": [1.0, 1e39]}, suffix)
    columns = {"a": [*range(19), 1e39], "y": [0, 1] * 10}
    with pytest.raises(DataError, match="column 'a', row 20"):
        load(str(write(tmp_path, columns, suffix)), test_mask=[0] * 18 + [1] * 2)


def test_huge_numbers_in_training_stay_finite(tmp_path):
    for values in ([1e39, *range(19)], [1e308, 1.5e308] * 10, [-1e200, 0.0] * 10, [1e-310, 2e-310] * 10):
        data = load(str(write(tmp_path, {"a": values, "y": [0, 1] * 10})), test=0)
        assert torch.isfinite(data.train.x).all()
        assert data.train.x.std(correction=0).item() == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("values", [[-1.7e308, *[1.7e308] * 19], [5e-324, *[0.0] * 19]])
def test_numbers_that_cannot_be_standardised_are_refused(tmp_path, values):
    with pytest.raises(DataError, match="column 'a' cannot be standardised"):
        load(str(write(tmp_path, {"a": values, "y": [0, 1] * 10})), test=0)


def test_a_whole_number_beyond_double_is_infinite(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,0\n2,1\n" * 10 + f"{'9' * 400},0\n")
    with pytest.raises(DataError, match="infinity in column 'a', row 21"):
        load(str(path))


def test_marks_for_missing_cells_may_have_spaces(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\nNA ,1\n 3,1\n")
    assert read_table(path)["a"].isna().tolist() == [False, True, False]
    assert read_table(path, infer=False)["a"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_of_large_numbers_with_a_small_spread_is_exact_to_its_last_digit(seed):
    """The mean of a plain sum is off by up to 0.05 % of their spread, for half of these seeds by more than half a digit."""
    values = 1.7e9 + 0.001 * np.random.default_rng(seed).standard_normal(25)
    mean, std = measure_spread(values)
    exact = sum(map(Fraction, values.tolist())) / len(values)
    assert abs(Fraction(mean) - exact) <= Fraction(math.ulp(1.7e9)) / 2
    spread = math.sqrt(sum((Fraction(value) - exact) ** 2 for value in values.tolist()) / len(values))
    assert std == pytest.approx(spread, rel=1e-6)
