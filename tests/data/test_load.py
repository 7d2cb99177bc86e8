"""Data by name and by path, and what is said when there is none."""

import hashlib
import inspect
import sys
from pathlib import Path

import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import Data, Part, Pixels, Preparation, digits, find_data_folder, image_folder, load, table
from pluribus.data.catalog import SETS
from pluribus.data.split import split_rows


def test_digits_have_the_same_balanced_split_everywhere():
    data = load("digits")
    assert (len(data.train), len(data.test), data.shape, data.outputs) == (1297, 500, (1, 8, 8), 10)
    counts = torch.bincount(torch.cat([data.train.y, data.test.y])) * 500 / 1797
    assert ((torch.bincount(data.test.y) - counts).abs() < 1).all()
    digest = hashlib.md5(data.test.y.numpy().astype("uint8").tobytes()).hexdigest()
    assert digest == "0b77c9539b508ab3ddc4c00b8780ba57"


def test_digits_are_bytes_of_the_full_range():
    from sklearn.datasets import load_digits

    data = load("digits")
    assert data.train.x.dtype == torch.uint8
    assert int(data.train.x.max()) == 255
    total = int(data.train.x.sum()) + int(data.test.x.sum())
    assert total == pytest.approx(load_digits().images.sum() * 255 / 16, rel=1e-3)


def test_prepared_pixels_are_centred_and_of_unit_spread():
    data = load("digits")
    x = data.preparation(data.train.x)
    assert isinstance(data.preparation, Pixels)
    assert data.preparation.target == (0.0, 1.0)
    assert x.mean() == pytest.approx(0, abs=1e-4)
    assert x.std() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("name", SETS)
def test_a_known_set_is_embedded_or_says_what_is_missing_and_the_cure(name, tmp_path):
    known = SETS[name]
    if known.find_state(tmp_path) == "embedded":
        data = load(name, tmp_path)
        assert (len(data.train), len(data.test), data.shape) == (known.train, known.test, known.shape)
        assert (data.task, len(data.classes)) == (known.task, known.classes)
        return
    assert known.find_state(tmp_path) == "missing"
    with pytest.raises(DataError) as told:
        load(name, tmp_path)
    cure = f"pluribus data get {name}" if known.is_downloadable else "by hand"
    for part in (name, str(tmp_path), known.forms[0][0].path, cure, "--data-dir"):
        assert part in str(told.value)


@pytest.mark.parametrize("name", SETS)
def test_the_catalog_names_the_options_that_its_openers_take(name):
    takes = {n for n, p in inspect.signature(SETS[name].reader).parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert takes == set(SETS[name].options)


def test_formats_name_the_options_that_they_take():
    takes = {
        n
        for f in (table.read, table.build_data)
        for n, p in inspect.signature(f).parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }
    assert takes == set(table.OPTIONS)
    takes = {n for n, p in inspect.signature(image_folder.read).parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert takes == set(image_folder.OPTIONS)


def test_an_unknown_name_brings_the_nearest_one():
    with pytest.raises(DataError, match="did you mean 'mnist'"):
        load("minst")
    for name in ("", "nonsense"):
        with pytest.raises(DataError, match=r"choose one of blundell, cifar10, .* or give the path of"):
            load(name)


def test_a_path_that_is_not_there_is_called_that():
    with pytest.raises(DataError, match=r"there is no file or folder \./nothing\.csv"):
        load("./nothing.csv")


def test_a_file_of_no_known_kind_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(DataError, match=r"must end in \.csv"):
        load(str(path))


def test_an_unknown_option_brings_those_that_there_are():
    with pytest.raises(DataError, match="no option 'size': it has none"):
        load("digits", size=3)
    with pytest.raises(DataError, match="no option 'row': its options are rows, test, seed"):
        load("four-gaussians", row=3)


def test_the_data_folder_is_the_one_given_else_the_environments_else_the_cache(monkeypatch):
    monkeypatch.setenv("PLURIBUS_DATA", "there")
    assert find_data_folder("here") == Path("here")
    assert find_data_folder() == Path("there")
    monkeypatch.delenv("PLURIBUS_DATA")
    assert find_data_folder() == Path.home() / ".cache" / "pluribus" / "data"


def test_a_library_that_is_missing_is_named_with_its_cure(monkeypatch):
    digits.read_every.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        load("digits")


def test_rows_set_aside_are_in_proportion_and_leave_every_class_one():
    labels = torch.tensor([0] * 10 + [1] * 20 + [2])
    keep, others = split_rows(10, 31, seed=3, labels=labels)
    assert sorted([*keep.tolist(), *others.tolist()]) == list(range(31))
    assert torch.bincount(labels[others], minlength=3).tolist() == [3, 7, 0]
    assert not torch.equal(others, split_rows(10, 31, seed=4, labels=labels)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_real_sets_load_as_the_catalog_says(name, real):
    known = SETS[name]
    state = known.find_state(real)
    if state == "missing":
        pytest.skip(f"{name} is not in the data folder")
    data = load(name, real)
    assert (data.shape, data.task, len(data.classes)) == (known.shape, known.task, known.classes)
    if name != "svhn":  # a part of it will do
        assert len(data.test) == known.test
        assert len(data.train) == (0 if state == "test only" else known.train)


@pytest.mark.parametrize("name", ["uci-yacht", "uci-energy"])
def test_a_uci_table_has_ten_splits(name, real):
    if SETS[name].find_state(real) == "missing":
        pytest.skip(f"{name} is not in the data folder")
    rows = len(load(name, real).train) + len(load(name, real).test)
    tested = [load(name, real, split=s).test for s in range(10)]
    assert sum(len(part) for part in tested) == rows  # every row is for the test once
    with pytest.raises(DataError, match="split must be from 0 to 9, got 10"):
        load(name, real, split=10)


def test_validation_rows_are_set_aside_by_class_and_no_class_gives_its_last_row_away():
    y = torch.tensor([0] * 20 + [1] * 10 + [2])
    every = Part(torch.arange(31.0).unsqueeze(1), y)
    data = Data("three", every, every.take_rows(y[:0]), Preparation(), ("a", "b", "c"))
    kept, others = data.split(0.6, seed=0)
    assert torch.bincount(kept.y, minlength=3).tolist() == [8, 4, 1]
    assert torch.bincount(others.y, minlength=3).tolist() == [12, 6, 0]
    assert torch.cat([kept.x, others.x]).flatten().sort().values.tolist() == list(range(31))
    assert not torch.equal(data.split(0.6, seed=1)[0].x, kept.x)
