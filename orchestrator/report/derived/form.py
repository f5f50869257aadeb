"""Figures as JSON and back, exactly: by the types of their fields, positions instead of names, infinities as words.

    Percentiles(n=2, mean=None, p50=inf, …)  <->  [2, null, "inf", …]

A mapping with numbers as keys is a list of pairs. What is declared as JSON (a cell's `load`, an SLO) is passed on.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from orchestrator.figures.cell import CellFigures
from orchestrator.records.record import CellRecord

Way = Callable[[Any], Any]


def to_plain(figures: CellFigures) -> Any:
    """A value that orjson can write."""
    return _out(CellFigures)(figures)


def from_plain(raw: Any) -> CellFigures:
    """
    Raises:
        Any of ValueError, TypeError, KeyError, AttributeError: It is not such a value.
    """
    found: CellFigures = _back(CellFigures)(raw)
    return found


def _parts(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((f.name, hints[f.name]) for f in fields(kind))


def _same(value: Any) -> Any:
    return value


@cache
def _out(hint: Any) -> Way:
    kind, many, is_optional = _read(hint)
    way = _out_of(kind, many)
    return way if way is _same or not is_optional else lambda v: None if v is None else way(v)


def _out_of(kind: Any, many: tuple[Any, ...]) -> Way:
    if kind is float:
        return lambda v: v if math.isfinite(v) else repr(float(v))
    if kind is tuple:
        each = _out(many[0])
        return list if each is _same else lambda v: [each(x) for x in v]
    if kind is Mapping:
        each = _out(many[1])
        if many[0] is int:
            return lambda v: [[k, each(x)] for k, x in v.items()]
        return dict if each is _same else lambda v: {k: each(x) for k, x in v.items()}
    if kind is CellRecord:
        names = tuple(f.name for f in fields(CellRecord))
        return lambda v: [getattr(v, name) for name in names]
    if is_dataclass(kind):
        parts = [(name, _out(hint)) for name, hint in _parts(kind)]
        return lambda v: [way(getattr(v, name)) for name, way in parts]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda v: v.value
    return _same


@cache
def _back(hint: Any) -> Way:
    kind, many, is_optional = _read(hint)
    way = _back_of(kind, many)
    return way if way is _same or not is_optional else lambda v: None if v is None else way(v)


def _back_of(kind: Any, many: tuple[Any, ...]) -> Way:
    if kind is float:
        return lambda v: float(v) if type(v) is str else v
    if kind is tuple:
        each = _back(many[0])
        return tuple if each is _same else lambda v: tuple([each(x) for x in v])
    if kind is Mapping:
        each = _back(many[1])
        if many[0] is int:
            return lambda v: {k: each(x) for k, x in v}
        return _same if each is _same else lambda v: {k: each(x) for k, x in v.items()}
    if is_dataclass(kind):
        return _maker(kind)
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else _same


def _maker(kind: Any) -> Way:
    names = tuple(f.name for f in fields(kind))
    if kind is CellRecord:
        return lambda v: kind(**dict(zip(names, v, strict=True)))
    ways = [(place, name, way) for place, (name, hint) in enumerate(_parts(kind)) if (way := _back(hint)) is not _same]

    def make(raw: Any) -> Any:
        values = dict(zip(names, raw, strict=True))
        for place, name, way in ways:
            if raw[place] is not None:
                values[name] = way(raw[place])
        return kind(**values)

    return make


def _read(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """The type, its own parameters, and whether it may be None. JSON is `object`; a tuple is of any length."""
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [k for k in get_args(hint) if k is not type(None)]
        if len(kinds) != 1:
            return object, (), True
        kind, many, _ = _read(kinds[0])
        return kind, many, True
    origin = get_origin(hint)
    if origin is tuple:
        return tuple, get_args(hint), False
    if origin is not None and issubclass(origin, Mapping):
        return Mapping, get_args(hint), False
    return hint, (), False
