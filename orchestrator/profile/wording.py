"""What is said when a value does not fit its schema: what was expected, what was found, what to write instead.

A schema node may carry, beside the JSON Schema words: `x-expected`, the words for a value that fits (used instead of a
pattern, which nobody should have to read), `x-also-called`, other programs' words for the key, and `x-secret: true`,
which keeps the value found out of the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from orchestrator.profile.scalars import boolean_hint, number_hint
from orchestrator.profile.yaml_lines import Node

_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_LONGEST = 60
_MANY = 24


def expected(schema: Mapping[str, Any]) -> str:
    """Words for what a schema accepts; null is not mentioned."""
    if "x-expected" in schema:
        return str(schema["x-expected"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return choices(schema["enum"])
    for union in ("oneOf", "anyOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(expected(branch) for branch in schema[union] if not is_null(branch)))
    kinds = [_KINDS[kind] for kind in kinds_of(schema) if kind in _KINDS]
    return " or ".join(kinds) or "another value"


def kinds_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """JSON Schema type names of a schema; empty when it names none."""
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def is_null(schema: Mapping[str, Any]) -> bool:
    """True for a branch that only lets null through."""
    return kinds_of(schema) == ("null",)


def choices(values: Iterable[object]) -> str:
    """`one of a, b, c` without null."""
    shown = [str(v) for v in values if v is not None]
    return shown[0] if len(shown) == 1 else f"one of {', '.join(shown)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean `x`?` for a near miss, else an empty text."""
    names = list(known)
    folded = {name.lower().replace("-", "_"): name for name in reversed(names)}
    near = get_close_matches(word.lower().replace("-", "_"), folded, n=1, cutoff=0.6)
    return f"; did you mean `{folded[near[0]]}`?" if near else ""


def unknown_key(key: str, properties: Mapping[str, Mapping[str, Any]]) -> str:
    """The message for a key that no schema names. `x-also-called` lists what other programs call a key."""
    known = list(properties)
    alike = [name for name, schema in properties.items() if key.replace("-", "_") in schema.get("x-also-called", ())]
    near = f"; did you mean `{alike[0]}`?" if alike else did_you_mean(key, known)
    if near or len(known) > _MANY:
        return f"unknown key{near}"
    return f"unknown key; known here: {', '.join(known)}" if known else "unknown key: none is taken here"


_USER_INFO = re.compile(r"://[^/\s@]*@")
"""User and password in a URL: the password has no place in a terminal or a log."""


def shown(node: Node | None, schema: Mapping[str, Any]) -> str:
    """The value found, fit for a message: as typed, cut when long, withheld when it may be a secret."""
    if node is None:
        return "nothing"
    if schema.get("x-secret") and not isinstance(node.content, bool):
        return "a value (not shown: it may be a secret)" if node.content is not None else "nothing"
    if isinstance(node.content, Mapping):
        return "a mapping" if node.content else "an empty mapping"
    if isinstance(node.content, tuple):
        return "a list" if node.content else "an empty list"
    if node.content is None:
        return "nothing"
    written = node.written if node.is_plain else json.dumps(node.written, ensure_ascii=False)
    text = _USER_INFO.sub("://***@", str(written))
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[:_LONGEST]}…`"


def type_hint(node: Node | None, kinds: Sequence[str]) -> str | None:
    """How to write the value that was probably meant, None when there is no telling."""
    if node is None or node.written is None:
        return None
    if isinstance(node.content, str):
        return _text_hint(node.content, kinds)
    if "string" in kinds and node.content is not None:
        return f'put it in quotes: "{node.written}"'
    if kinds and "integer" in kinds and isinstance(node.content, float) and node.content.is_integer():
        return f"write {int(node.content)}"
    is_list_only = "array" in kinds and not {"integer", "number", "boolean", "string"} & set(kinds)
    return "write it as a list: `[…]`" if is_list_only and node.content is not None else None


def _text_hint(text: str, kinds: Sequence[str]) -> str | None:
    if "integer" in kinds or "number" in kinds:
        return number_hint(text)
    if "boolean" in kinds:
        return boolean_hint(text)
    return "write it as a list: `[…]`" if "array" in kinds else None
