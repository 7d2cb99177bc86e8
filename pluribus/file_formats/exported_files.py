"""What an exported file says about itself: JSON inside the file, as ONNX metadata or as an extra file of a torch program."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from .calibration_files import Level
from .run_files import ColumnsPreparation, PixelsPreparation, RowsPreparation
from .schema import Count, Schema, Size, Text, Texts


class ExportedInput(Schema):
    """One input: its name, the name of its type as NumPy has it, and the shape of one row."""

    name: Text
    type: Text
    shape: Annotated[list[Count], Field(max_length=8)]


class ExportedRecord(Schema):
    """The whole text. `outputs` are names and meanings, `rules` sentences, `quantiles` the levels that a regression predicts.

    `preparation` is how stored rows become the network's inputs, which the file does by itself; it is kept for the columns of a
    table, because their texts become numbers outside the file. None if there was none, or one of the user's own.
    """

    cure: ClassVar[str] = "write it again with `pluribus export`"

    title: Text
    torch: Text
    method: Text
    members: Size
    parameters: Count
    has_fixed_draws: bool
    task: Literal["classification", "regression"]
    classes: Texts
    inputs: Annotated[list[ExportedInput], Field(min_length=1, max_length=100)]
    outputs: dict[Text, Text]
    rules: Texts
    quantiles: Annotated[list[Level], Field(max_length=99)]
    preparation: Annotated[RowsPreparation | PixelsPreparation | ColumnsPreparation, Field(discriminator="kind")] | None
    notes: Texts

    @model_validator(mode="after")
    def _check_columns(self) -> "ExportedRecord":
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("it names a class twice")
        if isinstance(self.preparation, ColumnsPreparation):
            width, shapes = self.preparation.count_features(), [each.shape for each in self.inputs]
            if shapes != [[width]]:
                raise ValueError(f"columns of {width} numbers do not fit inputs of the shapes {shapes}")
        return self
