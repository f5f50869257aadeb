"""Settings out of JSON and out of `KEY=VALUE`, checked against the switches' own types."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from orchestrator.errors import InputError
from orchestrator.mock.settings import MockSettings, switches
from orchestrator.values import Secret

_LEAST = {
    "block_tok": 1,
    "events_per_write": 1,
    "fault_every": 1,
    "max_model_len": 2,
    "slots": 1,
    "step_s": 0.0001,
    "tokens_pattern": 1,
    "tokens_per_event": 1,
    "word_tok": 1,
}


def with_values(settings: MockSettings, values: Mapping[str, Any]) -> MockSettings:
    """The settings with some switches changed, values as JSON says them.

    Raises:
        InputError: A switch is unknown, or a value does not fit; the nearest name is in the hint.
    """
    hints = get_type_hints(MockSettings)
    for name in values:
        if name not in hints:
            raise InputError(f"the mock has no switch {name!r}", hint=_near(name, switches(), "gate0 mock --list"))
    return replace(settings, **{name: _fitted(name, hints[name], value) for name, value in values.items()})


def with_texts(settings: MockSettings, texts: Sequence[str]) -> MockSettings:
    """The settings changed by `KEY=VALUE` words: a value is JSON, or else text; `1,4,2` is a list where one is due.

    Raises:
        InputError: As `with_values`, and for a word without `=`.
    """
    hints = get_type_hints(MockSettings)
    values: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(f"--set {text}: expected KEY=VALUE", hint="for example --set tokens_per_event=4")
        is_list = get_origin(hints.get(name.strip())) is tuple
        values[name.strip()] = _listed(value) if is_list and not value.startswith("[") else _plain(value)
    return with_values(settings, values)


def _listed(text: str) -> list[Any]:
    return [_plain(part.strip()) for part in text.split(",") if part.strip()]


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fitted(name: str, hint: Any, value: Any) -> Any:
    kinds = get_args(hint) if NoneType in get_args(hint) else (hint,)
    if value is None and NoneType in kinds:
        return None
    kind = next(k for k in kinds if k is not NoneType)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _chosen(name, kind, value)
    if kind is Secret and isinstance(value, str | Secret):
        return value if isinstance(value, Secret) else Secret(name, value)
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_fitted(name, get_args(kind)[0], v) for v in value)
    if kind is str and isinstance(value, int | float):
        return str(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(kind, type) or not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
        raise InputError(f"switch {name}: {value!r} is not {words.get(kind, 'a list')}", hint=switches()[name])
    if isinstance(value, int | float) and not isinstance(value, bool) and value < _LEAST.get(name, 0):
        raise InputError(f"switch {name}: {value} is below {_LEAST.get(name, 0)}", hint=switches()[name])
    return value


def _chosen(name: str, kind: type[StrEnum], value: Any) -> StrEnum:
    # `true` is a word of one enum, and JSON's own.
    word = str(value).lower() if isinstance(value, bool) else "null" if value is None else value
    if word not in list(kind):
        known = [str(k) for k in kind]
        raise InputError(f"switch {name}: {value!r} is none of its words", hint=_near(str(word), known))
    return kind(word)


def _near(word: str, known: Mapping[str, str] | Sequence[str], more: str | None = None) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    rest = f"`{more}` shows all" if more else f"known: {', '.join(known)}"
    return f"did you mean {near[0]!r}? {rest}" if near else rest


def as_text(value: Any) -> str:
    """A switch's value as `KEY=VALUE` takes it."""
    if isinstance(value, list | tuple):
        return ",".join(map(as_text, value)) or "[]"
    if isinstance(value, str):
        return str(value) or '""'
    return json.dumps(value)
