"""How a figure is written: significant digits by size, a dash for what was not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.figures.stats import Interval, Spread

DASH = "–"
MOST_SHOWN = 8
"""Values of a list that one field of a table takes; of a longer one the middle is left out."""


def number(value: float | None, digits: int = 1) -> str:
    """`203.4`, `14.1`, `–` for None, `∞` for what never came."""
    if value is None:
        return DASH
    if value == math.inf:
        return "∞"
    return f"{value:.{digits}f}"


def rate(value: float | None) -> str:
    """`2310`, `203.4`, `3.21`, `0.298`: three figures or more, no tenths of thousands."""
    return DASH if value is None else number(value, _digits(value))


def _digits(value: float) -> int:
    size = abs(value)
    return 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3


def seconds(value_ms: float | None) -> str:
    """A latency in ms as seconds: two decimals below ten, one above."""
    if value_ms is None:
        return DASH
    value = value_ms / 1000
    return number(value, 3 if value < 0.1 else 2 if value < 10 else 1)


def share(value: float | None, digits: int = 0) -> str:
    """`79%`."""
    return DASH if value is None else f"{value * 100:.{digits}f}%"


def duration(value_s: float | None) -> str:
    """`41 s`, `9.6 min`, `4.8 h`."""
    if value_s is None:
        return DASH
    if value_s < 90:
        return f"{value_s:.0f} s"
    return f"{value_s / 60:.1f} min" if value_s < 5400 else f"{value_s / 3600:.1f} h"


def plus_minus(found: Spread | None, digits: int | None = None) -> str:
    """`203.4 ±1.2`: the mean over repeats and half its t-interval, alike in digits; one repeat has no interval.

    Args:
        digits: After the point; None: by the mean's size.
    """
    if found is None:
        return DASH
    shown = _digits(found.mean) if digits is None else digits
    half = found.half_width
    text = number(found.mean, shown)
    return text if half is None else f"{text} ±{number(half, shown)}"


def between(interval: Interval | None, digits: int | None = None) -> str:
    """`(94.1-99.0)`; empty without an interval. A negative end is written out, `(-0.2 to 0.5)`."""
    if interval is None:
        return ""
    low, high = (rate(v) if digits is None else number(v, digits) for v in (interval.low, interval.high))
    return f"({low} to {high})" if interval.low < 0 else f"({low}-{high})"


def times(value: float | None) -> str:
    """`×1.24`: how many times as much."""
    return DASH if value is None else f"×{value:.2f}" if value < 100 else f"×{value:.0f}"


def listed(values: Sequence[str]) -> str:
    """`0% 62% 75%`; of more than eight the middle is left out."""
    if len(values) > MOST_SHOWN:
        half = MOST_SHOWN // 2
        values = (*values[:half], "…", *values[-half:])
    return " ".join(values) or DASH
