"""One figure of one point as a picture shows it: value, interval, n, definition, and whether it was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from orchestrator.figures.definitions import find_definition
from orchestrator.figures.stated import Stated, stated
from orchestrator.figures.stats import Interval, Spread
from orchestrator.records.record import CellRecord
from orchestrator.report.foreign import RATES
from orchestrator.report.tables import PointRow

MEASURED, DERIVED, STATED = "measured", "derived", "stated"
PER_USER = ("per_user_tok_per_s", "decode_tok_per_s")
RANGES = (("low", "high"), ("min", "max"))
"""By which words a tool states a range, the first that is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    Attributes:
        low, high: None: no interval. interval: what kind it is of.
        n: Repeats or requests that it is of; None: not told.
    """

    value: float
    low: float | None = None
    high: float | None = None
    interval: str = ""
    n: int | None = None
    definition: str = ""
    method: str = MEASURED


def total(point: PointRow) -> Reading | None:
    """Output tokens/s of all users together."""
    own = _of_spread(point.figures.output_tok_per_s, "output")
    return of_stated(point.figures.cell, *RATES) or own


def prompt_total(point: PointRow) -> Reading | None:
    """Prompt tokens/s of all users together."""
    own = _of_spread(point.figures.prompt_tok_per_s, "prompt")
    return of_stated(point.figures.cell, "input_tok_per_s", "prompt_tok_per_s") or own


def per_user(point: PointRow) -> Reading | None:
    """Output tokens/s that one user gets, prefill and all (another tool: as it defines it)."""
    f = point.figures
    own = _one(f.per_user_tok_per_s, n=f.good, definition="per_user")
    return of_stated(f.cell, *PER_USER) or own


def first_token(point: PointRow, share: str = "p50") -> Reading | None:
    """TTFT in seconds, from the schedule where arrivals do not wait; `share`: `p50`, `p95`, …"""
    f = point.figures
    found = f.headline_ttft_ms
    own = _one(
        _in_s(getattr(found, share)),
        interval=found.intervals.get(share),
        n=found.n,
        definition="ttft_scheduled" if f.is_open else "ttft",
        scale=1000,
    )
    return _of_latency(f.cell, "ttft_ms", share) or own


def cached_share(point: PointRow) -> Reading | None:
    """Cached prompt tokens / prompt tokens, as a share of one."""
    f = point.figures
    return of_stated(f.cell, "cached_share") or _one(f.cached_share, n=f.good, definition="cached_share")


def efficiency(point: PointRow, single: Reading | None) -> Reading | None:
    """Share of perfect scaling from one user; of another tool's figures worked out from its totals.

    Args:
        single: The total of the one-user point of the same load.
    """
    if (told := of_stated(point.figures.cell, "efficiency")) is not None:
        return told
    if point.efficiency is not None:
        return _one(point.efficiency, n=point.figures.good, definition="efficiency", method=DERIVED)
    whole, users = total(point), point.figures.cell.concurrency
    if not point.figures.cell.source or whole is None or single is None or single.value <= 0 or users < 1:
        return None
    return _one(whole.value / (users * single.value), definition="efficiency", method=f"{DERIVED} from {STATED}")


def of_stated(cell: CellRecord, *names: str) -> Reading | None:
    """Another tool's figure, the first of these names that it tells."""
    found = next((s for n in names if (s := stated(cell, n)) is not None and s.values), None)
    return None if found is None else _stated(found, found.values.get("value", found.value))


@cache
def tag(name: str) -> str:
    """`gate0/output`: the name by which `gate0 docs metrics` explains it."""
    return find_definition(name).tag


def _of_spread(found: Spread | None, name: str) -> Reading | None:
    return None if found is None else _one(found.mean, interval=found.interval, n=found.n, definition=name)


def _one(
    value: float | None,
    *,
    interval: Interval | None = None,
    n: int | None = None,
    definition: str,
    method: str = MEASURED,
    scale: float = 1,
) -> Reading | None:
    if value is None or not math.isfinite(value):
        return None
    ends = None if interval is None else (interval.low / scale, interval.high / scale)
    low, high = ends if ends is not None and all(map(math.isfinite, ends)) else (None, None)
    return Reading(
        value=value,
        low=low,
        high=high,
        interval="" if low is None else "95 % interval",
        n=n,
        definition=tag(definition),
        method=method,
    )


def _of_latency(cell: CellRecord, name: str, share: str) -> Reading | None:
    """In seconds; a tool that states means only shows its mean as p50, and the definition says so."""
    found = stated(cell, name)
    if found is None:
        return None
    if share != "p50":
        value = found.values.get(share)
        only = {} if value is None else {"value": value / 1000}
        return _stated(replace(found, values=only), only.get("value"))
    in_s = {k: v / 1000 for k, v in found.values.items()}
    is_mean = "p50" not in in_s and "value" not in in_s and "mean" in in_s
    note = ", a mean" if is_mean else ""
    value = in_s.get("p50", in_s.get("value", in_s.get("mean")))
    return _stated(replace(found, values=in_s, definition=f"{found.definition}{note}"), value)


def _stated(found: Stated, value: float | None) -> Reading | None:
    """A range without a figure of its own stands at its middle, and says so."""
    low, high, words = _range(found.values, value)
    if value is None and low is not None and high is not None:
        value, words = (low + high) / 2, "range as stated, the point is its middle"
    if value is None or not math.isfinite(value):
        return None
    return Reading(value=value, low=low, high=high, interval=words, definition=found.definition, method=STATED)


def _range(values: Mapping[str, float], value: float | None) -> tuple[float | None, float | None, str]:
    for a, b in RANGES:
        low, high = values.get(a), values.get(b)
        if low is not None and high is not None and low <= high and math.isfinite(high):
            return low, high, "range as stated"
    sd = values.get("sd")
    has_sd = value is not None and sd is not None and sd > 0 and math.isfinite(sd)
    return (value - sd, value + sd, "± 1 sd as stated") if has_sd else (None, None, "")  # type: ignore[operator]


def _in_s(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / 1000
