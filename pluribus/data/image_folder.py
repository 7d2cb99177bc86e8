"""Image folders: one folder a class, or such folders inside train/ and test/ (or val/)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from .dataset import Data, Part, take_no_rows
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
    train, tested = _find_images(path)
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
    facts = {} if size is None else {"resized to": f"{height} × {width}"}
    return Data(path.resolve().name, kept, others, Pixels.fit(kept.x), classes, str(path), facts)


def _find_images(path: Path) -> tuple[dict[str, list[Path]], dict[str, list[Path]]]:
    """Class → images, for training and for the test."""
    inside = {folder.name: folder for folder in _list_folders(path)}
    if "train" in inside and _list_folders(inside["train"]):  # else it is a class called train
        test = next((inside[name] for name in ("test", "val", "valid", "validation") if name in inside), None)
        return _list_classes(inside["train"]), _list_classes(test) if test else {}
    return _list_classes(path), {}


def _list_folders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _list_classes(path: Path) -> dict[str, list[Path]]:
    found = {}
    for folder in _list_folders(path):
        images = sorted(entry for entry in folder.iterdir() if entry.suffix.lower() in SUFFIXES and entry.is_file())
        if not images:
            raise DataError(f"{folder} holds no images ({', '.join(SUFFIXES)}): fill it or remove it, it counts as a class")
        found[folder.name] = images
    if len(found) < 2:
        raise DataError(f"{path} must hold a folder of images for each class, at least two, got {len(found)}")
    return found


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
        turned = image.format in PHOTOGRAPHS and image.getexif().get(0x0112, 1) >= 5
        return ((width, height) if turned else (height, width)), image.mode


def decode(paths: list[Path], height: int, width: int, channels: int) -> Tensor:
    """Read images upright and in one size → bytes `[N, C, H, W]`. Raises: DataError if one cannot be read."""
    pixels = np.empty((len(paths), height, width, channels), np.uint8)
    for row, path in zip(pixels, paths, strict=True):
        with _open(path) as image:
            from PIL import ImageOps

            try:
                upright = ImageOps.exif_transpose(image) if image.format in PHOTOGRAPHS else image
                upright = upright.convert("L" if channels == 1 else "RGB")
                if upright.size != (width, height):
                    upright = upright.resize((width, height))
            except (OSError, SyntaxError, ValueError, EOFError) as error:
                raise _describe_broken(path, error) from error
            row[:] = np.asarray(upright).reshape(height, width, channels)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def _open(path: Path) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading images needs pillow: pip install pillow") from error
    try:
        image = Image.open(path, formats=FORMATS)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _describe_broken(path, error) from error
    if image.mode in DEEP:
        raise DataError(f"{path} has more than 8 bits a pixel ({image.mode}): save it with 8")
    return image


def _describe_broken(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} cannot be read as an image ({error}): repair it or remove it")
