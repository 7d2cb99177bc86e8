"""The rows of a request: JSON or pictures become the tensors that the exported file takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ValidationError
from torch import Tensor

from ..core.errors import DataError
from ..core.texts import shorten
from ..data.image_folder import ImageBytes, decode
from ..file_formats.explanations import describe_fault
from .errors import RequestError
from .model import ServedModel

Rows = tuple[list[Tensor], list[str]]
"""A tensor for each input, and warnings about the rows."""


def parse_json_rows(model: ServedModel, schema: type[BaseModel], body: bytes, max_rows: int) -> Rows:
    """The rows of `{"rows": [row, …]}`, as `schemas.py` has it.

    Raises: RequestError if the body is no JSON (400), has too many rows (413), or a row does not fit (422).
    """
    try:
        content: Any = schema.model_validate_json(body)
    except ValidationError as error:
        raise explain_fault(model, error, max_rows) from None
    rows = content.rows
    if model.columns is not None:
        return encode_columns(model, rows)
    if len(model.inputs) == 1:
        return [convert_numbers(rows, model.inputs[0]["type"])], []
    columns = zip(*(vars(row).values() for row in rows), strict=True)
    return [convert_numbers(part, each["type"]) for part, each in zip(columns, model.inputs, strict=True)], []


def convert_numbers(rows: Sequence[Any], kind: str) -> Tensor:
    """Nested lists of one shape as a tensor; NumPy reads them in a third of torch's time.

    >>> convert_numbers([[1, 2], [3, 4]], "uint8")
    tensor([[1, 2],
            [3, 4]], dtype=torch.uint8)
    """
    return torch.from_numpy(np.array(rows, dtype=kind))


def explain_fault(model: ServedModel, error: ValidationError, max_rows: int) -> RequestError:
    """What is wrong with a body of JSON, and what is expected."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return RequestError(400, f"the body is no JSON: {shorten(str(first['msg']).removeprefix('Invalid JSON: '))}")
    if first["type"] == "too_long" and first["loc"] == ("rows",):
        return RequestError(413, f"a request must have at most {max_rows:,} rows: send them in several")
    return RequestError(422, f"the body {describe_fault(error)}; {describe_rows(model)}")


def describe_rows(model: ServedModel) -> str:
    """What a body of JSON must hold, in one sentence."""
    if model.columns is not None:
        names = shorten(", ".join(column.name for column in model.columns.columns))
        return f'it must be {{"rows": [row, …]}}, and a row an object with the columns {names}'
    shapes = [f"{each['type']} of the shape {each['shape']}" for each in model.inputs]
    if len(shapes) == 1:
        return f'it must be {{"rows": [row, …]}}, and a row {shapes[0]}'
    parts = ", ".join(f"{each['name']} ({shape})" for each, shape in zip(model.inputs, shapes, strict=True))
    return f'it must be {{"rows": [row, …]}}, and a row an object with {parts}'


def parse_pictures(model: ServedModel, pictures: Sequence[tuple[str, bytes]], max_rows: int) -> Rows:
    """The rows of named pictures: PNG, JPEG, and what else an image folder may hold, brought to the size that the file takes.

    Raises: RequestError if the file takes no pictures (415), there are too many (413), or one cannot be read (422).
    """
    if not model.takes_images:
        raise RequestError(415, f"this model takes no pictures: send JSON; {describe_rows(model)}")
    if not pictures:
        raise RequestError(422, "there must be at least one picture, got none")
    if len(pictures) > max_rows:
        raise RequestError(413, f"a request must have at most {max_rows:,} rows, got {len(pictures):,}: send them in several")
    channels, height, width = model.inputs[0]["shape"]
    try:
        return [decode([ImageBytes(data, name) for name, data in pictures], height, width, channels)], []
    except DataError as error:
        raise RequestError(422, str(error)) from error


def encode_columns(model: ServedModel, rows: Sequence[dict[str, Any]]) -> Rows:
    """Rows of a table as the numbers that the network was trained on. A column that no row names is missing."""
    import pandas

    assert model.columns is not None
    names = [column.name for column in model.columns.columns if any(column.name in row for row in rows)]
    try:
        encoded, warned = model.columns.encode_with_warnings(
            pandas.DataFrame({name: [row.get(name) for row in rows] for name in names})
        )
    except DataError as error:
        raise RequestError(422, str(error)) from error
    return [encoded], warned
