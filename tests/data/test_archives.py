"""NumPy archives that do not hold what they say."""

import io
import zipfile

import numpy as np
import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import Pixels, Preparation, load
from pluribus.runs.prediction import read_rows

Y = np.arange(20) % 2


def archive(folder, **arrays):
    path = folder / "data.npz"
    np.savez_compressed(path, **arrays)
    return path


def header(shape, descr="<f8"):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zip_files(folder, members, method=zipfile.ZIP_DEFLATED):
    path = folder / "data.npz"
    with zipfile.ZipFile(path, "w", method) as out:
        for name, content in members.items():
            out.writestr(f"{name}.npy", content)
    return path


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_an_archive_that_unfolds_beyond_the_limit_is_refused_unread(tmp_path, monkeypatch):
    path = archive(tmp_path, x=np.zeros((20, 10_000)), y=Y)
    assert path.stat().st_size < 10_000
    monkeypatch.setenv("PLURIBUS_MAX_BYTES", "1000000")
    monkeypatch.setattr("numpy.lib.format.read_array", lambda *_, **__: pytest.fail("it was read"))
    for read in (lambda: load(str(path)), lambda: read_rows(path, Preparation(), (10_000,))):
        with pytest.raises(
            DataError, match=r"unfolds to 1,600,\d+ bytes, more than the limit of 1,000,000: set PLURIBUS_MAX_BYTES"
        ):
            read()


@pytest.mark.parametrize("shape", [(10**12,), (10**9, 10**9), (4, -1), (0, 10**18, 10**18), (3,)])
def test_a_header_that_promises_other_bytes_than_there_are_is_refused(tmp_path, shape):
    path = zip_files(tmp_path, {"x": header(shape) + bytes(16), "y": npy(Y)})
    for read in (lambda: load(str(path)), lambda: read_rows(path, Preparation(), (4,))):
        with pytest.raises(DataError, match=r"data\.npz (is damaged|is no archive)"):
            read()


def test_other_compressions_than_those_of_numpy_are_refused(tmp_path):
    path = zip_files(tmp_path, {"x": npy(np.eye(20)), "y": npy(Y)}, zipfile.ZIP_BZIP2)
    with pytest.raises(DataError, match=r"data\.npz is no archive of plain arrays"):
        load(str(path))


@pytest.mark.parametrize("value", [np.array([{}] * 20, object), np.array([("a", {})] * 20, [("n", "U1"), ("o", object)])])
def test_python_objects_are_never_loaded(tmp_path, value):
    with pytest.raises(DataError, match="x holds Python objects, which are never loaded"):
        load(str(archive(tmp_path, x=value, y=Y)))
    with pytest.raises(DataError, match="x holds Python objects, which are never loaded"):
        read_rows(archive(tmp_path, x=value), Preparation(), (1,))


def test_objects_beside_the_rows_to_predict_are_left_alone(tmp_path):
    rows = read_rows(archive(tmp_path, x=np.eye(3), names=np.array([{}] * 3, object)), Preparation(), (3,))
    assert torch.equal(rows, torch.eye(3))


@pytest.mark.parametrize("kind", [np.float16, np.longdouble, ">f8", ">i4", np.uint16, np.uint64, bool])
def test_numbers_of_any_type_are_read_alike(tmp_path, kind):
    x = np.asfortranarray((np.arange(60).reshape(20, 3) % 2).astype(kind))
    path = archive(tmp_path, x=x, y=Y.astype(kind) if np.dtype(kind).kind != "f" else Y)
    data = load(str(path), test=0)
    assert data.train.x.dtype == torch.float
    assert np.array_equal(data.train.x, x.astype(np.float32))
    assert torch.equal(read_rows(path, data.preparation, data.shape), data.train.x)


@pytest.mark.parametrize("kind", ["c16", "M8[s]", "U3", "V4"])
def test_what_are_no_numbers_is_refused(tmp_path, kind):
    path = archive(tmp_path, x=np.zeros((20, 3), kind), y=Y)
    with pytest.raises(DataError, match="inputs must be images as bytes"):
        load(str(path))
    with pytest.raises(DataError, match="must hold numbers"):
        read_rows(path, Preparation(), (3,))


@pytest.mark.parametrize("shape", [(0, 3), (20, 0), (0,), ()])
def test_an_archive_without_rows_is_refused(tmp_path, shape):
    path = archive(tmp_path, x=np.zeros(shape), y=Y[: shape[0] if shape else 1])
    with pytest.raises(DataError, match=r"no rows|inputs must be"):
        load(str(path))
    with pytest.raises(DataError, match=r"holds no rows|rows of .* must be of 3"):
        read_rows(path, Preparation(), (3,))


def test_images_without_rows_are_refused(tmp_path):
    path = archive(tmp_path, x=np.zeros((0, 8, 8), np.uint8))
    with pytest.raises(DataError, match="holds no rows"):
        read_rows(path, Pixels(), (1, 8, 8))


@pytest.mark.parametrize(
    ("value", "said"),
    [(np.nan, "NaN or infinity, nan"), (np.inf, "NaN or infinity, inf"), (1e39, "beyond single precision, 1e\\+39")],
)
def test_a_number_that_single_precision_cannot_hold_is_named(tmp_path, value, said):
    x = np.eye(20)
    x[4, 2] = value
    path = archive(tmp_path, x=x, y=Y)
    for read in (lambda: load(str(path)), lambda: read_rows(path, Preparation(), (20,))):
        with pytest.raises(DataError, match=f"{said} in row 5, column 3"):
            read()


def test_rows_that_differ_beyond_single_precision_are_refused_in_training(tmp_path):
    x = np.stack([np.arange(20.0), 1.7e9 + np.arange(20.0)], 1)
    with pytest.raises(
        DataError, match=r"column 2 of x differs between rows, but not in single precision .*: subtract its mean"
    ):
        load(str(archive(tmp_path, x=x, y=Y)))


def test_labels_of_one_class_are_refused(tmp_path):
    with pytest.raises(DataError, match="labels must be of at least two classes, got '0' alone"):
        load(str(archive(tmp_path, x=np.eye(20), y=np.zeros(20, int))))
