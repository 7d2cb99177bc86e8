"""Files that people have, whole and damaged. Each maker returns what writes them into a folder."""

import gzip
import io
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import pluribus


def rows(count=60, target="kind", **columns):
    """A table as CSV: two numbers and a colour, and a target that follows from them; more columns go before it."""
    length = np.linspace(1, 7, count).round(3)
    width = np.cos(length).round(3)
    content = {"length": length, "width": width, "colour": np.where(width > 0, "red", "blue")} | columns
    content[target] = np.where(length > 4, "tall", "small") if target == "kind" else (3 * length + width).round(3)
    lines = [",".join(content), *(",".join(map(str, row)) for row in zip(*content.values(), strict=True))]
    return "\n".join(lines) + "\n"


def file(name, content=""):
    def write(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def cut(name, share=0.5):
    """What a broken transfer leaves."""

    def write(folder):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])

    return write


def remove_files(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def without_digest(name):
    """The file as a version before digests wrote it: whoever changes it is not noticed by its digest."""

    def write(folder):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if "digest" not in line))

    return write


def replace_text(name, old, new):
    def write(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return write


def swap_files(one, two):
    def write(folder):
        (folder / one).rename(folder / "other")
        (folder / two).rename(folder / one)
        (folder / "other").rename(folder / two)

    return write


# --- data sets ---------------------------------------------------------------------------------------------------------

IMAGES, LABELS = "data/mnist/train-images-idx3-ubyte", "data/mnist/train-labels-idx1-ubyte"


def mnist(zipped=False, labels=tuple(range(10)), form="mnist"):
    """Ten images for training and ten for the test."""

    def idx(array):
        return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()

    def write(folder):
        images = np.random.default_rng(0).integers(0, 256, (10, 28, 28))
        for part, own in (("train", labels), ("t10k", range(10))):
            for name, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", np.array(own))):
                data = gzip.compress(idx(array)) if zipped else idx(array)
                file(f"data/{form}/{name}{'.gz' if zipped else ''}", data)(folder)

    return write


BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


def cifar(folder):
    """CIFAR-10 in its binary version, ten images a batch."""
    pixels = np.random.default_rng(0).integers(0, 256, (10, 3072), dtype=np.uint8)
    records = np.concatenate([np.arange(10, dtype=np.uint8)[:, None], pixels], 1).tobytes()
    for name in BATCHES:
        file(f"data/cifar-10-batches-bin/{name}.bin", records)(folder)


class Payload:
    """Once unpickled, it makes a folder called "sprung"."""

    def __reduce__(self):
        return os.mkdir, ("sprung",)


def pickled_cifar(folder):
    for name in BATCHES:
        file(f"data/cifar-10-batches-py/{name}", pickle.dumps({b"data": Payload(), b"labels": []}))(folder)


def png(name, size=8, broken=False):
    pixels = np.random.default_rng(0).integers(0, 256, (size, size), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return file(name, buffer.getvalue()[:40] if broken else buffer.getvalue())


def photos(*extra, classes=("cat", "dog"), each=4):
    """A folder of images, one folder a class."""

    def write(folder):
        for kind in classes:
            for number in range(each):
                png(f"photos/{kind}/{number}.png")(folder)
        for one in extra:
            one(folder)

    return write


def npz(name="rows.npz", **arrays):
    def write(folder):
        with open(folder / name, "wb") as out:
            np.savez(out, **arrays)

    return write


def objects(name="rows.npz"):
    """An archive whose x is a pickle with a payload."""
    return npz(name, x=np.array([Payload()] * 4, object), y=np.arange(4) % 2)


# --- networks and runs -------------------------------------------------------------------------------------------------

NETS = """
from torch import nn

class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)
    def forward(self, x):
        return [self.layer(x.flatten(1))]

def build(inputs, outputs, hidden=8): return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.Linear(hidden, outputs))
def wrong(inputs): return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 3))
def raises(): raise RuntimeError("the cupboard is bare")
def none(): return None
def narrow(outputs): return nn.Linear(5, outputs)
def positional(depth, width): return nn.Linear(depth, width)
def several(): return Odd()
number = 3
"""

nets = file("nets.py", NETS)


def weights_of(method, hidden=16, name="run/weights.safetensors"):
    """The weights of another ensemble."""

    def write(folder: Path):
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))
        pluribus.save(pluribus.ensemble(net, method), folder / name)

    return write


def pickled_weights(folder):
    """What torch.save writes, with a payload."""
    torch.save({"weights": Payload()}, folder / "run/weights.safetensors")


UNFINISHED = remove_files("run/result.json", "run/weights.safetensors")
