"""Tables: exact encodings, and a sentence for whatever cannot be one."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import Columns, Preparation, load
from pluribus.data.column_encoding import Column
from pluribus.data.table_files import read_table

NAN = float("nan")
MASK = [0, 0, 0, 0, 1, 1]
TABLE = pd.DataFrame(
    {
        "age": [10.0, 20.0, 30.0, NAN, 40.0, NAN],
        "colour": ["red", "blue", "red", "red", "green", None],
        "size": [1, 3, 1, 3, 2, 1],
        "place": ["a", None, "a", "b", None, "c"],
        "same": [7, 7, 7, 7, 8, 7],
        "price": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
    }
)


def csv(path, frame=TABLE, **options):
    file = path / "table.csv"
    frame.to_csv(file, index=False, **options)
    return str(file)


def rows(count=40):
    return pd.DataFrame({"a": np.arange(count) * 1.5, "b": np.arange(count) % 7, "y": np.arange(count) % 2})


def test_the_encoding_is_exact(tmp_path):
    data = load(csv(tmp_path), test_mask=MASK)
    # Training ages 10, 20, 30 have the mean 20 and the variance 200/3; sizes 1, 3, 1, 3 the mean 2 and the deviation 1.
    d = math.sqrt(200 / 3)
    expected = [
        #  age     missing blue red size  a  b  missing
        [-10 / d, 0.0, 0.0, 1.0, -1.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0],
        [10 / d, 0.0, 0.0, 1.0, -1.0, 1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0],
        [20 / d, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],  # green was not seen in training
        [0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0],  # a missing colour has no column, c was not seen
    ]
    torch.testing.assert_close(torch.cat([data.train.x, data.test.x]), torch.tensor(expected))
    features = ("age", "age is missing", "colour=blue", "colour=red", "size", "place=a", "place=b", "place is missing")
    assert data.preparation.features == features
    assert data.facts["left out, as constant"] == ["same"]
    assert data.train.y.tolist() == [1.5, 2.5, 3.5, 4.5]
    assert data.preparation.target == pytest.approx((3.0, math.sqrt(1.25)))
    assert data.task == "regression"


def test_new_rows_are_encoded_as_those_of_training(tmp_path):
    data = load(csv(tmp_path), test_mask=MASK)
    with pytest.warns(UserWarning, match="category that training did not have"):
        again = data.preparation.encode(TABLE[["place", "size", "colour", "age"]])
    assert torch.equal(again, torch.cat([data.train.x, data.test.x]))


def test_an_encoding_survives_json(tmp_path):
    columns = load(csv(tmp_path), test_mask=MASK).preparation
    again = Preparation.from_json(json.loads(json.dumps(columns.to_json())))
    assert again == columns
    assert isinstance(again, Columns)
    assert isinstance(again.columns[0], Column)
    assert torch.equal(again.encode(TABLE[:4]), columns.encode(TABLE[:4]))


def test_new_rows_must_have_the_columns_of_training(tmp_path):
    columns = load(csv(tmp_path), test_mask=MASK).preparation
    with pytest.raises(DataError, match="the columns that training had: 'colour', 'size' missing"):
        columns.encode(TABLE[["age", "place"]])


def test_a_gap_where_training_had_none_is_refused_in_new_rows_and_filled_in_the_test(tmp_path):
    frame = TABLE.assign(size=[1, 3, 1, 3, NAN, 2])
    data = load(csv(tmp_path, frame), test_mask=MASK)
    assert data.test.x[0, 4] == 0
    assert data.facts["missing in test rows only, so set to the training mean"] == ["size"]
    with pytest.raises(DataError, match="NaN in column 'size', row 5: it had no missing values in training"):
        data.preparation.encode(frame)


def test_a_text_among_new_numbers_is_named(tmp_path):
    columns = load(csv(tmp_path), test_mask=MASK).preparation
    with pytest.raises(DataError, match="'size' must hold numbers, got 'big' in row 2"):
        columns.encode(TABLE.assign(size=[1, "big", 1, 1, 1, 1]))


def test_a_gap_does_not_change_a_category(tmp_path):
    frame = pd.DataFrame({"code": ["5", "x"] * 10, "y": [0, 1] * 10})
    columns = load(csv(tmp_path, frame), test=0).preparation
    with pytest.warns(UserWarning, match="column 'code' has 1 of 2 cells"):
        assert columns.encode(pd.DataFrame({"code": [5.0, NAN]})).tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["no", "yes"] * 20, "classification", ("no", "yes")),
        ([True, False] * 20, "classification", ("False", "True")),
        ([2, 10] * 20, "classification", ("2", "10")),
        ([1.0, 2.0] * 20, "classification", ("1", "2")),
        ([0.5, 1.5] * 20, "regression", ()),
        (list(range(40)), "regression", ()),
    ],
)
def test_the_task_follows_from_the_target(tmp_path, values, task, classes):
    data = load(csv(tmp_path, rows().assign(y=values)))
    assert (data.task, data.classes) == (task, classes)
    assert data.preparation.classes == classes
    assert data.preparation.answer == "y"


def test_labels_point_at_their_classes(tmp_path):
    values = ["b", "a", "c", "a"] * 10
    data = load(csv(tmp_path, rows().assign(y=values)), test=0)
    assert [data.classes[i] for i in data.train.y] == values


def test_the_task_can_be_chosen(tmp_path):
    assert load(csv(tmp_path, rows()), task="regression").task == "regression"


def test_the_target_is_the_last_column_and_says_so_unless_it_is_chosen(tmp_path):
    path = csv(tmp_path, rows())
    assert load(path).facts["target"].startswith("y, the last column")
    for target in ("b", 1, "1", -2):
        data = load(path, target=target)
        assert (data.facts["target"], data.preparation.features) == ("b", ("a", "y"))


def test_the_share_set_aside_keeps_the_proportions_of_the_classes(tmp_path):
    path = csv(tmp_path, rows().assign(y=[0] * 30 + [1] * 10))
    data = load(path, test=0.5)
    assert torch.bincount(data.test.y).tolist() == [15, 5]
    assert not torch.equal(data.test.x, load(path, test=0.5, seed=1).test.x)
    assert len(load(path, test=0).test) == 0


def test_columns_are_left_out_on_request(tmp_path):
    path = csv(tmp_path, rows())
    assert load(path, drop=["a"]).preparation.features == ("b",)
    assert load(path, drop="a").preparation.features == ("b",)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet"])
def test_every_format_holds_the_same(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        TABLE.to_parquet(path)
    else:
        TABLE.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")
    data, same = load(str(path), test_mask=MASK), load(csv(tmp_path), test_mask=MASK)
    assert torch.equal(data.train.x, same.train.x)
    assert torch.equal(data.test.x, same.test.x)


def test_a_first_row_of_numbers_is_no_header(tmp_path):
    path = csv(tmp_path, pd.DataFrame([[1, 2.5, -3], [4, 5, 6]]), header=False)
    frame = read_table(path)
    assert (len(frame), list(frame.columns)) == (2, ["c0", "c1", "c2"])
    assert list(read_table(path, header=True).columns) == ["1", "2.5", "-3"]
    assert list(read_table(csv(tmp_path, rows())).columns) == ["a", "b", "y"]


def test_a_spreadsheets_mark_and_spaces_are_no_part_of_a_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("\ufeffa, b ,y\n1, 2,3\n".encode())
    assert list(read_table(path).columns) == ["a", "b", "y"]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"a": [NAN] * 40}, {}, r"column 'a' is empty: leave it out with drop=\['a'\]"),
        ({"a": [1.0] * 29 + [math.inf] * 11}, {}, "infinity in column 'a', row 30"),
        ({"y": [NAN] + [1.0] * 39}, {}, "the target 'y' is missing in 1 of 40 rows"),
        ({"y": [3] * 40}, {}, "at least two classes, got '3' alone"),
        ({"y": [3] * 40}, {"task": "regression"}, "is 3 in every training row"),
        ({"y": [f"t{i}" for i in range(40)]}, {}, "has 40 classes in 40 rows"),
        ({"y": ["a", "b"] * 20}, {"task": "regression"}, "must hold numbers, got 'a'"),
        ({"y": [0.5, 1] * 20}, {"task": "classification"}, "must hold texts or whole numbers"),
        ({"a": [1] * 40, "b": [2] * 40}, {}, "nothing to learn from"),
        ({}, {"task": "ranking"}, "task must be 'classification' or 'regression', got 'ranking'"),
        ({}, {"target": "z"}, "there is no column 'z'"),
        ({}, {"target": 9}, "there is no column 9: there are 3"),
        ({}, {"drop": ["a", "b"]}, "there must be a column beside the target 'y'"),
        ({}, {"drop": "y"}, "column 'y' is the target"),
        ({}, {"test": 1.5}, "test must be a share of the rows"),
        ({}, {"test_mask": [1, 0]}, "a mark for each of the 40 rows, got 2"),
    ],
)
def test_what_cannot_be_learned_from_is_named(tmp_path, change, options, said):
    path = csv(tmp_path, rows().assign(**change))
    with pytest.raises(DataError, match=said) as told:
        load(path, **options)
    assert path in str(told.value)


def test_a_column_of_names_is_refused_with_the_cure(tmp_path):
    frame = rows(202).assign(name=[f"person {i}" for i in range(202)])[["name", "a", "y"]]
    with pytest.raises(DataError, match=r"column 'name' has \d+ different texts.*drop=\['name'\]"):
        load(csv(tmp_path, frame))
    assert load(csv(tmp_path, frame), drop=["name"]).shape == (1,)


def test_a_mark_for_missing_among_numbers_is_shown(tmp_path):
    frame = rows(202).assign(a=["?", *map(str, range(201))])
    with pytest.raises(DataError, match=r"column 'a' holds numbers, but also '\?'"):
        load(csv(tmp_path, frame), test=0)


def test_times_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    rows(10).assign(a=pd.date_range("2020-01-01", periods=10)).to_parquet(path)
    with pytest.raises(DataError, match="column 'a' holds times"):
        load(str(path))


def test_all_columns_that_cannot_be_used_are_named_at_once(tmp_path):
    path = tmp_path / "t.parquet"
    times, names = pd.date_range("2020-01-01", periods=202), [f"n{row}" for row in range(202)]
    rows(202).assign(a=times, b=names, c=[NAN] * 202, last=range(202)).to_parquet(path)
    with pytest.raises(DataError) as found:
        load(str(path))
    assert "3 columns cannot be used: leave them out with drop=['a', 'b', 'c']. Column 'a' holds times; column 'b' has" in str(
        found.value
    )
    assert load(str(path), drop=["a", "b", "c"]).shape


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no rows"),
        ("a,b\n", "holds no rows"),
        ("a,b,a\n1,2,3\n", "column names must differ, got 'a' more than once"),
        ("a,b\n1,2\n1,2,3\n", "cannot be read: .*line 3"),
        ("a,b\n1,2,3\n1,2,3\n", "a name for each column: its first row has 2 cells"),
        ("a;b;y\n1;2;0\n2;3;1\n", "separated by semicolons"),
        ("a\n1\n2\n", "a column beside the target 'a'"),
        ("a,y\n1,0\n", "1 rows are too few"),
    ],
)
def test_what_is_no_table_is_named(tmp_path, text, said):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        load(str(path), task="regression" if text == "a,y\n1,0\n" else None)


def test_a_file_in_another_alphabet_is_told_to_be_utf8(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe,y\n1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="save it as UTF-8"):
        load(str(path))


@pytest.mark.parametrize("name", ["table.csv.gz", "table.parquet"])
def test_a_damaged_file_is_named(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"\x1f\x8b\x08damaged beyond repair")
    with pytest.raises(DataError, match=f"{name} (cannot be read|is damaged)"):
        load(str(path))


def test_codes_with_leading_zeros_stay_texts(tmp_path):
    file = tmp_path / "codes.csv"
    file.write_text("zip,size,label\n" + "01234,1,01\n10115,2,1\n" * 20)
    data = load(str(file))
    assert data.classes == ("01", "1")
    assert [column.kind for column in data.preparation.columns] == ["category", "number"]


def test_yes_and_no_may_be_written_as_numbers_when_predicting():
    columns = Columns.fit(pd.DataFrame({"member": [True, False, True]}))
    said = columns.encode(pd.DataFrame({"member": [True, False]}))
    assert torch.equal(columns.encode(pd.DataFrame({"member": [1, 0]})), said)
    assert said.sum() == 2
