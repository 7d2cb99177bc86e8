"""Image folders as they are found on disks: nested, linked, hidden, unreadable, too large."""

import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from pluribus.core.errors import DataError
from pluribus.data import Pixels, load
from pluribus.runs.prediction import read_rows


def picture(path, size=(4, 6)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((*size, 3), 7, np.uint8)).save(path)
    return path


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for name in ("cat", "dog"):
        for i in range(3):
            picture(folder / name / f"{i}.png")
    return folder


def test_images_in_nested_folders_are_read(photos):
    picture(photos / "cat" / "2024" / "may" / "3.png")
    picture(photos / "dog" / "0a" / "0.png")
    data = load(str(photos), test=0)
    assert data.train.y.tolist() == [0] * 4 + [1] * 4


def test_links_are_read_once_and_a_circle_ends(photos):
    (photos / "cat" / "linked.png").symlink_to(photos / "cat" / "0.png")
    (photos / "cat" / "again").symlink_to(photos / "cat", target_is_directory=True)
    assert load(str(photos), test=0).train.y.tolist() == [0] * 4 + [1] * 3


@pytest.mark.parametrize("name", ["cat/9.png", "dog/nested/9.jpg"])
def test_a_link_to_nothing_is_named(photos, name):
    (photos / name).parent.mkdir(exist_ok=True)
    (photos / name).symlink_to(photos / "moved.png")
    with pytest.raises(DataError, match=rf"{name} is a link to a file that is not there: repair it or remove it"):
        load(str(photos))


def test_a_pipe_is_no_image(photos):
    os.mkfifo(photos / "cat" / "9.png")
    with pytest.raises(DataError, match=r"9\.png is no file"):
        load(str(photos))


def test_hidden_names_are_ignored_and_other_files_counted(photos):
    (photos / "cat" / "._0.png").write_bytes(b"a record of the system")
    (photos / ".cache").mkdir()
    (photos / "cat" / "notes.txt").write_text("mine")
    (photos / "readme.md").write_text("mine")
    data = load(str(photos), test=0)
    assert (len(data.train), data.classes) == (6, ("cat", "dog"))
    assert data.facts == {"files that are no images of a class, so not read": 2}


def test_images_beside_the_classes_are_warned_of(photos):
    picture(photos / "9.png")
    with pytest.warns(UserWarning, match="1 images lie beside the folders of the classes, and are not read"):
        assert len(load(str(photos), test=0).train) == 6


def test_folders_beside_those_for_training_and_test_are_told(tmp_path):
    for name in ("train/a", "train/b", "test/a", "test/b", "extra/a"):
        picture(tmp_path / name / "0.png")
    assert load(str(tmp_path)).facts == {"folders that were not read": ["extra"]}


def test_the_name_of_a_class_must_be_utf8(photos):
    os.rename(photos / "dog", os.fsencode(photos) + b"/d\xf6g")
    with pytest.raises(DataError, match=r"must be text in UTF-8, got the folder .*d\\xf6g: rename it") as told:
        load(str(photos))
    str(told.value).encode()


def test_the_name_of_data_must_be_utf8(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/d\xf6g.csv")
    with pytest.raises(DataError, match=r"the name of data must be text in UTF-8, got b'.*d\\xf6g\.csv'"):
        load(path)


def test_a_broken_image_whose_name_is_no_utf8_can_be_named(photos):
    with open(os.fsencode(photos) + b"/cat/\xf6.png", "wb") as file:
        file.write(b"no image")
    with pytest.raises(DataError, match=r"\\xf6\.png cannot be read as an image") as told:
        load(str(photos))
    str(told.value).encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is readable for the superuser")
@pytest.mark.parametrize("name", ["cat", "cat/0.png"])
def test_what_may_not_be_read_is_named(photos, name):
    (photos / name).chmod(0)
    try:
        with pytest.raises(DataError, match=f"{name} cannot be read"):
            load(str(photos))
    finally:
        (photos / name).chmod(0o755)


def png_bomb(path, width, height):
    """A PNG of one colour: a few kilobytes that unfold to width × height pixels."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    pixels = zlib.compress(bytes((width + 1) * min(height, 100)), 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
    return path


@pytest.mark.parametrize("side", [12_000, 60_000])
@pytest.mark.filterwarnings("error")
def test_an_image_with_too_many_pixels_is_refused_by_its_header(photos, side):
    bomb = png_bomb(photos / "cat" / "9.png", side, side)
    for read in (lambda: load(str(photos), size=4), lambda: read_rows(bomb, Pixels(), (1, 4, 4))):
        with pytest.raises(
            DataError, match=rf"9\.png has {side**2:,} pixels, more than the limit of 100,000,000: set PLURIBUS_MAX"
        ):
            read()


def test_the_limit_of_pixels_can_be_set(photos, monkeypatch):
    monkeypatch.setenv("PLURIBUS_MAX_PIXELS", "23")
    with pytest.raises(DataError, match="has 24 pixels, more than the limit of 23"):
        load(str(photos))
    monkeypatch.setenv("PLURIBUS_MAX_PIXELS", "24")
    assert len(load(str(photos), test=0).train) == 6


def test_images_that_need_too_much_memory_together_are_refused(photos):
    with pytest.raises(DataError, match="6 images of 100,000 × 100,000 need 180,000,000,000 bytes, more than the limit"):
        load(str(photos), size=100_000)


def test_a_file_is_read_only_as_one_of_the_formats_of_images(photos):
    """Pillow would start Ghostscript for this one."""
    (photos / "cat" / "9.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 6 4\n%%EndComments\nshowpage\n")
    with pytest.raises(DataError, match=r"9\.png cannot be read as an image"):
        load(str(photos))
