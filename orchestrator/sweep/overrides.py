"""`--set KEY=VALUE`: values laid upon a workload's file before it is checked, so a mistake names the override."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.errors import InputError
from orchestrator.profile.schemas import Schema
from orchestrator.profile.yaml_lines import Document, Node, Place, load_document

SET = "--set"
QUOTES_AND_BRACKETS = ("[", "{", '"', "'")


def parse_overrides(texts: Sequence[str]) -> Mapping[str, str]:
    """`["concurrency=1,4"]` as a mapping; a later one wins.

    Raises:
        InputError: One has no `=`.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise InputError(f"{SET} {text}: expected KEY=VALUE", hint="for example --set concurrency=1,4")
        pairs[key.strip()] = value.strip()
    return pairs


def is_override(file: str) -> bool:
    """The place is on the command line, not in a file."""
    return file.startswith(f"{SET} ")


def with_changes(document: Document, changes: Mapping[str, str], schema: Schema) -> Document:
    """The document with the changes in it, each written at a place called `--set KEY=VALUE`.

    A key may go inside by dots, into a list by number or by an item's `name`. Values are read as in a file; a list may
    stand without brackets; `null` removes the key.

    Raises:
        InvalidFile: A value is no YAML.
        InputError: A key leads to no item of a list.
    """
    root = document.root
    for key, text in changes.items():
        written = f"{SET} {key}={text}"
        steps = tuple(key.split("."))
        is_list = "," in text and not text.startswith(QUOTES_AND_BRACKETS) and _takes_list(schema, steps)
        value = load_document(f"[{text}]" if is_list else text, written).root
        root = _laid(root, steps, value, written)
    return Document(file=document.file, root=root)


def _laid(node: Node | None, steps: Sequence[str], value: Node, written: str) -> Node:
    """The node with the value at the path; what is on the way and is no mapping or list gives way to a mapping."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if node is not None and isinstance(node.content, tuple):
        index = _index(node.content, step, written)
        items = list(node.content)
        items[index] = _laid(items[index], rest, value, written)
        return replace(node, content=tuple(items))
    entries = dict(node.content) if node is not None and isinstance(node.content, Mapping) else {}
    if not rest and value.content is None:
        entries.pop(step, None)
    else:
        entries[step] = _laid(entries.get(step), rest, value, written)
    if node is not None and isinstance(node.content, Mapping):
        return replace(node, content=entries)
    return Node(place=Place(file=written, line=1), content=entries)


def _index(items: Sequence[Node], step: str, written: str) -> int:
    names = [node.written if (node := item.child("name")) is not None else None for item in items]
    if step in names:
        return names.index(step)
    if step.isdecimal() and int(step) < len(items):
        return int(step)
    known = ", ".join(name or str(i) for i, name in enumerate(names)) or "none"
    raise InputError(f"{written}: no entry `{step}` in that list", hint=f"there are: {known}")


def _takes_list(schema: Schema, steps: Sequence[str]) -> bool:
    forms = [schema]
    for step in steps:
        forms = [found for form in forms for found in _below(form, step)]
    return any(form.get("type") == "array" for f in forms for form in _forms(f))


def _below(schema: Schema, step: str) -> Iterator[Schema]:
    for form in _forms(schema):
        if step in form.get("properties", {}):
            yield form["properties"][step]
        elif form.get("type") == "array":
            yield form.get("items", {})


def _forms(schema: Schema) -> Iterator[Mapping[str, Any]]:
    yield schema
    for union in ("anyOf", "oneOf"):
        for branch in schema.get(union, ()):
            yield from _forms(branch)
