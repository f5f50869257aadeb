"""A draft as the text of a profile file, in the shape that people write profiles in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.errors import InvalidFile
from orchestrator.foreign.exporting.yaml_text import scalar as quoted
from orchestrator.foreign.loss import comments
from orchestrator.foreign.model import Draft
from orchestrator.profile.building import resolved_value
from orchestrator.profile.scalars import is_ambiguous, read_plain
from orchestrator.profile.yaml_lines import load_document
from orchestrator.values import Json

WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_~/][A-Za-z0-9_.,~/@+= ()-]*(?::[A-Za-z0-9_./@+-]+)*")
_IN_FLOW = re.compile(r"[\[\]{},]")


def profile_text(draft: Draft, source: str) -> str:
    """The profile file, with the loss report as comments at its end.

    Reading it back gives the document again; a value that would not come back is a bug, and raises.

    Raises:
        AssertionError: The text does not say what the document says.
    """
    body = "".join(f"{line}\n" for line in _mapping(draft.document, ""))
    text = f"{body}\n{comments(draft.notes, source)}"
    _assert_same(text, draft.document, source)
    return text


def _assert_same(text: str, document: Mapping[str, Json], source: str) -> None:
    try:
        read = resolved_value(load_document(text, source))
    except InvalidFile as exc:
        raise AssertionError(f"{source}: the written profile cannot be read: {exc.message}") from exc
    if _as_read(read) != _as_read(document):
        raise AssertionError(f"{source}: the written profile says something else")


def _as_read(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {str(key): _as_read(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_read(inner) for inner in value]
    return value


def _mapping(entries: Mapping[str, Json], indent: str) -> Iterator[str]:
    for key, value in entries.items():
        yield from _entry(f"{indent}{scalar(str(key))}:", value, indent)


def _entry(head: str, value: Json, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str)):
        flow = f"{head} {_flow(value)}"
        is_top = not indent and isinstance(value, Mapping) and len(value) > 2
        if len(flow) <= WIDTH and not is_top:
            yield flow
            return
        yield head
        if isinstance(value, Mapping):
            yield from _mapping(value, f"{indent}  ")
        else:
            yield from (f"{indent}  - {_flow(item)}" for item in value)
    else:
        yield f"{head} {scalar(value)}"


def _flow(value: Json) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_inside(str(key))}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _inside(value)


def _inside(value: str | int | float | bool | None) -> str:
    text = scalar(value)
    return quoted_always(value) if isinstance(value, str) and text == value and _IN_FLOW.search(text) else text


def scalar(value: str | int | float | bool | None) -> str:
    """One value on one line, as our own reader takes it: text in quotes wherever any YAML reader might see more."""
    if isinstance(value, float):
        return _decimal(value)
    if not isinstance(value, str):
        return quoted(value)
    is_plain = _PLAIN.fullmatch(value) and value == value.strip() and read_plain(value) == value
    if is_plain and not is_ambiguous(value) and not value.startswith("~ ") and value != "~":
        return value
    return quoted_always(value)


def quoted_always(value: str) -> str:
    """The text in quotes."""
    text = quoted(value)
    return text if text[:1] in {"'", '"'} else f"'{text}'"


def _decimal(value: float) -> str:
    """A float without an exponent, which other YAML readers take for text."""
    text = repr(value)
    return text if "e" not in text else f"{value:.20f}".rstrip("0")
