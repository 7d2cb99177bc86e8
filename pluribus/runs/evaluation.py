"""Evaluation of a trained ensemble: all scores on its own rows, under corruption, out of distribution and under attack.

`evaluate_case` computes them for any ensemble; `evaluate_run` does so for a run folder and `judge_run` for a comparison.
"""

import base64
import contextlib
import io
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from torch import Tensor, nn

from ..analysis.cost import compare_cost
from ..analysis.scores import ClassificationScores, RegressionScores, create_scores
from ..analysis.sub_ensembles import SubEnsembleScores
from ..core.ensemble import Ensemble
from ..core.errors import DataError, FileError
from ..core.files import remove_leftovers, write_file
from ..core.predictive import PredictiveSummary
from ..core.suggestions import describe_unknown
from ..core.tensor_files import serialize_tensors
from ..data import Data
from ..data.catalog import SETS
from ..data.corruptions import EXTRA, SEVERITIES, SMALLEST, STANDARD
from ..data.dataset import Part
from ..data.preparation import Preparation
from ..metrics.calibration import apply_temperature, fit_temperature
from ..metrics.regression import fit_noise_variance
from .choices import parse_choice
from .config import Config, ConfigError, explain_validation_error, is_plain_reference
from .consent import Trust, give_consent, read_as_data
from .evaluation_case import EvaluationCase
from .loading import build_network, load_rows, load_run, set_samples
from .robustness import (
    ATTACKS,
    GENERATED_SETS,
    detect_out_of_distribution,
    load_other_set,
    mce,
    measure_attack,
    measure_shift,
    parse_attack,
)
from .run_folder import Run, name_evaluation, open_run

ROWS_KEY, ROWS_FORMAT = "rows", "pluribus-rows-1"
"""The key in the metadata of rows.safetensors, and what stands there beside the digest."""
ROW_SCORES = ("nll", "calibrated_nll", "right", "brier", "square")
"""The scores that are kept for every row, so that a comparison can pair runs by rows."""
SUB_ENSEMBLE_SCORES = re.compile(r"(calibrated_nll|right|square)_([1-9][0-9]{0,3})")
"""The scores of sub-ensembles, whose size ends the name; only runs of the reference have them."""
COST_ROWS = 64
"""Rows of the batch whose latency and memory are measured."""

Report = Callable[[int, int | None], None]


