"""Image folders: one folder a class, or such folders inside train/ and test/ (or val/).

Images of a class may lie in folders of any depth below it. Files and folders whose names begin with a dot are ignored on
purpose: systems keep their own records there. What else is not read is counted among the facts of the data; what looks like an
image and cannot be read is an error.
"""

import io
import math
import os
import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from .dataset import Data, Part, take_no_rows
from .limits import BYTES, PIXELS
from .preparation import Pixels
from .split import check_share, split_rows

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")

OPTIONS = {
    "size": "bring all images to this size: one number, or height and width (default: the size that all have)",
    "channels": "1 or 3 (default: 1 if all images are gray)",
    "test": "the share of the images held out for the test where there is no test folder (default: 0.2)",
    "seed": "which images those are (default: 0)",
}

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""The content of these is decoded by pillow alone; for other formats, as EPS, it would start another program."""
GRAY = ("1", "L", "LA")
PHOTOGRAPHS = ("JPEG", "MPO", "TIFF", "WEBP")  # in these, cameras record which way is up
DEEP = ("I", "F", "I;16", "I;16B", "I;16L")  # pillow would clip these instead of scaling them

Header = tuple[tuple[int, int], str]
"""Height and width as seen upright, and pillow's mode."""


class ImageBytes(io.BytesIO):
    """The bytes of an image that is in no file, and a `name` for messages."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def read(
    path: Path,
    *,
    size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    test: float = 0.2,
    seed: int = 0,
) -> Data:
    """Read the images of a folder; `OPTIONS` says what the options mean.

    Raises: DataError if there are not two classes, if images differ in size and no size is set, or if one cannot be read.
    """
    held = check_share("test", test)
    if channels not in (None, 1, 3):
        raise DataError(f"channels must be 1 or 3, got {channels!r}")
    train, tested, facts = _find_images(path)
    classes = tuple(train)
    unknown = [name for name in tested if name not in train]
    if unknown:
        raise DataError(f"{path}: the test folder has the class {unknown[0]!r}, which the training folder has not")
    headers = {image: _read_header(image) for folder in (train, tested) for images in folder.values() for image in images}
    height, width = _choose_size(path, headers, size)
    if channels is None:
        channels = 1 if all(mode in GRAY for _, mode in headers.values()) else 3

    def part(folder: dict[str, list[Path]]) -> Part:
        images = [image for paths in folder.values() for image in paths]
        labels = [classes.index(name) for name, paths in folder.items() for _ in paths]
        return Part(decode(images, height, width, channels), torch.tensor(labels, dtype=torch.long))

    every = part(train)
    if tested:
        kept, others = every, part(tested)
    else:
        keep, held_out = split_rows(round(len(every) * held), len(every), seed, every.y)
        kept, others = every.take_rows(keep), every.take_rows(held_out) if held else take_no_rows(every)
    if size is not None:
        facts["resized to"] = f"{height} × {width}"
    return Data(path.resolve().name, kept, others, Pixels.fit(kept.x), classes, str(path), facts)


Images = dict[str, list[Path]]
"""Class → its images."""


def _find_images(path: Path) -> tuple[Images, Images, dict[str, Any]]:
    """The images for training and for the test, and what was not read."""
    inside = {folder.name: folder for folder in _list_folders(path)}
    others: list[Path] = []
    if "train" in inside and _list_folders(inside["train"]):  # else it is a class called train
        test = next((inside[name] for name in ("test", "val", "valid", "validation") if name in inside), None)
        train, tested = _list_classes(inside["train"], others), _list_classes(test, others) if test else {}
        unread = [name for name, folder in inside.items() if folder not in (inside["train"], test)]
    else:
        train, tested, unread = _list_classes(path, others), {}, []
    facts: dict[str, Any] = {"folders that were not read": unread} if unread else {}
    if others:
        facts["files that are no images of a class, so not read"] = len(others)
    return train, tested, facts


def _list_entries(path: Path) -> list[Path]:
    """What a folder holds, without hidden names, in a fixed order. Raises: DataError if it cannot be read."""
    try:
        return sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"the folder {show_path(path)} cannot be read: {error.strerror}") from error


def _list_folders(path: Path) -> list[Path]:
    return [entry for entry in _list_entries(path) if entry.is_dir()]


def _list_classes(path: Path, others: list[Path]) -> Images:
    """The images of every class; files that are none are added to `others`."""
    found = {}
    for folder in _list_folders(path):
        if show_path(folder) != str(folder):
            raise DataError(f"the name of a class must be text in UTF-8, got the folder {show_path(folder)}: rename it")
        images = sorted(_walk_images(folder, others, set()))
        if not images:
            raise DataError(f"{folder} holds no images ({', '.join(SUFFIXES)}): fill it or remove it, it counts as a class")
        found[folder.name] = images
    if len(found) < 2:
        raise DataError(f"{path} must hold a folder of images for each class, at least two, got {len(found)}")
    beside = [entry for entry in _list_entries(path) if not entry.is_dir()]
    stray = sum(entry.suffix.lower() in SUFFIXES for entry in beside)
    if stray:
        warnings.warn(f"{path}: {stray} images lie beside the folders of the classes, and are not read", stacklevel=2)
    others += beside
    return found


def _walk_images(folder: Path, others: list[Path], seen: set[str]) -> Iterator[Path]:
    """The images in a folder and in those below it; links that lead back are not followed."""
    place = os.path.realpath(folder)
    if place in seen:
        return
    seen.add(place)
    for entry in _list_entries(folder):
        if entry.is_dir():
            yield from _walk_images(entry, others, seen)
        elif entry.suffix.lower() not in SUFFIXES:
            others.append(entry)
        elif entry.is_file():
            yield entry
        else:
            what = "a link to a file that is not there" if entry.is_symlink() else "no file"
            raise DataError(f"{show_path(entry)} is {what}: repair it or remove it")


def show_path(path: Path | ImageBytes) -> str:
    """A path that can be printed: bytes of its name that are no UTF-8 are written as \\x…"""
    if isinstance(path, ImageBytes):
        return path.name
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _choose_size(path: Path, headers: dict[Path, Header], size: Any) -> tuple[int, int]:
    if size is not None:
        pair = (size, size) if isinstance(size, int) else tuple(size)
        if len(pair) != 2 or not all(isinstance(n, int) and n > 0 for n in pair):
            raise DataError(f"size must be a number of pixels, or height and width, got {size!r}")
        return pair
    sizes = {shape: image for image, (shape, _) in headers.items()}
    if len(sizes) > 1:
        (one, first), (two, second) = list(sizes.items())[:2]
        raise DataError(
            f"{path}: images must have one size, got {one[0]} × {one[1]} ({first.name}) and {two[0]} × {two[1]} "
            f"({second.name}): give size=, as in size={min(one)}"
        )
    return next(iter(sizes))


def _read_header(path: Path) -> Header:
    with _open(path) as image:
        width, height = image.size
        try:
            turned = image.format in PHOTOGRAPHS and int(image.getexif().get(0x0112, 1)) >= 5
        except (OSError, SyntaxError, ValueError, TypeError, EOFError, struct.error) as error:
            raise _describe_broken(path, error) from error
        return ((width, height) if turned else (height, width)), image.mode


def decode(paths: Sequence[Path | ImageBytes], height: int, width: int, channels: int) -> Tensor:
    """Read images upright and in one size → bytes `[N, C, H, W]`. Raises: DataError if one cannot be read."""
    BYTES.check(len(paths) * height * width * channels, f"{len(paths):,} images of {height:,} × {width:,} need")
    pixels = np.empty((len(paths), height, width, channels), np.uint8)
    for row, path in zip(pixels, paths, strict=True):
        with _open(path) as image:
            from PIL import ImageOps

            try:
                upright = ImageOps.exif_transpose(image) if image.format in PHOTOGRAPHS else image
                upright = upright.convert("L" if channels == 1 else "RGB")
                if upright.size != (width, height):
                    upright = upright.resize((width, height))
            except (OSError, SyntaxError, ValueError, TypeError, EOFError, struct.error, MemoryError) as error:
                raise _describe_broken(path, error) from error
            row[:] = np.asarray(upright).reshape(height, width, channels)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def _open(path: Path | ImageBytes) -> Any:
    """Open an image: its header is read, its pixels are not."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading images needs pillow: pip install pillow") from error
    try:
        with _own_limit(Image):
            image = Image.open(path, formats=FORMATS)
    except (OSError, SyntaxError, ValueError) as error:
        raise _describe_broken(path, error) from error
    try:
        PIXELS.check(math.prod(image.size), f"{show_path(path)} has")
        if image.mode in DEEP:
            raise DataError(f"{show_path(path)} has more than 8 bits a pixel ({image.mode}): save it with 8")
    except DataError:
        image.close()
        raise
    return image


@contextmanager
def _own_limit(pillow: Any) -> Iterator[None]:
    """Pillow warns of large images and refuses very large ones by a limit of its own; ours is checked instead."""
    before, pillow.MAX_IMAGE_PIXELS = pillow.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        pillow.MAX_IMAGE_PIXELS = before


def _describe_broken(path: Path | ImageBytes, error: Exception) -> DataError:
    reason = str(error).replace(str(path), show_path(path))
    return DataError(f"{show_path(path)} cannot be read as an image ({reason}): repair it or remove it")
