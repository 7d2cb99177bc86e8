"""NumPy archives."""

import numpy as np
import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import load

Y = np.arange(20) % 4


def archive(path, **arrays):
    file = path / "data.npz"
    np.savez(file, **arrays)
    return str(file)


def bytes_of(*shape):
    return np.random.RandomState(0).randint(0, 256, shape, np.uint8)


def test_rows_come_back_as_they_were_written(tmp_path):
    x = np.random.RandomState(0).randn(20, 3).astype(np.float32)
    data = load(archive(tmp_path, x=x, y=Y), test=0)
    assert np.array_equal(data.train.x, x)
    assert np.array_equal(data.train.y, Y)
    assert data.classes == ("0", "1", "2", "3")
    assert len(load(archive(tmp_path, x=x, y=Y)).test) == 4


@pytest.mark.parametrize("layout", ["channels last", "channels first", "gray"])
def test_images_may_be_laid_out_in_any_way(tmp_path, layout):
    x = bytes_of(20, 3, 5, 6)
    stored = {"channels last": x.transpose(0, 2, 3, 1), "channels first": x, "gray": x[:, 0]}[layout]
    data = load(archive(tmp_path, x=stored, y=Y), test=0)
    assert np.array_equal(data.train.x, x[:, :1] if layout == "gray" else x)
    assert data.has_images


def test_a_file_may_have_its_own_test_rows(tmp_path):
    x = np.eye(20)
    data = load(archive(tmp_path, x_train=x[:15], y_train=Y[:15], x_test=x[15:], y_test=Y[15:]))
    assert (len(data.train), len(data.test)) == (15, 5)
    assert np.array_equal(data.test.x, x[15:])


def test_real_targets_are_a_regression(tmp_path):
    data = load(archive(tmp_path, x=np.eye(20), y=np.arange(20) / 2), test=0)
    assert data.task == "regression"
    assert data.preparation.target == pytest.approx((4.75, np.std(np.arange(20) / 2)))


def test_street_numbers_call_ten_zero(tmp_path):
    (tmp_path / "svhn").mkdir()
    np.savez(tmp_path / "svhn" / "my_test_part.npz", x=bytes_of(10, 32, 32, 3), y=np.arange(1, 11)[:, None])
    data = load("svhn", tmp_path)
    assert data.test.y.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert (len(data.train), data.shape) == (0, (3, 32, 32))
    np.savez(tmp_path / "svhn" / "train.npz", x=bytes_of(20, 32, 32, 3), y=np.arange(20) % 10)
    assert len(load("svhn", tmp_path).train) == 20


def test_two_files_for_one_part_are_ambiguous(tmp_path):
    (tmp_path / "svhn").mkdir()
    for name in ("test_a", "test_b"):
        np.savez(tmp_path / "svhn" / f"{name}.npz", x=bytes_of(10, 32, 32, 3), y=np.arange(10))
    with pytest.raises(DataError, match=r"must be one file, found test_a\.npz, test_b\.npz"):
        load("svhn", tmp_path)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.eye(20)}, "must hold x and y, or x_train, y_train, x_test and y_test, got x"),
        ({"x": np.eye(20), "y": Y[:5]}, "a target for each input, got 20 in x and 5 in y"),
        ({"x": np.eye(20), "y": Y - 1}, "labels must count the classes from 0, got -1 to 2"),
        ({"x": np.eye(20), "y": Y * 10**6}, "labels must count the classes from 0"),
        ({"x": np.full((20, 2), np.nan), "y": Y}, "NaN or infinity"),
        ({"x": np.zeros((20, 4, 4, 3)), "y": Y}, "images as bytes"),
        ({"x": bytes_of(20, 4, 4, 2), "y": Y}, "1 or 3 channels"),
        ({"x": np.eye(20), "y": np.eye(20)}, "targets must be one number a row"),
        ({"x": np.eye(20), "y": np.array(["a"] * 20)}, "targets must be one number a row"),
        ({"x": np.eye(20), "y": np.array([{}] * 20, object)}, "no archive of plain arrays"),
        ({"x_train": np.eye(20), "y_train": Y, "x_test": np.eye(5), "y_test": Y[:5]}, "must be alike"),
        ({"x": np.zeros((0, 3)), "y": np.zeros(0, int)}, "holds no rows"),
    ],
)
def test_what_is_no_data_set_is_named(tmp_path, arrays, said):
    with pytest.raises(DataError, match=said):
        load(archive(tmp_path, **arrays))


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\x03\x04nothing"])
def test_a_damaged_archive_is_named(tmp_path, content):
    path = tmp_path / "data.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data\.npz is no archive of plain arrays"):
        load(str(path))


def test_a_single_array_is_no_archive(tmp_path):
    path = tmp_path / "data.npz"
    with open(path, "wb") as file:
        np.save(file, np.eye(3))
    with pytest.raises(DataError, match="no archive of plain arrays"):
        load(str(path))


def test_a_real_part_of_the_street_numbers_is_a_test_set(real):
    if not (real / "svhn").is_dir():
        pytest.skip("svhn is not in the data folder")
    data = load("svhn", real)
    assert data.test.x.dtype == torch.uint8
    assert data.outputs == 10
