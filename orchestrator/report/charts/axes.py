"""Axes: a tick a level, and logarithmic where values are far apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]

LOG_FROM = 30.0
"""Values that differ by more than this stand on a logarithmic axis: on a linear one the small ones are a line."""


def y_scale(values: Sequence[float], *, from_zero: bool = True) -> Spec:
    """Linear from zero; logarithmic where values above zero are far apart and `from_zero` is no matter."""
    if not from_zero and values and min(values) > 0 and max(values) / min(values) > LOG_FROM:
        return {"type": "log"}
    return {"type": "linear", "zero": True, "nice": True}


def is_log(scale: Mapping[str, Any]) -> bool:
    return scale.get("type") == "log"


def level_axis(levels: Sequence[float], title: str) -> Spec:
    """The x channel: a tick a level; levels that double stand at equal distances."""
    wide = len(levels) > 1 and min(levels) > 0 and max(levels) / min(levels) >= 16
    scale: Spec = (
        {"type": "log", "base": 2, "nice": False} if wide else {"type": "linear", "zero": False, "nice": False}
    )
    if len(levels) == 1:
        scale = {"type": "linear", "domain": [0, levels[0] * 2 or 1]}
    else:
        scale["padding"] = 12
    return {
        "field": "x",
        "type": "quantitative",
        "title": f"{title}, logarithmic" if wide else title,
        "scale": scale,
        "axis": {"values": list(levels), "grid": False, "format": "~g", "labelOverlap": "greedy"},
    }
