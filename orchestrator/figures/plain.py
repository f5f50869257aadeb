"""Figures as plain values: what JSON can say, and nothing lost on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from orchestrator.values import Json

INFINITE = "inf"
"""What stands for an infinite value (an adjusted percentile among failures): null would read as not measured."""


class Plain:
    """`as_json` for a dataclass of figures."""

    __slots__ = ()

    def as_json(self) -> dict[str, Json]:
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]


def plain(value: Any) -> Json:
    """Nested dataclasses and mappings as objects, sequences as lists, infinity as `INFINITE`, not-a-number as null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None if math.isnan(value) else (INFINITE if value > 0 else f"-{INFINITE}")
    if isinstance(value, Plain):
        return value.as_json()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(v) for v in value]
    raise TypeError(f"no plain form of {type(value).__name__}")
