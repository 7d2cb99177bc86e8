"""What every cell of a trained network has: its options, and what shows that its network can be judged.

Options: `seed`; `training`, of the network that is measured; `base`, that of the network with dropout and the same seed.
"""

from typing import Annotated

from pydantic import Field

from ...file_formats.schema import MOST_ENTRIES, Count, Finite, Schema, Share, Text
from ..recipe import Json, Workspace
from .trainings import CreateTracker, Trained, Training, measure_accuracy, train_once


class Bound(Schema):
    """What `BoundTracker` recorded after an epoch: the terms of the ELBO in nats, and the mean log α by layer."""

    epoch: Count
    data: Finite
    kl: Finite
    log_alpha: dict[Text, Finite]


class TrainedCell(Schema):
    """The accuracy of the network with dropout, and the bound in training. Cells that were recorded before have neither."""

    base: Share | None = None
    bounds: Annotated[list[Bound], Field(max_length=MOST_ENTRIES)] | None = None


def build_cell(training: Training, base: Training, **options: object) -> Json:
    """Return the options of a cell."""
    return {"seed": training.seed, "training": training.to_json(), "base": base.to_json()} | options


def train_cell(options: Json, workspace: Workspace, create_tracker: CreateTracker | None = None) -> tuple[Trained, Json]:
    """Train the networks of a cell, and return the one that is measured, and the fields of `TrainedCell`."""
    base = train_once(Training.from_json(options["base"]), workspace)
    done = train_once(Training.from_json(options["training"]), workspace, create_tracker)
    return done, {"base": measure_accuracy(base.ensemble, base.x, base.y), "bounds": done.bounds}
