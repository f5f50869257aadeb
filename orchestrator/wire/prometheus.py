"""The Prometheus text format, as far as engines write it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One line: a metric's value under one set of labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    value: float


def parse_metrics(text: str) -> tuple[Sample, ...]:
    """Read an exposition; comments, and lines that are none of the format, are left out."""
    matches = (_SAMPLE.match(line) for line in text.splitlines() if line and not line.startswith("#"))
    read = ((m, _value(m.group(3))) for m in matches if m)
    return tuple(Sample(name=m.group(1), labels=_labels(m.group(2) or ""), value=v) for m, v in read if v is not None)


def sum_by_name(samples: Iterable[Sample]) -> dict[str, float]:
    """Add up the samples of each name over their labels; what is not a number (NaN) is left out."""
    sums: dict[str, float] = {}
    for s in samples:
        if not math.isnan(s.value):
            sums[s.name] = sums.get(s.name, 0.0) + s.value
    return sums


def _labels(text: str) -> dict[str, str]:
    return {k: re.sub(r"\\.", lambda m: _ESCAPES.get(m.group(), m.group()), v) for k, v in _LABEL.findall(text)}


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
