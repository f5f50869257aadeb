"""The manual of a schema, as Markdown: one section a key, with type, default, meaning and an example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from orchestrator.profile.schemas import Schema, inline
from orchestrator.profile.wording import choices, expected, is_null, kinds_of


def describe(schema: Schema) -> str:
    """The manual of one of our schemas, by its own order. Nested keys follow their parent, named by dotted path.

    Neighbours with the same `x-kinds`, the kinds that take a key, stand under one heading. A form with `x-described`,
    the key that has the same one, is not described again.
    """
    placed = inline(schema)
    blocks = [f"# {placed.get('title', 'Keys')}", str(placed.get("description", ""))]
    blocks += _keys(placed, "")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _keys(schema: Schema, prefix: str) -> Iterator[str]:
    group: object = None
    has_groups = any("x-kinds" in inner for inner in schema.get("properties", {}).values())
    for name, inner in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        if has_groups and (kinds := inner.get("x-kinds", ())) != group:
            group = kinds
            yield f"# Keys of {_listed(kinds) if kinds else 'every kind'}"
        yield _heading(path)
        yield _facts(inner, is_required=name in schema.get("required", ()))
        yield str(inner.get("description", ""))
        yield from _forms(inner)
        yield _example(name, inner)
        yield from _below(inner, path)


def _below(schema: Schema, path: str) -> Iterator[str]:
    """Keys inside this one, through the items of lists and the forms of unions."""
    if "x-described" in schema:
        return
    yield from _keys(schema, f"{path}.")
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from _below(items, f"{path}[]")
    entries = schema.get("additionalProperties")
    if isinstance(entries, Mapping) and "x-secret" not in entries:
        yield from _below(entries, f"{path}.*")
    for branch in _branches(schema):
        yield from _below(branch, path)


def _heading(path: str) -> str:
    depth = min(2 + path.replace(".*", "").count("."), 5)
    return f"{'#' * depth} `{path}`"


def _facts(schema: Schema, *, is_required: bool) -> str:
    facts = [_type(schema)]
    if "x-kinds" in schema:
        facts.append(f"for {_listed(schema['x-kinds'])}")
    if "x-unit" in schema:
        facts.append(str(schema["x-unit"]))
    if bounds := _bounds(schema):
        facts.append(bounds)
    if is_required:
        facts.append("always needed")
    elif "default" in schema:
        facts.append(f"default: {_inline_value(schema['default'])}")
    elif "x-default" in schema:
        facts.append(f"default: {schema['x-default']}")
    return f"*{'; '.join(facts)}*"


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return choices(f"`{value}`" for value in schema["enum"] if value is not None)
    if kinds_of(schema) and "array" in kinds_of(schema):
        items = schema.get("items")
        return f"a list, each {expected(items)}" if isinstance(items, Mapping) else "a list"
    return expected({key: value for key, value in schema.items() if key != "x-expected" or _branches(schema)})


def _bounds(schema: Schema) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "exclusiveMaximum": "below"}
    return ", ".join(f"{word} {schema[key]}" for key, word in words.items() if key in schema)


def _forms(schema: Schema) -> Iterator[str]:
    forms = [str(branch["description"]) for branch in _branches(schema) if "description" in branch]
    if forms:
        yield "Forms:\n\n" + "\n".join(f"- {form}" for form in forms)


def _branches(schema: Schema) -> tuple[Schema, ...]:
    return tuple(b for union in ("oneOf", "anyOf") for b in schema.get(union, ()) if not is_null(b))


def _example(name: str, schema: Schema) -> str:
    shown = [_yaml(name, example) for example in schema.get("examples", ())]
    return "```yaml\n" + "\n# or\n".join(shown) + "\n```" if shown else ""


def _yaml(name: str, value: Any) -> str:
    """One key in YAML, innermost lists and mappings on one line."""
    style = None if isinstance(value, list | dict) else False
    written = yaml.safe_dump({name: value}, default_flow_style=style, sort_keys=False, allow_unicode=True, width=110)
    return str(written).rstrip()


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _inline_value(value: Any) -> str:
    if value in ([], {}):
        return "none"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
