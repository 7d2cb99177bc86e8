"""The schema of the JSON that an exported file takes: pydantic checks every number of it, and the OpenAPI page shows it."""

import sys
from functools import reduce
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, create_model

from .model import ServedModel

Cell = StrictInt | StrictFloat | StrictStr | StrictBool | None
"""A cell of a table."""
RANGES = {"uint8": (0, 2**8 - 1), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
LARGEST = {"float16": 65504.0, "float32": 3.4028234663852886e38}
"""Numbers beyond these would become infinite in the type of the input."""


def build_schema(model: ServedModel, max_rows: int) -> type[BaseModel]:
    """The schema of `{"rows": [row, …]}`. A row is an object of columns and values if the file was trained on a table; else
    nested lists in the shape of the input, or an object of these if there are several inputs.

    Types are strict: texts are not taken for numbers, nor real numbers for whole ones.
    """
    row: Any
    if model.columns is not None:
        row = dict[str, Cell]
    elif len(model.inputs) == 1:
        row = build_nested(model.inputs[0])
    else:
        fields: Any = {
            f"input_{place}": (build_nested(each), Field(alias=each["name"])) for place, each in enumerate(model.inputs)
        }
        row = create_model("Row", __config__=_STRICT, **fields)
    rows = Annotated[list[row], Field(min_length=1, max_length=max_rows)]
    return create_model("Body", __config__=_STRICT, rows=(rows, ...))


_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def build_nested(taken: dict[str, Any]) -> Any:
    """The type of one row of an input: lists of exactly these lengths, around numbers that its type can hold."""
    kind = taken["type"]
    number: Any
    if kind == "bool":
        number = StrictBool
    elif kind in RANGES:
        number = Annotated[int, Field(ge=RANGES[kind][0], le=RANGES[kind][1])]
    else:
        most = LARGEST.get(kind, sys.float_info.max)
        number = Annotated[float, Field(allow_inf_nan=False, ge=-most, le=most)]
    return reduce(_repeat, reversed(taken["shape"]), number)


def _repeat(kind: Any, count: int) -> Any:
    return Annotated[list[kind], Field(min_length=count, max_length=count)]
