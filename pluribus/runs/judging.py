"""What a run is judged by, and the judgement: all scores on its own rows, under shift, by strangers and under attack."""

import base64
import io
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from torch import Tensor

from ..analysis.scores import ClassificationScores, RegressionScores, create_scores
from ..core.predictive import Predictive
from ..core.suggestions import describe_unknown
from ..data import Data
from ..data.catalog import SETS
from ..data.corruptions import EXTRA, SEVERITIES, SMALLEST, STANDARD
from ..data.dataset import Part
from ..metrics.calibration import apply_temperature, fit_temperature
from ..metrics.regression import fit_noise_variance
from .answers import Case
from .attacked import KINDS, attacked, meant
from .choice import parse
from .config import ConfigError, explained
from .shift import DRAWN, other_rows, shift, strangers


class Judging(BaseModel):
    """What `evaluate` and `compare` are told about judging."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: bool = Field(True, description="also report the scores after temperature scaling by validation rows")
    corruptions: Literal["none", "standard", "all"] = Field("none", description="the 15 standard corruptions, or all 19")
    ood: tuple[str, ...] = Field((), description="sets to be told from one's own")
    attack: dict[str, Any] | None = Field(None, description="linf, l2 or fgsm, with the options of an Attack")
    shift_rows: int = Field(1000, ge=1, description="test rows to corrupt")
    attack_rows: int = Field(200, ge=1, description="test rows to attack")

    @field_validator("attack", mode="before")
    @classmethod
    def _a_choice(cls, value: Any) -> Any:
        choice = parse(value) if isinstance(value, str) else value
        if choice is not None and choice.get("name") not in KINDS:
            raise ValueError(describe_unknown("attack", str(choice.get("name")), KINDS))
        return choice

    def rows(self, own: int, aside: int) -> int:
        """About how many rows will be answered, for a progress bar: another set's size is known only when it is read."""
        shifted = {"none": 0, "standard": len(STANDARD), "all": len(STANDARD + EXTRA)}[self.corruptions] * len(SEVERITIES)
        return own + aside + (shifted + bool(shifted)) * min(self.shift_rows, own) + own * len(self.ood)

    def check(self, data: Data, folder: str | None = None) -> None:
        """That the data can be judged so, before anything long begins."""
        if data.task == "regression" and (self.corruptions != "none" or self.ood or self.attack):
            raise ConfigError(f"corruptions, ood and attacks are for classes, and {data.name} is a regression: leave them out")
        if (self.corruptions != "none" or self.attack) and not data.has_images:
            raise ConfigError(f"corruptions and attacks are for images, and {data.name} has rows of numbers: leave them out")
        if self.corruptions != "none" and min(data.shape[1:]) < SMALLEST:
            raise ConfigError(f"corruptions need images of at least {SMALLEST}×{SMALLEST}, {data.name} has smaller ones")
        if self.attack:
            meant(self.attack, data)
        for name in self.ood:
            if name in DRAWN and not data.has_images:
                raise ConfigError(f"ood {name!r} is made of images, and {data.name} has rows of numbers")
            if name in SETS and len(SETS[name].shape) != len(data.shape):
                raise ConfigError(f"ood {name} has other inputs than {data.name}: choose a set of the same kind")
            if name not in DRAWN:
                other_rows(data, name, folder)


def asked(**options: Any) -> Judging:
    """The settings that were given, or one sentence about what is wrong with them."""
    try:
        return Judging(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(explained(error)) from None


def judgement(
    case: Case, aside: Part | None, judging: Judging, folder: str | None = None
) -> tuple[dict[str, Any], ClassificationScores | RegressionScores]:
    """All that is asked for, as JSON, and the record of the rows. `aside` holds validation rows, if there are any."""
    task = case.data.task
    held = held_out(case, aside)
    noise = fit_noise_variance(*held) if held and task == "regression" else None
    heat = fit_temperature(*held) if held and judging.temperature and task == "classification" else None
    kept, cooled = create_scores(task, noise), create_scores(task)
    for p, y in case.answers():
        kept.add(p, y)
        if heat is not None:
            cooled.add(apply_temperature(p, heat), y)
    told: dict[str, Any] = {
        "rows": len(case.part),
        "members": case.members,
        "scores": kept.scores(),
        "intervals": {name: [interval.low, interval.high] for name, interval in kept.intervals().items()},
        "member_scores": kept.member_scores(),
        "diversity": kept.diversity(),
        "tempered": None if heat is None else {"temperature": heat} | cooled.scores(),
    }
    if isinstance(kept, RegressionScores):
        return told | {"noise": None if noise is None else noise**0.5}, kept
    told |= {
        "reliability": kept.reliability(),
        "risk_coverage": kept.risk_coverage(),
        "unsure": unsure(kept, case),
        "shift": shift(case, judging.shift_rows, judging.corruptions == "all") if judging.corruptions != "none" else None,
        "ood": {name: strangers(case, kept, name, folder) for name in judging.ood},
        "attack": attacked(case, judging.attack, judging.attack_rows) if judging.attack else None,
    }
    return told, kept


def held_out(case: Case, aside: Part | None) -> tuple[Predictive, Tensor] | None:
    """The answers to validation rows; of a classification their average alone, `[1, rows, C]`."""
    if aside is None or not len(aside):
        return None
    found = [(p if p.task == "regression" else Predictive(p.log_probs.unsqueeze(0)), y) for p, y in case.answers(aside)]
    return Predictive.cat([p for p, _ in found]), torch.cat([y for _, y in found])


def unsure(kept: ClassificationScores, case: Case, count: int = 8) -> list[dict[str, Any]]:
    """The rows with the lowest confidence, as pictures where they are images."""
    classes, part = case.data.classes, case.part
    return [
        {
            "image": picture(part.x[row]) if case.data.has_images else None,
            "truth": classes[int(part.y[row])],
            "answer": classes[int(kept["answer"][row])],
            "confidence": kept["confidence"][row].item(),
        }
        for row in kept["confidence"].argsort()[:count].tolist()
    ]


def picture(pixels: Tensor) -> str:
    """Bytes `[C, H, W]` as a PNG in a data URI."""
    from PIL import Image

    image = Image.fromarray(pixels[0].numpy() if len(pixels) == 1 else pixels.permute(1, 2, 0).contiguous().numpy())
    if max(image.size) > 96:
        image.thumbnail((96, 96))
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
