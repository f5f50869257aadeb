"""The schema is the manual: every key says what it means, its examples fit, and the Markdown holds all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from orchestrator.profile.checking import check
from orchestrator.profile.docs import describe
from orchestrator.profile.schemas import inline, profile_schema
from orchestrator.profile.yaml_lines import load_document

SCHEMA = profile_schema()


def keys(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{prefix}{name}", inner
        yield from keys(inner, f"{prefix}{name}.")
    for branch in (*schema.get("oneOf", ()), *[schema[k] for k in ("items",) if k in schema]):
        yield from keys(branch, prefix)


ALL = list(keys(SCHEMA))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(("path", "schema"), ALL, ids=[path for path, _ in ALL])
def test_every_key_says_what_it_means(path: str, schema: Mapping[str, Any]) -> None:
    assert schema["description"].endswith(".")
    assert schema["examples"]


@pytest.mark.parametrize(("path", "schema"), ALL, ids=[path for path, _ in ALL])
def test_every_example_and_default_fits(path: str, schema: Mapping[str, Any]) -> None:
    values = [*schema["examples"], *[schema[k] for k in ("default",) if k in schema]]

    problems = [check(load_document(yaml.safe_dump(value), path), schema, path) for value in values]

    assert problems == [()] * len(values)


@pytest.mark.parametrize(("path", "schema"), ALL, ids=[path for path, _ in ALL])
def test_every_pattern_has_words(path: str, schema: Mapping[str, Any]) -> None:
    assert "pattern" not in schema or "x-expected" in schema


def test_the_manual_holds_every_key_with_its_meaning() -> None:
    manual = describe(SCHEMA)

    missing = [path for path, schema in ALL if schema["description"] not in manual]

    assert missing == []
    assert "### `serve.max_model_len`" in manual


def test_a_section_has_type_unit_default_meaning_and_example() -> None:
    schema = {
        "title": "Rooms",
        "description": "What rooms there are.",
        "required": ["beds"],
        "properties": {
            "beds": {"description": "How many.", "type": "integer", "minimum": 1, "examples": [2]},
            "heat": {"description": "How warm.", "type": "number", "x-unit": "°C", "default": 20.5, "examples": [19]},
            "guest": {"$ref": "#/$defs/name"},
        },
        "$defs": {"name": {"description": "Who.", "type": ["string", "null"], "x-default": "nobody"}},
    }

    assert describe(schema) == (
        "# Rooms\n\nWhat rooms there are.\n\n"
        "## `beds`\n\n*a whole number; at least 1; always needed*\n\nHow many.\n\n```yaml\nbeds: 2\n```\n\n"
        "## `heat`\n\n*a number; °C; default: `20.5`*\n\nHow warm.\n\n```yaml\nheat: 19\n```\n\n"
        "## `guest`\n\n*text; default: nobody*\n\nWho.\n"
    )


def test_words_beside_a_reference_win() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/x", "description": "mine"}}, "$defs": {"x": {"description": "its"}}}

    assert inline(schema)["properties"]["a"]["description"] == "mine"
