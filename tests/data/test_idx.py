"""Idx files: what was written is read, and damage is named."""

import gzip
import struct

import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import load
from pluribus.data.catalog import SETS


def idx(array):
    shape = tuple(array.shape)
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + array.numpy().tobytes()


def images(count):
    return torch.randint(0, 256, (count, 28, 28), dtype=torch.uint8)


def labels(count):
    return (torch.arange(count) % 10).to(torch.uint8)


@pytest.fixture
def written(tmp_path):
    """A small MNIST, by file; call it to write the files, zipped or not."""
    arrays = {
        "train-images-idx3-ubyte": images(20),
        "train-labels-idx1-ubyte": labels(20),
        "t10k-images-idx3-ubyte": images(10),
        "t10k-labels-idx1-ubyte": labels(10),
    }
    (tmp_path / "mnist").mkdir()

    def write(zipped=False, **changes):
        for name, array in arrays.items():
            data = idx(array)
            if name[:7].replace("-", "_") in changes:
                data = changes[name[:7].replace("-", "_")](data)
            if data is not None:
                path = tmp_path / "mnist" / (name + ".gz" if zipped else name)
                path.write_bytes(gzip.compress(data) if zipped else data)
        return tmp_path

    write.arrays = arrays
    return write


@pytest.mark.parametrize("zipped", [False, True])
def test_what_was_written_is_read(written, zipped):
    data = load("mnist", written(zipped))
    assert torch.equal(data.train.x[:, 0], written.arrays["train-images-idx3-ubyte"])
    assert torch.equal(data.train.y, written.arrays["train-labels-idx1-ubyte"].long())
    assert torch.equal(data.test.x[:, 0], written.arrays["t10k-images-idx3-ubyte"])
    assert data.train.x.dtype == torch.uint8
    assert data.classes == tuple("0123456789")


def test_a_file_called_gz_that_is_not_zipped_is_read_all_the_same(written, tmp_path):
    written()
    for path in list((tmp_path / "mnist").iterdir()):
        path.rename(path.with_name(path.name + ".gz"))
    assert len(load("mnist", tmp_path).train) == 20


def test_a_set_may_have_test_files_only(written, tmp_path):
    written()
    for path in (tmp_path / "mnist").glob("train*"):
        path.unlink()
    data = load("mnist", tmp_path)
    assert (len(data.train), len(data.test), data.shape) == (0, 10, (1, 28, 28))
    assert SETS["mnist"].find_state(tmp_path) == "test only"


def test_a_single_file_that_is_missing_is_named(written, tmp_path):
    written()
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").unlink()
    assert SETS["mnist"].find_state(tmp_path) == "missing"
    with pytest.raises(DataError, match="mnist/train-labels-idx1-ubyte is missing"):
        load("mnist", tmp_path)


def test_swapped_files_are_recognised(written, tmp_path):
    written()
    one, two = (tmp_path / "mnist" / f"train-{what}-ubyte" for what in ("images-idx3", "labels-idx1"))
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    with pytest.raises(DataError, match=r"must hold images, 3 axes, but it holds labels; are two files swapped\?"):
        load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-1], "promises 20 × 28 × 28 bytes, but holds 15679"),
        (lambda data: data + b"\0", "promises 20 × 28 × 28 bytes, but holds 15681"),
        (lambda data: data[:9], "cut off within its first 16 bytes"),
        (lambda data: b"", "is no idx file"),
        (lambda data: b"\1" + data[1:], "must begin with 0, 0, 8"),
        (lambda data: data[:3] + b"\5" + data[4:], "must hold images, 3 axes, but it has 5 axes"),
        (lambda data: idx(images(19)), "holds 19 images, and train-labels-idx1-ubyte 20 labels"),
    ],
)
def test_damage_is_named(written, damage, said):
    folder = written(train_i=damage)
    with pytest.raises(DataError, match=said):
        load("mnist", folder)


def test_a_damaged_zip_is_named(written, tmp_path):
    written(zipped=True)
    path = tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz is damaged, it cannot be unzipped"):
        load("mnist", tmp_path)


def test_labels_out_of_range_are_named(written):
    with pytest.raises(DataError, match="labels must be from 0 to 9, got 77"):
        load("mnist", written(train_l=lambda data: data[:-1] + bytes([77])))
