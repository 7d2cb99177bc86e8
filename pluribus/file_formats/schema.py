"""What the schemas of all files share: strict types, finite numbers, no unknown keys."""

from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, RootModel
from pydantic_core import PydanticCustomError

MOST_ENTRIES = 1_000_000
"""Of one list or mapping in a record."""

RUN_CURE = "take it from a copy of the run, or train again"
COMPARISON_CURE = "take it from a copy of the folder, or begin anew"


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a text")
    return value


Text = Annotated[str, PlainValidator(_check_text)]
"""Any text. Pydantic's own check refuses the names of files that are not UTF-8."""
Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Number = Finite | None
"""None stands for NaN and infinity, which a diverged run leaves and JSON has no word for."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
"""A share of a whole: an accuracy, say."""
Scores = Annotated[dict[Text, Number], Field(max_length=MOST_ENTRIES)]
Curve = Annotated[list[Number], Field(max_length=MOST_ENTRIES)]
Values = Annotated[list[Finite], Field(min_length=1, max_length=MOST_ENTRIES)]
Pair = Annotated[list[Finite], Field(min_length=2, max_length=2)]
Texts = Annotated[list[Text], Field(max_length=MOST_ENTRIES)]
Range = Annotated[list[Number], Field(min_length=2, max_length=2)]
"""The low and the high end of an interval."""


class Schema(BaseModel):
    """The content of a file of ours, or a part of it. Texts are not taken for numbers, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    holds: ClassVar[str] = ""
    """What the file holds, if a user may name another file by mistake."""
    cure: ClassVar[str] = ""
    """What a user can do if the file is damaged: the end of every sentence about it."""


T = TypeVar("T")


class MappingSchema(RootModel[Annotated[dict[Text, T], Field(min_length=1, max_length=MOST_ENTRIES)]], Generic[T]):
    """The content of a file that maps names, which are not known before, to parts of one kind."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    holds: ClassVar[str] = ""
    cure: ClassVar[str] = ""


AnySchema = type[Schema] | type[MappingSchema[Any]]
