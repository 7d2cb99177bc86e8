"""The settings of a search, with the defaults of NAS-Bench-201 and their checks."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..training.settings import Count, NotNegative, Positive, Share

Algorithm = Literal["darts", "gdas"]


class SearchSettings(BaseModel):
    """How to search. Unknown names are refused.

    >>> SearchSettings(algorithm="gdas", epochs=250).temperature
    10.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithm: Algorithm = Field("gdas", description="darts (first order) or gdas")
    seed: int = Field(0, ge=0, lt=2**62, description="seed of weights, order of rows, augmentation and noise")
    epochs: Count = Field(50, description="how often every training row is seen")
    batch_size: Count = Field(64, description="rows in a step, of the weights and of the architecture alike")

    width: Count = Field(16, description="channels of the cells in the first stack")
    cells: Count = Field(5, description="cells in a stack")
    stacks: Count = Field(3, description="stacks, with a reduction block between two of them")

    lr: Positive = Field(0.025, description="learning rate of the weights in the first epoch; it falls along a cosine")
    lr_end: NotNegative = Field(0.001, description="where the learning rate of the weights falls to")
    momentum: Share = Field(0.9, description="Nesterov momentum of the weights")
    weight_decay: NotNegative = Field(5e-4, description="of the weights")
    clip: Positive = Field(5.0, description="the largest norm of the gradient of the weights")

    architecture_lr: Positive = Field(3e-4, description="learning rate of the architecture parameters (Adam)")
    architecture_weight_decay: NotNegative = Field(1e-3, description="of the architecture parameters")
    temperature: Positive = Field(10.0, description="of gdas in the first epoch; it falls linearly")
    temperature_end: Positive = Field(0.1, description="of gdas in the last epoch")
