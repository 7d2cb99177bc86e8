"""Small exported files, and what is sent to their servers."""

import io

import numpy as np
import torch
from PIL import Image
from torch import nn

import pluribus
from pluribus.data import Pixels

CLASSES = ("ant", "bee", "cat")


def draw_images(count, seed=0):
    return torch.randint(0, 256, (count, 1, 4, 4), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)


def build_classifier(**options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 3))
    return pluribus.ensemble(net, pluribus.DeepEnsemble(members=3), **options).eval()


def export_classifier(path, **options):
    """Three members on images of 4×4 bytes, and the ensemble's answers as a function of stored rows."""
    ensemble, preparation = build_classifier(), Pixels((0.5,), (0.2,))
    pluribus.export(
        ensemble, path, example=draw_images(6), preparation=preparation, classes=CLASSES, title="insects", **options
    )
    return ensemble, preparation


def encode_png(image):
    """The bytes of a picture `[1, H, W]`."""
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(image)[0]).save(buffer, "PNG")
    return buffer.getvalue()
