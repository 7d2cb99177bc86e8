"""CIFAR in both versions: the same rows, and no pickle that runs anything."""

import hashlib
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import load
from pluribus.data.catalog import SETS

NAMES = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]


def rows(classes=10):
    x = torch.randint(0, 256, (classes, 3072), dtype=torch.uint8).numpy()
    return x, np.arange(classes, dtype=np.uint8)


def binary(folder, batches, suffix=".bin"):
    folder.mkdir()
    for name, (x, *labels) in batches.items():
        (folder / f"{name}{suffix}").write_bytes(np.concatenate([*(y[:, None] for y in labels), x], 1).tobytes())


def pickle_batches(folder, contents):
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content, protocol=4))


@pytest.fixture
def published(monkeypatch):
    """Call it to make the checksums of the python files in a folder the published ones."""

    def publish(name, folder):
        known = SETS[name]
        form = tuple(
            replace(file, digests=(f"md5:{hashlib.md5((folder / file.path).read_bytes()).hexdigest()}",))
            for file in known.forms[1]
        )
        monkeypatch.setitem(SETS, name, replace(known, forms=(known.forms[0], form)))

    return publish


def test_the_binary_version_is_read(tmp_path):
    batches = {name: rows() for name in NAMES}
    binary(tmp_path / "cifar-10-batches-bin", batches)
    data = load("cifar10", tmp_path)
    assert (len(data.train), len(data.test), data.facts["format"]) == (50, 10, "binary")
    assert np.array_equal(data.train.x[10:20].reshape(10, -1), batches["data_batch_2"][0])
    assert data.train.y.tolist() == list(range(10)) * 5
    assert data.classes[3] == "cat"


def test_the_first_training_images_are_kept_in_the_order_of_the_files(tmp_path):
    batches = {name: rows() for name in NAMES}
    binary(tmp_path / "cifar-10-batches-bin", batches)
    data = load("cifar10", tmp_path, first=12)
    assert (len(data.train), len(data.test)) == (12, 10)
    assert np.array_equal(data.train.x[10:].reshape(2, -1), batches["data_batch_2"][0][:2])
    for wrong in (0, "many", True):
        with pytest.raises(DataError, match="at least 1"):
            load("cifar10", tmp_path, first=wrong)


def test_the_first_pixels_of_a_record_are_the_red_ones(tmp_path):
    x, y = rows()
    x[:, :1024], x[:, 1024:] = 255, 0
    binary(tmp_path / "cifar-10-batches-bin", dict.fromkeys(NAMES, (x, y)))
    data = load("cifar10", tmp_path)
    assert (data.train.x[:, 0] == 255).all()
    assert (data.train.x[:, 1:] == 0).all()


def test_both_versions_hold_the_same(tmp_path, published):
    batches = {name: rows() for name in NAMES}
    binary(tmp_path / "cifar-10-batches-bin", batches)
    one = load("cifar10", tmp_path)
    pickle_batches(tmp_path / "cifar-10-batches-py", {n: {b"data": x, b"labels": y.tolist()} for n, (x, y) in batches.items()})
    published("cifar10", tmp_path)
    assert load("cifar10", tmp_path).facts["format"] == "binary"
    for name in NAMES:
        (tmp_path / "cifar-10-batches-bin" / f"{name}.bin").unlink()
    two = load("cifar10", tmp_path)
    assert two.facts["format"] == "python"
    for a, b in ((one.train, two.train), (one.test, two.test)):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)


def test_hundred_classes_have_fine_and_coarse_labels_in_both_versions(tmp_path, published):
    x, fine = rows(100)
    coarse = (fine % 20).astype(np.uint8)
    binary(tmp_path / "cifar-100-binary", dict.fromkeys(("train", "test"), (x, coarse, fine)))
    content = {b"data": x, b"fine_labels": fine.tolist(), b"coarse_labels": coarse.tolist()}
    pickle_batches(tmp_path / "cifar-100-python", dict.fromkeys(("train", "test"), content))
    for _ in range(2):
        for name, y, classes in (("cifar100", fine, 100), ("cifar100-coarse", coarse, 20)):
            data = load(name, tmp_path)
            assert len(set(data.classes)) == classes
            assert data.train.y.tolist() == y.tolist()
            assert np.array_equal(data.test.x.reshape(100, -1), x)
        for name in ("cifar100", "cifar100-coarse"):
            published(name, tmp_path)
        for path in (tmp_path / "cifar-100-binary").iterdir():
            path.unlink()


def test_a_test_batch_alone_is_a_test_set(tmp_path):
    binary(tmp_path / "cifar-10-batches-bin", {"test_batch": rows()})
    data = load("cifar10", tmp_path)
    assert (len(data.train), len(data.test)) == (0, 10)


def test_a_record_cut_off_is_named(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    binary(folder, {name: rows() for name in NAMES})
    path = folder / "data_batch_4.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"data_batch_4\.bin must hold records of 3073 bytes, got 30729 bytes"):
        load("cifar10", tmp_path)


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("checksum", ["wrong", "right"])
def test_a_payload_in_a_pickle_is_not_run(tmp_path, published, checksum):
    trap = tmp_path / "sprung"
    x, y = rows()
    content = {b"data": x, b"labels": y.tolist(), b"more": Payload(trap)}
    pickle_batches(tmp_path / "cifar-10-batches-py", dict.fromkeys(NAMES, content))
    if checksum == "right":
        published("cifar10", tmp_path)
    said = "checksum is not the published one: it was not loaded" if checksum == "wrong" else "mkdir, which no array needs"
    with pytest.raises(DataError, match=said):
        load("cifar10", tmp_path)
    assert not trap.exists()
    pickle.loads((tmp_path / "cifar-10-batches-py" / "test_batch").read_bytes())
    assert trap.exists()  # the trap is a real one


def test_a_pickle_of_something_else_is_refused(tmp_path, published):
    pickle_batches(tmp_path / "cifar-10-batches-py", {name: {b"data": [1, 2], b"labels": [0, 1]} for name in NAMES})
    published("cifar10", tmp_path)
    with pytest.raises(DataError, match="must hold rows of 3072 bytes"):
        load("cifar10", tmp_path)


def test_the_names_of_classes_are_in_the_order_of_the_labels():
    fine, coarse = SETS["cifar100"].labels, SETS["cifar100-coarse"].labels
    assert (len(fine), len(coarse)) == (100, 20)
    assert list(fine) == sorted(fine)
    assert (fine[0], fine[47], fine[99], coarse[0], coarse[14]) == ("apple", "maple_tree", "worm", "aquatic_mammals", "people")


def test_a_file_is_read_once_between_checking_and_opening(tmp_path, published, monkeypatch):
    """Else it could be exchanged in between."""
    x, y = rows()
    pickle_batches(tmp_path / "cifar-10-batches-py", {name: {b"data": x, b"labels": y.tolist()} for name in NAMES})
    published("cifar10", tmp_path)
    read, real = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or real(path))
    load("cifar10", tmp_path)
    assert sorted(read) == sorted(NAMES)
