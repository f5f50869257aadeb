"""How a figure is written: significant digits by size, a dash for what was not measured."""

from __future__ import annotations

DASH = "–"


def number(value: float | None, digits: int = 1) -> str:
    """`203.4`, `14.1`, `–` for None, `∞` for what never came."""
    if value is None:
        return DASH
    if value == float("inf"):
        return "∞"
    return f"{value:.{digits}f}"


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
