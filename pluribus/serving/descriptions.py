"""What a server says about itself: GET /, and the request and answer of /predict in its OpenAPI description."""

from typing import Any

from pydantic import BaseModel

from .model import ServedModel
from .rows import describe_rows
from .settings import ServerSettings

ENDPOINTS = {
    "POST /predict": "answers rows",
    "GET /docs": "a page to try it, with the OpenAPI description in /openapi.json",
    "GET /health/live, GET /health/ready": "200, or 503 while rows would not be answered",
    "GET /metrics": "counters for Prometheus",
}
REFUSALS = {
    400: "The body is no JSON, or no form.",
    408: "The body did not arrive in time.",
    413: "The body has too many bytes or rows.",
    415: "The content type is none that the model takes.",
    422: "A row does not fit: the sentence says what is expected.",
    503: "Too many rows wait: come again after the seconds of Retry-After.",
}
NUMBER: dict[str, Any]
TEXT: dict[str, Any]
TEXTS: dict[str, Any]
NUMBER, TEXT, TEXTS = {"type": "number", "nullable": True}, {"type": "string"}, {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "object", "additionalProperties": NUMBER}
OPTIONAL_TEXT = TEXT | {"nullable": True}
Key = tuple[dict[str, Any], str]
"""The schema of a key of an answer, and what it means."""
CLASSIFICATION: dict[str, Key] = {
    "label": (OPTIONAL_TEXT, "the most probable class"),
    "confidence": (NUMBER, "its probability"),
    "uncertainty": (NUMBER, "entropy of the probabilities, in nats"),
    "mutual_information": (NUMBER, "the part of it on which members disagree"),
    "probabilities": (NUMBERS, "by the names of the classes"),
}
RULES: dict[str, Key] = {
    "set": (TEXTS, "classes, one of which is true with the probability of the rule"),
    "answered": ({"type": "boolean"}, "whether one class may be answered"),
    "foreign": ({"type": "boolean"}, "whether the row is unlike the training data"),
}
REGRESSION: dict[str, Key] = {
    "value": (NUMBER, "the predicted value"),
    "low": (NUMBER, "the low end of the interval"),
    "high": (NUMBER, "the high end of the interval"),
    "noise": (NUMBER, "the standard deviation of what could not be predicted"),
    "spread": (NUMBER, "the standard deviation of the members' values"),
    "quantiles": (NUMBERS, "what was learnt, by their levels"),
}


def describe_model(model: ServedModel, settings: ServerSettings) -> dict[str, Any]:
    """The facts of the file, what it takes, the limits, and the endpoints."""
    facts = {name: value for name, value in model.facts.items() if name != "preparation"}
    columns = None if model.columns is None else [column.name for column in model.columns.columns]
    return {
        "file": model.file.name,
        **facts,
        "classes": list(model.classes),
        **({} if columns is None else {"columns": columns}),
        "takes_images": model.takes_images,
        "body": describe_rows(model),
        "limits": {"rows": settings.max_rows, "bytes": settings.max_bytes, "waiting_rows": settings.max_waiting},
        "endpoints": ENDPOINTS,
    }


def describe_predict(model: ServedModel, schema: type[BaseModel]) -> dict[str, Any]:
    """The arguments of FastAPI's route that describe /predict."""
    content: dict[str, Any] = {"application/json": {"schema": inline_references(schema.model_json_schema())}}
    if model.takes_images:
        picture = {"type": "string", "format": "binary"}
        fields = {"type": "object", "properties": {"images": {"type": "array", "items": picture}}}
        content |= {"image/*": {"schema": picture}, "multipart/form-data": {"schema": fields}}
    detail = {"type": "object", "properties": {"detail": TEXT}}
    refusals = {
        status: {"description": text, "content": {"application/json": {"schema": detail}}} for status, text in REFUSALS.items()
    }
    answered = {
        "description": "One answer for each row, in order.",
        "content": {"application/json": {"schema": list_keys(model)}},
    }
    return {
        "summary": "Answer rows in the words of `pluribus predict`",
        "description": describe_rows(model),
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
        "responses": {200: answered, **refusals},
    }


def list_keys(model: ServedModel) -> dict[str, Any]:
    """The schema of the answer: which keys a row of this model has."""
    outputs = model.facts["outputs"]
    if model.facts["task"] == "classification":
        rules = {name: each for name, each in RULES.items() if name in outputs}
        keys: dict[str, Key] = CLASSIFICATION | ({"answer": (TEXT, "what the rules say, in words")} | rules if rules else {})
    else:
        given = {"value", "spread", *(("low", "high") if "interval" in outputs else ()), *outputs}
        keys = {name: each for name, each in REGRESSION.items() if name in given}
    keys = {"row": ({"type": "integer"}, "its place in the request")} | keys
    keys |= {"error": (TEXT, "why the others are null, if the model's answer is not finite")}
    properties = {name: {**kind, "description": about} for name, (kind, about) in keys.items()}
    row = {"type": "object", "properties": properties}
    warned = TEXTS | {"description": "what is strange about the rows"}
    return {"type": "object", "properties": {"answers": {"type": "array", "items": row}, "warnings": warned}}


def inline_references(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its own definitions where they are used: OpenAPI looks for them elsewhere.

    >>> inline_references({"items": {"$ref": "#/$defs/Row"}, "$defs": {"Row": {"type": "object"}}})
    {'items': {'type': 'object'}}
    """
    known = schema.get("$defs", {})

    def replace(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return replace(known[value["$ref"].rpartition("/")[2]])
            return {key: replace(entry) for key, entry in value.items() if key != "$defs"}
        return [replace(entry) for entry in value] if isinstance(value, list) else value

    replaced: dict[str, Any] = replace(schema)
    return replaced
