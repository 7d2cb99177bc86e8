"""Files that unfold to more than they seem are refused before memory is spent on them."""

import gzip
import struct

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pluribus.core.errors import DataError
from pluribus.data import Columns, load
from pluribus.data.limits import BYTES, COLUMNS, FEATURES, PIXELS, TEXT
from pluribus.data.table_files import read_table


@pytest.fixture
def small(monkeypatch):
    """A limit of one million bytes."""
    monkeypatch.setenv("PLURIBUS_MAX_BYTES", "1000000")


def test_the_limits_are_those_of_the_documentation():
    defaults = {limit.variable: limit.default for limit in (BYTES, PIXELS, COLUMNS, FEATURES, TEXT)}
    assert defaults == {
        "PLURIBUS_MAX_BYTES": 4 * 2**30,
        "PLURIBUS_MAX_PIXELS": 100_000_000,
        "PLURIBUS_MAX_COLUMNS": 10_000,
        "PLURIBUS_MAX_FEATURES": 100_000,
        "PLURIBUS_MAX_TEXT": 1_000,
    }


@pytest.mark.parametrize("value", ["many", "-1", "0", "1e9", "9" * 5000, "٣"])
def test_a_limit_must_be_a_whole_number(monkeypatch, value):
    monkeypatch.setenv("PLURIBUS_MAX_BYTES", value)
    with pytest.raises(DataError, match="PLURIBUS_MAX_BYTES must be a whole number above 0, got"):
        BYTES.check(1, "a file holds")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.gz", "t.csv"])
def test_a_gzipped_table_that_unfolds_beyond_the_limit_is_refused(tmp_path, small, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a,y\n" + b"0,0\n" * 500_000))
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match=rf"{name} unfolds to more than the limit of 1,000,000 bytes: set PLURIBUS_MAX_BYTES"):
        load(str(path))


def test_members_of_a_gzipped_file_count_together(tmp_path, small):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"0,0\n" * 100_000) * 4)
    with pytest.raises(DataError, match="unfolds to more than the limit"):
        load(str(path))


def test_a_large_table_is_refused_by_its_size(tmp_path, small):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y\n" + b"0,0\n" * 500_000)
    with pytest.raises(DataError, match=r"t\.csv holds 2,000,004 bytes, more than the limit of 1,000,000"):
        load(str(path))


def test_a_set_of_idx_files_that_unfolds_beyond_the_limit_is_refused(tmp_path, small):
    folder = tmp_path / "mnist"
    folder.mkdir()
    images = bytes([0, 0, 8, 3]) + struct.pack(">III", 10_000, 28, 28) + bytes(10_000 * 28 * 28)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", 10_000) + bytes(10_000))
    with pytest.raises(DataError, match=r"images-idx3-ubyte\.gz unfolds to more than the limit"):
        load("mnist", tmp_path)


@pytest.mark.parametrize("shape", [(0, 28, 28), (0, 2**32 - 1, 2**32 - 1)])
def test_idx_files_without_rows_are_refused(tmp_path, shape):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">III", *shape))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", 0))
    with pytest.raises(DataError, match="images-idx3-ubyte holds no rows"):
        load("mnist", tmp_path)


def test_cifar_files_that_unfold_beyond_the_limit_are_refused(tmp_path, small):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        (folder / f"{name}.bin.gz").write_bytes(gzip.compress(bytes(3073 * 1000)))
    with pytest.raises(DataError, match=r"bin\.gz unfolds to more than the limit"):
        load("cifar10", tmp_path)


def test_a_parquet_file_is_refused_by_what_its_rows_need(tmp_path, small):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.zeros(200_000), "y": np.zeros(200_000, int)}).to_parquet(path)
    assert path.stat().st_size < 10_000
    with pytest.raises(DataError, match=r"t\.parquet holds 3,200,000 bytes, more than the limit of 1,000,000"):
        load(str(path))


def test_a_long_text_that_a_parquet_file_repeats_is_held_once(tmp_path):
    path = tmp_path / "t.parquet"
    long = pa.array(["x" * 10**5]).dictionary_encode()
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_000, np.int32)), long.dictionary)
    pq.write_table(pa.table({"notes": column, "a": np.arange(2_000) % 7, "y": np.arange(2_000) % 2}), path, store_schema=False)
    assert path.stat().st_size < 10**6  # 200 million, if every row held its own
    notes = read_table(path)["notes"]
    assert len({id(cell) for cell in notes.tolist()}) == 1
    assert load(str(path), drop=["notes"]).shape == (1,)


def test_nested_columns_of_a_parquet_file_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [[1, 2], [3]], "y": [0, 1]}), path)
    with pytest.raises(DataError, match="column 'a' must hold one value a cell, got list"):
        load(str(path))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_a_table_of_a_hundred_thousand_columns_is_refused_before_it_is_parsed(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"wide{suffix}"
    separator = "\t" if suffix == ".tsv" else ","
    text = separator.join(f"c{i}" for i in range(100_000)) + "\n" + separator.join("1" * 100_000) + "\n"
    if suffix == ".parquet":
        pq.write_table(pa.table([pa.array([1])] * 10_001, names=[f"c{i}" for i in range(10_001)]), path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if suffix == ".csv.gz" else text.encode())
    monkeypatch.setattr("pandas.read_csv", lambda *_, **__: pytest.fail("it was parsed"))
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.read", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"has 10+,?00[01] columns, more than the limit of 10,000: set PLURIBUS_MAX_COLUMNS"):
        load(str(path))


def test_a_row_of_too_many_encoded_numbers_is_refused(monkeypatch):
    monkeypatch.setenv("PLURIBUS_MAX_FEATURES", "5")
    frame = pd.DataFrame({"a": ["x", "y", "z"], "b": ["x", "y", "z"]})
    with pytest.raises(DataError, match="the encoded table has 6 numbers a row, more than the limit of 5"):
        Columns.fit(frame)


def test_encoded_rows_that_need_too_much_memory_are_refused(small):
    columns = Columns.fit(pd.DataFrame({"a": [0.0, 1.0, 2.0]}))
    with pytest.raises(DataError, match="300,000 encoded rows of 1 numbers need 1,200,000 bytes, more than the limit"):
        columns.encode(pd.DataFrame({"a": np.zeros(300_000)}))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"a": ["x" * 5000, "z"] * 10, "y": [0, 1] * 10},
            r"column 'a' \(which drop=\[…\] leaves out\) has a text of 5,000 char",
        ),
        ({"a": range(20), "y": ["x" * 5000, "z"] * 10}, "the target 'y' has a label of 5,000 characters"),
        ({"a" * 5000: range(20), "y": [0, 1] * 10}, "has the name of a column with 5,000 characters"),
    ],
)
def test_long_texts_are_no_labels_categories_or_names(tmp_path, columns, said):
    path = tmp_path / "t.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    with pytest.raises(DataError, match=f"{said}.* more than the limit of 1,000: set PLURIBUS_MAX_TEXT"):
        load(str(path))


def test_messages_do_not_repeat_long_cells(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": range(20), "y": [0, 1] * 10}).to_csv(path, index=False)
    data = load(str(path))
    with pytest.raises(DataError) as told:
        data.preparation.encode(pd.DataFrame({"a": ["long " * 100_000]}))
    assert len(str(told.value)) < 300
