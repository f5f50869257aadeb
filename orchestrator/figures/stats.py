"""Small statistics: order-statistic percentiles, mean and deviation. None in, None out: nothing is ever filled in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean over repeats, standard deviation (n - 1 in the denominator; None below two repeats), and n."""

    mean: float
    sd: float | None
    n: int


def spread(values: Sequence[float]) -> Spread | None:
    """None for an empty sequence."""
    if not values:
        return None
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(mean=statistics.fmean(values), sd=sd, n=len(values))


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest observed value that at least `share` of the values do not exceed (nearest rank, no interpolation).

    Args:
        values: Any order; `math.inf` stands for a failure.
        share: In (0, 1]. Above the median the figure needs n >= 1 / (1 - share) values: a p99 of ten is a maximum.

    Returns:
        None when there are too few values.
    """
    needed = 1 if share <= 0.5 else math.ceil(round(1 / (1 - share), 9)) if share < 1 else 1
    if len(values) < needed:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(round(share * len(ordered), 9)) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """p50 to p99 and the mean of one latency, in ms; a percentile is None when there are too few requests for it."""

    n: int
    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


def percentiles(values_ms: Sequence[float]) -> Percentiles:
    """Of the values given; the mean is None as soon as one of them is infinite."""
    mean = statistics.fmean(values_ms) if values_ms and all(math.isfinite(v) for v in values_ms) else None
    p50, p90, p95, p99 = (percentile(values_ms, s) for s in (0.5, 0.9, 0.95, 0.99))
    return Percentiles(n=len(values_ms), mean=mean, p50=p50, p90=p90, p95=p95, p99=p99)