class EvaluationSettings(BaseModel):
    """What an ensemble is evaluated by, besides its scores on the test rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: bool = Field(True, description="also report the scores after temperature scaling by validation rows")
    corruptions: Literal["none", "standard", "all"] = Field("none", description="the 15 standard corruptions, or all 19")
    ood: tuple[str, ...] = Field((), description="out-of-distribution sets")
    attack: dict[str, Any] | None = Field(None, description="linf, l2 or fgsm, with the options of an Attack")
    shift_rows: int = Field(1000, ge=1, description="test rows to corrupt")
    attack_rows: int = Field(200, ge=1, description="test rows to attack")

    @field_validator("attack", mode="before")
    @classmethod
    def _parse_attack(cls, value: Any) -> Any:
        choice = parse_choice(value) if isinstance(value, str) else value
        if choice is not None and choice.get("name") not in ATTACKS:
            raise ValueError(describe_unknown("attack", str(choice.get("name")), ATTACKS))
        return choice

    @field_validator("ood", mode="before")
    @classmethod
    def _parse_sets(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    def count_rows(self, own: int, held_out: int) -> int:
        """About how many rows will be predicted, for a progress bar: the size of another set is known once it is read."""
        shifted = {"none": 0, "standard": len(STANDARD), "all": len(STANDARD + EXTRA)}[self.corruptions] * len(SEVERITIES)
        return own + held_out + (shifted + bool(shifted)) * min(self.shift_rows, own) + own * len(self.ood)

    def check(self, data: Data, folder: str | None = None) -> None:
        """Raise ConfigError if the data cannot be evaluated so, before anything long begins."""
        if data.task == "regression" and (self.corruptions != "none" or self.ood or self.attack):
            raise ConfigError(f"corruptions, ood and attacks are for classes, and {data.name} is a regression: leave them out")
        if (self.corruptions != "none" or self.attack) and not data.has_images:
            raise ConfigError(f"corruptions and attacks are for images, and {data.name} has rows of numbers: leave them out")
        if self.corruptions != "none" and min(data.shape[1:]) < SMALLEST:
            raise ConfigError(f"corruptions need images of at least {SMALLEST}×{SMALLEST}, {data.name} has smaller ones")
        if self.attack:
            parse_attack(self.attack, data)
        for name in self.ood:
            if name in GENERATED_SETS and not data.has_images:
                raise ConfigError(f"ood {name!r} is made of images, and {data.name} has rows of numbers")
            if name in SETS and len(SETS[name].shape) != len(data.shape):
                raise ConfigError(f"ood {name} has other inputs than {data.name}: choose a set of the same kind")
            if name not in GENERATED_SETS:
                load_other_set(data, name, folder)


def build_evaluation_settings(**options: Any) -> EvaluationSettings:
    """The settings, without the options that are None. Raises ConfigError with one sentence about what is wrong."""
    try:
        return EvaluationSettings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(explain_validation_error(error)) from None


# --- one ensemble -----------------------------------------------------------------------------------------------------


def evaluate_case(
    case: EvaluationCase,
    held_out: Part | None,
    judging: EvaluationSettings,
    folder: str | None = None,
    with_sub_ensembles: bool = False,
) -> tuple[dict[str, Any], ClassificationScores | RegressionScores]:
    """All scores that `judging` asks for, as JSON, and the record of every row.

    `held_out` holds validation rows: they fit the temperature of a classification and the noise of a regression. With
    `with_sub_ensembles` the record also has the row scores of the ensembles of fewer members.
    """
    task = case.data.task
    fitted = predict_held_out(case, held_out)
    noise = fit_noise_variance(*fitted) if fitted and task == "regression" else None
    if case.ensemble.noise is not None:
        noise = 0.0  # no more than what the members predict
    fitted_temperature = fit_temperature(*fitted) if fitted and judging.temperature and task == "classification" else None
    kept, tempered = create_scores(task, noise), create_scores(task, with_calibrated=False)
    parts = SubEnsembleScores(task, case.members, len(case.part), noise) if with_sub_ensembles else None
    for p, y in case.predict_batches():
        kept.add(p, y)
        if parts is not None:
            parts.add(p, y)
        if fitted_temperature is not None:
            tempered.add(apply_temperature(p, fitted_temperature), y)
    kept.sub_ensembles = parts.table() if parts is not None else {}
    found: dict[str, Any] = {
        "rows": len(case.part),
        "members": case.members,
        "not_finite": kept.not_finite,
        "scores": kept.scores(),
        "intervals": {name: [interval.low, interval.high] for name, interval in kept.intervals().items()},
        "member_scores": kept.member_scores(),
        "diversity": kept.diversity(),
        "tempered": None if fitted_temperature is None else {"temperature": fitted_temperature} | tempered.scores(),
    }
    if isinstance(kept, RegressionScores):
        return found | {
            "noise": kept.find_noise(),
            "is_noise_predicted": case.ensemble.noise is not None,
            "interval_calibration": kept.interval_calibration(),
            "residuals": kept.predicted_and_true() | {"target": getattr(case.data.preparation, "answer", None)},
        }, kept
    extra = judging.corruptions == "all"
    found |= {
        "reliability": kept.reliability(),
        "risk_coverage": kept.risk_coverage(),
        "unsure": find_least_confident(kept, case),
        "shift": measure_shift(case, judging.shift_rows, extra) if judging.corruptions != "none" else None,
        "ood": {name: detect_out_of_distribution(case, kept, name, folder) for name in judging.ood},
        "attack": measure_attack(case, judging.attack, judging.attack_rows) if judging.attack else None,
    }
    return found, kept


def predict_held_out(case: EvaluationCase, rows: Part | None) -> tuple[PredictiveSummary, Tensor] | None:
    """The predictions for validation rows, without the members."""
    if rows is None or not len(rows):
        return None
    found = [(p.summarize(), y) for p, y in case.predict_batches(rows)]
    return PredictiveSummary.cat([p for p, _ in found]), torch.cat([y for _, y in found])


def find_least_confident(kept: ClassificationScores, case: EvaluationCase, count: int = 8) -> list[dict[str, Any]]:
    """The rows with the lowest confidence, with pictures if they are images."""
    classes, part = case.data.classes, case.part
    return [
        {
            "image": encode_png(part.x[row]) if case.data.has_images else None,
            "truth": classes[int(part.y[row])],
            "answer": classes[int(kept["answer"][row])] if kept["answer"][row] >= 0 else None,
            "confidence": kept["confidence"][row].item(),
        }
        for row in kept["confidence"].argsort()[:count].tolist()
    ]


def encode_png(pixels: Tensor) -> str:
    """Bytes `[C, H, W]` as a PNG in a data URI."""
    from PIL import Image

    image = Image.fromarray(pixels[0].numpy() if len(pixels) == 1 else pixels.permute(1, 2, 0).contiguous().numpy())
    if max(image.size) > 96:
        image.thumbnail((96, 96))
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def measure_cost(ensemble: Ensemble, network: nn.Module, data: Data, part: Part) -> dict[str, Any]:
    """What the ensemble costs on a batch of these rows, as ratios to the base network."""
    few = part.take_rows(torch.arange(min(COST_ROWS, len(part))))
    like = next(ensemble.parameters())
    x, y = data.preparation(few.x).to(like.device, like.dtype), data.preparation.scale_targets(few.y).to(like.device)
    found = compare_cost(ensemble, network.to(like.device, like.dtype), x, y)
    return asdict(found) | {"latency": found.latency._asdict(), "passes": found.passes}


# --- a run ------------------------------------------------------------------------------------------------------------


def evaluate_run(
    path: Path,
    split: str = "test",
    other: str | None = None,
    samples: int | None = None,
    judging: EvaluationSettings | None = None,
    base: Path | None = None,
    costs: bool = False,
    report: Report | None = None,
    trust: Trust = False,
) -> dict[str, Any]:
    """Evaluate the run in the folder `path`; the results are also written there, to the file that `name_record` says.

    `other` names another data set, `base` is a run whose corruption errors the mCE is relative to. `report` is called with the
    rows done since the last call, and first with 0 and the total. `trust` names factories that the files of both runs may
    name, as in `pluribus.compare`.
    """
    with give_consent(trust):
        return _evaluate_run(path, split, other, samples, judging, base, costs, report)


def _evaluate_run(
    path: Path,
    split: str,
    other: str | None,
    samples: int | None,
    judging: EvaluationSettings | None,
    base: Path | None,
    costs: bool,
    report: Report | None,
) -> dict[str, Any]:
    run, judging = open_run(path), judging or build_evaluation_settings()
    made, config, about, preparation = load_run(run)
    if samples is not None:
        set_samples(made, samples)
    data, part = load_rows(config, about, preparation, split, other)
    judging.check(data, config.data_dir)
    held_out = None
    if split != "validation":
        with contextlib.nullcontext() if other is None else contextlib.suppress(DataError, FileError):
            held_out = load_validation_rows(config, about, preparation)
    if report is not None:
        report(0, judging.count_rows(len(part), len(held_out) if held_out else 0))
    case = EvaluationCase(made, data, part, config.seed, None if report is None else lambda rows: report(rows, None))
    whole = part is data.train and part is data.test
    result = {"run": run.path.name, "title": config.title(), "data": data.name, "split": "all" if whole else split}
    found, _ = evaluate_case(case, held_out, judging, config.data_dir)
    if found.get("shift"):
        found["shift"]["mce"] = mce(found["shift"], measure_base_shift(base, case, judging)) if base is not None else None
    result |= found | {"cost": measure_cost(made, rebuild_network(run, config, data), data, part) if costs else None}
    remove_leftovers(run.path)
    run.write_json(name_record(split, other, samples, judging, base), result)
    return result


def name_record(
    split: str = "test",
    other: str | None = None,
    samples: int | None = None,
    judging: EvaluationSettings | None = None,
    base: Path | None = None,
) -> str:
    """The file in the folder of a run that an evaluation with these arguments of `evaluate_run` is written to."""
    chosen = {} if judging is None else judging.model_dump(exclude_defaults=True)
    return name_evaluation(split, {"data": other, "samples": samples, **chosen, "base": base and base.name})


def rebuild_network(run: Run, config: Config, data: Data) -> nn.Module:
    """The base network of a run; the state of the random generator is left as it was."""
    with torch.random.fork_rng(devices=[]), read_as_data(run.path):
        return build_network(config, data.shape, data.outputs, data.preparation.column_widths)


def load_validation_rows(config: Config, about: dict[str, Any], preparation: Preparation) -> Part | None:
    """The validation rows of the run, whichever rows it is evaluated on."""
    if not config.validation:
        return None
    return load_rows(config, about, preparation, "validation", None)[1]


def measure_base_shift(path: Path, case: EvaluationCase, judging: EvaluationSettings) -> dict[str, Any]:
    """The corruption errors of another run on the same images."""
    made, config, about, preparation = load_run(open_run(path))
    if tuple(about["shape"]) != case.data.shape or about["classes"] != list(case.data.classes):
        raise ConfigError(
            f"{path} was trained on {about['name']}, with other images or classes: choose a base of the same data"
        )
    data = replace(case.data, preparation=preparation)
    return measure_shift(EvaluationCase(made, data, case.part, config.seed, case.report), judging.shift_rows)


def select_comparison_rows(config: Config, about: dict[str, Any], preparation: Preparation) -> tuple[Data, Part, Part | None]:
    """The test rows and the validation rows. Without test rows, each gets half of the validation rows, so no row does both."""
    if about["test"]:
        data, part = load_rows(config, about, preparation, "test", None)
        return data, part, load_validation_rows(config, about, preparation)
    data, part = load_rows(config, about, preparation, "validation", None)
    if len(part) < 2:
        raise ConfigError(f"{data.name} has no test rows, and {len(part)} validation row: too few to judge by")
    return data, part.take_rows(torch.arange(0, len(part), 2)), part.take_rows(torch.arange(1, len(part), 2))


def judge_run(path: Path, judging: EvaluationSettings) -> None:
    """Write what a comparison needs of a finished run: judgement.json, and rows.safetensors to pair runs by."""
    run = Run(path)
    made, config, about, preparation = load_run(run)
    data, part, held_out = select_comparison_rows(config, about, preparation)
    case = EvaluationCase(made, data, part, config.seed)
    is_reference = is_plain_reference(config.spec)
    found, kept = evaluate_case(case, held_out, judging, config.data_dir, with_sub_ensembles=is_reference)
    scores = {name: column for name, column in kept.table().items() if name in ROW_SCORES} | kept.sub_ensembles
    table = {name: column.float().contiguous() for name, column in scores.items()}
    write_file(run.row_scores, serialize_tensors(table, {"format": ROWS_FORMAT}, ROWS_KEY))
    run.write_json("judgement.json", found)  # written last: its presence says that the run is judged
