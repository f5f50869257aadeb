"""JSON Schemas shipped as package data, with their local references put in place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

Schema = Mapping[str, Any]


def read_schema(package: str, name: str) -> Schema:
    """A schema by package and file name, `read_schema("orchestrator.profile.schema", "profile.schema.json")`."""
    return inline(json.loads(files(package).joinpath(name).read_text(encoding="utf-8")))


def profile_schema() -> Schema:
    """The schema of serving profiles."""
    return read_schema("orchestrator.profile.schema", "profile.schema.json")


def inline(schema: Schema) -> Schema:
    """The schema with each `{"$ref": "#/$defs/NAME"}` replaced by what it points at; words beside the reference win.

    Raises:
        KeyError: A reference points at nothing.
        RecursionError: A definition contains itself.
    """
    defs: Schema = schema.get("$defs", {})
    body = {key: value for key, value in schema.items() if key != "$defs"}
    placed: Schema = _placed(body, defs)
    return placed


def _placed(value: Any, defs: Schema) -> Any:
    if isinstance(value, list):
        return [_placed(item, defs) for item in value]
    if not isinstance(value, dict):
        return value
    name = str(value.get("$ref", "")).removeprefix("#/$defs/")
    own = {key: _placed(inner, defs) for key, inner in value.items() if key != "$ref"}
    return {**_placed(defs[name], defs), **own} if name else own
