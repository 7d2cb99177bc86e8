"""The settings of training, with their defaults and checks."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator, model_validator

Optimizer = Literal["sgd", "adam", "adamw", "muon"]
Schedule = Literal["constant", "step", "cosine", "linear", "wsd"]
Strategy = Literal["ddp", "fsdp"]
Precision = Literal["32", "64", "bf16-mixed", "16-mixed"]

RATES = {"sgd": 0.05, "adam": 1e-3, "adamw": 1e-3, "muon": 0.1}
DECAYS = {"sgd": 5e-4, "adam": 0.0, "adamw": 1e-2, "muon": 5e-4}

LARGEST = 1e30
"""Of a setting that is a real number: weights are float32, which ends at 3e38."""
Count = Annotated[int, Field(ge=1, lt=2**31)]
Positive = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
_COUNT: TypeAdapter[int] = TypeAdapter(Count)
WholeShare = Annotated[float, Field(ge=0, le=1)]


class Settings(BaseModel):
    """How to train. Unknown names are refused."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, frozen=True)

    seed: int = Field(0, ge=0, lt=10**100, description="seed of weights, order of rows, augmentation and noise")
    epochs: Count | Literal["auto"] = Field(
        10, description="how often every training row is seen; auto: until the validation score no longer improves"
    )
    max_epochs: Count = Field(100, description="with `epochs auto`: the most epochs, the fall of the learning rate included")
    batch_size: Count = Field(128, description="rows in a step, summed over all processes")

    optimizer: Optimizer = Field("adamw", description="sgd, adam, adamw, or muon for networks with convolutions")
    lr: Positive | None = Field(None, description="learning rate at its highest [0.05 for sgd, 0.1 for muon, else 0.001]")
    momentum: Share = Field(0.9, description="momentum of sgd, and of what muon trains by sgd")
    beta1: Share = Field(0.9, description="decay of the mean gradient in adam and adamw")
    nesterov: bool = Field(True, description="Nesterov's momentum in sgd")
    weight_decay: NotNegative | None = Field(
        None, description="[0.0005 for sgd and muon, 0 for adam, 0.01 for adamw]; muon spares convolutions"
    )
    bias_lr: Positive = Field(1.0, description="multiplies the learning rate of biases and of normalisation layers")
    bias_decay: bool = Field(True, description="weight decay of biases and of normalisation layers, too")

    schedule: Schedule = Field(
        "cosine",
        description="how the learning rate falls: constant, step, cosine, linear, or wsd (stays, then falls linearly)",
    )
    decay_share: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.25, description="of the `wsd` schedule: the part of all epochs in which the learning rate falls"
    )
    warmup: NotNegative = Field(0.0, description="epochs in which the learning rate rises from 0")
    milestones: tuple[float, ...] = Field(
        (0.5, 0.75), description="of the `step` schedule: parts of the run after which the learning rate falls"
    )
    gamma: Positive = Field(0.1, description="of the `step` schedule: the factor by which the learning rate falls")

    kl_warmup: NotNegative = Field(0.0, description="epochs in which the penalty (the KL of variational layers) rises")
    kl_weight: NotNegative = Field(1.0, description="multiplies the penalty; 1 is the evidence lower bound")
    label_smoothing: Share = Field(0.0, description="part of the target that is spread over all classes")
    mixup: NotNegative = Field(0.0, description="α of mixup: batches are mixed with their own rows in another order; 0 is off")
    teacher_weight: WholeShare = Field(0.9, description="of a student: share of its teacher's answers in the loss")
    teacher_temperature: Positive = Field(1.0, description="of a student: temperature of its teacher's answers and its own")
    teacher_members: Literal["all", "one"] = Field(
        "all",
        description="of a student with one member: who answers a row, all members of its teacher, or one, drawn each step",
    )
    clip: Positive | None = Field(None, description="largest norm of the gradient")
    precision: Precision = Field("32", description="32, 64, bf16-mixed or 16-mixed")
    compile: bool = Field(False, description="torch.compile the network; each of several processes then has its own noise")
    patience: Count | None = Field(
        None, description="stop after this many epochs without a better validation NLL, and keep the best"
    )

    checkpoint_every: str = Field(
        "10m", description="interval of checkpoints, besides the end of every epoch: steps (`500`) or time (`30s`, `10m`)"
    )
    devices: Count = Field(1, description="processes (or GPUs) on each machine; losses are those of one, up to rounding")
    nodes: Count = Field(1, description="number of machines")
    strategy: Strategy = Field("ddp", description="with several processes: ddp copies the weights, fsdp spreads them")
    accelerator: Literal["auto", "cpu", "gpu", "mps"] = Field("auto", description="device to compute on")

    @field_validator("precision", mode="before")
    @classmethod
    def _convert_to_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) else value

    @field_validator("checkpoint_every", mode="before")
    @classmethod
    def _check_interval(cls, value: Any) -> str:
        text = str(value)
        if not re.fullmatch(r"[1-9]\d*|\d*\.?\d+[smh]", text) or parse_interval(text)[1] == 0:
            raise ValueError(f"must be a number of steps (500) or a time (30s, 10m, 1h), got {text!r}")
        return text

    @field_validator("milestones")
    @classmethod
    def _check_milestones(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < share < 1 for share in value) or list(value) != sorted(set(value)):
            raise ValueError(f"must be rising shares between 0 and 1, got {value}")
        return value

    @field_validator("epochs", mode="before")
    @classmethod
    def _check_epochs(cls, value: Any) -> Any:
        # Pydantic would report both kinds that the setting may have; its error for a number is the plainer one.
        return value if value == "auto" else _COUNT.validate_python(value)

    @model_validator(mode="before")
    @classmethod
    def _choose_schedule(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("epochs") == "auto":
            return {"schedule": "wsd"} | values
        return values

    @model_validator(mode="after")
    def _check_optimizer(self) -> "Settings":
        if self.optimizer == "muon" and self.strategy == "fsdp":
            raise ValueError("optimizer muon needs whole matrices, and fsdp spreads them over processes: use strategy ddp")
        return self

    @model_validator(mode="after")
    def _check_phases(self) -> "Settings":
        if self.epochs == "auto" and self.schedule != "wsd":
            raise ValueError(
                f"schedule must be left out or wsd with epochs auto, got {self.schedule}: to use it, give a number of epochs"
            )
        most = self.most_epochs
        if self.warmup >= most and self.warmup > 0:
            raise ValueError(f"warmup must be shorter than the run, got {self.warmup:g} of {most} epochs")
        if self.schedule == "wsd" and self.warmup > most - most * self.decay_share:
            raise ValueError(
                f"warmup and fall must fit into the run, got {self.warmup:g} epochs and {self.decay_share:g} of {most} epochs"
            )
        return self

    @property
    def most_epochs(self) -> int:
        """The number of epochs; with `epochs="auto"` the most that it can be."""
        return self.max_epochs if self.epochs == "auto" else self.epochs

    @property
    def rate(self) -> float:
        return RATES[self.optimizer] if self.lr is None else self.lr

    @property
    def decay(self) -> float:
        return DECAYS[self.optimizer] if self.weight_decay is None else self.weight_decay


def parse_interval(text: str) -> tuple[str, float]:
    """Return ("steps", n) or ("seconds", n) for a text like "500", "30s", "10m" or "1h".

    >>> parse_interval("500"), parse_interval("10m")
    (('steps', 500.0), ('seconds', 600.0))
    """
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1])
    return ("steps", float(text)) if unit is None else ("seconds", float(text[:-1]) * unit)
