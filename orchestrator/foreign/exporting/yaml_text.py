"""YAML that every reader reads alike: text is quoted wherever YAML 1.1, YAML 1.2 or Go's mix would see another type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.values import Json

_PLAIN = re.compile(r"(?:[A-Za-z_/]|--?[A-Za-z])[A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*")
_OTHER_TYPES = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_HIDDEN_OR_SPECIAL = re.compile(rf"{_HIDDEN.pattern}|[\"\\]")


@dataclass(frozen=True, slots=True)
class Rows:
    """A list of words, shown with one row a line: `[\\n  --max-model-len, "8192",\\n  …]`."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A text of several lines, shown as it is (`|`)."""

    text: str


Value = Rows | Block | Json | Mapping[str, "Value"] | Sequence["Value"]


def document(entries: Mapping[str, Value]) -> str:
    """The mapping as block YAML, keys in the order given."""
    return "".join(f"{line}\n" for line in _mapping(entries, ""))


def scalar(value: str | int | float | bool | None) -> str:
    """One value on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _OTHER_TYPES:
        return value
    if _HIDDEN.search(value):
        return f'"{_HIDDEN_OR_SPECIAL.sub(_escaped, value)}"'
    return "'" + value.replace("'", "''") + "'"


def _escaped(found: re.Match[str]) -> str:
    sign = found[0]
    return f"\\{sign}" if sign in '"\\' else "\\n" if sign == "\n" else f"\\u{ord(sign):04x}"


def _mapping(entries: Mapping[str, Value], indent: str) -> Iterator[str]:
    for key, value in entries.items():
        yield from _entry(f"{indent}{scalar(key)}:", value, indent)


def _entry(head: str, value: Value, indent: str) -> Iterator[str]:
    if isinstance(value, Rows):
        yield f"{head} ["
        yield from (f"{indent}  {', '.join(scalar(word) for word in row)}," for row in value.rows)
        yield f"{indent}]"
    elif isinstance(value, Block) and _is_showable(value.text):
        yield f"{head} |"
        yield from (f"{indent}  {line}" if line else "" for line in value.text.removesuffix("\n").split("\n"))
    elif isinstance(value, Block):
        yield f"{head} {scalar(value.text)}"
    elif isinstance(value, Mapping):
        yield head if value else f"{head} {{}}"
        yield from _mapping(value, f"{indent}  ")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield head if value else f"{head} []"
        for item in value:
            yield from _item(item, f"{indent}  ")
    else:
        assert value is None or isinstance(value, str | int | float)
        yield f"{head} {scalar(value)}"


def _item(value: Value, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        first, *rest = _mapping(value, f"{indent}  ")
        yield f"{indent}- {first.removeprefix(f'{indent}  ')}"
        yield from rest
    else:
        yield from _entry(f"{indent}-", value, indent)


def _is_showable(text: str) -> bool:
    """A block scalar keeps this text: it ends in one line end, does not begin with a space, and hides no character."""
    hidden = _HIDDEN.search(text.replace("\n", "").replace("\t", ""))
    return not hidden and text.endswith("\n") and not text.endswith("\n\n") and not text.startswith((" ", "\n"))
