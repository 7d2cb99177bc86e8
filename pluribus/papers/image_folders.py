"""Folders of images for the recipes on ImageNet: at scale smoke their images are generated.

At scale paper the folders lie in the data folder: imagenet/train/<class>/… and imagenet/val/<class>/…, and beside it
imagenet-a, imagenet-v2 and objectnet with folders of the same class names.
"""

from pathlib import Path

import torch
from torch import Tensor

from ..data import find_data_folder
from .recipe import Json, Workspace

SMOKE_SIZE, SMOKE_IMAGES, SMOKE_CLASSES = 32, 8, 3
TRAINED = "imagenet"
OTHERS = ("imagenet-a", "imagenet-v2", "objectnet")
NOT_RUN = {"ImageNet": "its 1.3 million images are too many for two cores"}


def locate_images(name: str, scale: str, workspace: Workspace) -> Json:
    """The folder of a set, as `pluribus train` names data. At scale smoke its images are generated."""
    if scale != "smoke":
        return {"name": str(find_data_folder(workspace.data) / name), "size": 224}
    folder = workspace.shared.parent / "generated" / name
    if not (folder / "done").is_file():
        generate_images(folder, OTHERS.index(name) + 1 if name in OTHERS else 0)
        (folder / "done").touch()
    return {"name": str(folder)}


def generate_images(folder: Path, seed: int) -> None:
    """Write images of a few classes, each with a mean colour of its own, into train/ and val/."""
    from PIL import Image

    generator = torch.Generator().manual_seed(seed)
    for part in ("train", "val"):
        for label in range(SMOKE_CLASSES):
            place = folder / part / f"class{label}"
            place.mkdir(parents=True, exist_ok=True)
            for number in range(SMOKE_IMAGES):
                Image.fromarray(draw_image(label, generator).numpy()).save(place / f"{number}.png")


def draw_image(label: int, generator: torch.Generator) -> Tensor:
    """Noise around a colour, `[H, W, 3]` in bytes."""
    colour = torch.full((3,), 96.0)
    colour[label] = 160.0
    noise = 40 * torch.randn(SMOKE_SIZE, SMOKE_SIZE, 3, generator=generator)
    return (colour + noise).clamp(0, 255).byte()
