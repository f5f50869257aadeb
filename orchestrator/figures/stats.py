"""Small statistics: order-statistic percentiles, means over repeats, and how sure they are. Nothing is ever filled in.

All intervals are two-sided 95 %. A value that cannot be had from so few is None, never a guess.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from orchestrator.figures.distributions import binomial_cdf, normal_quantile, t_quantile
from orchestrator.figures.plain import Plain, plain
from orchestrator.values import Json

CONFIDENCE = 0.95
TAIL_SAMPLES = 3
"""How many values must be expected beyond a percentile above the median before it is shown."""
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Plain):
    """A two-sided 95 % confidence interval."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Plain):
    """Mean over repeats, standard deviation (n - 1 in the denominator; None below two repeats), and n."""

    mean: float
    sd: float | None
    n: int

    @property
    def half_width(self) -> float | None:
        """Of the t-interval: t(0.975, n - 1) x sd / sqrt(n)."""
        if self.sd is None:
            return None
        return t_quantile((1 + CONFIDENCE) / 2, self.n - 1) * self.sd / math.sqrt(self.n)

    @property
    def interval(self) -> Interval | None:
        half = self.half_width
        return None if half is None else Interval(low=self.mean - half, high=self.mean + half)

    @property
    def cv(self) -> float | None:
        """Coefficient of variation: sd / mean."""
        return None if self.sd is None or self.mean == 0 else self.sd / abs(self.mean)

    @property
    def relative_half_width(self) -> float | None:
        half = self.half_width
        return None if half is None or self.mean == 0 else half / abs(self.mean)

    def as_json(self) -> dict[str, Json]:
        derived = {"interval": self.interval, "cv": self.cv, "relative_half_width": self.relative_half_width}
        return {"mean": self.mean, "sd": self.sd, "n": self.n, **{k: plain(v) for k, v in derived.items()}}


def spread(values: Sequence[float]) -> Spread | None:
    """None for an empty sequence."""
    if not values:
        return None
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(mean=statistics.fmean(values), sd=sd, n=len(values))


def is_tight(rates: Sequence[float], half_width: float = 0.02, min_repeats: int = 3) -> bool:
    """The mean over repeats is known well enough to stop: half its t-interval is at most that share of it.

    Args:
        rates: One value a repeat.
        half_width: As a share of the mean.
        min_repeats: Below it (and below two) the answer is False: two equal values prove nothing.
    """
    found = spread(rates)
    if found is None or found.n < min_repeats or found.relative_half_width is None:
        return False
    return found.relative_half_width <= half_width


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The smallest of n >= 1 ascending values that at least `share` of them do not exceed."""
    return float(ordered[max(0, math.ceil(round(share * len(ordered), 9)) - 1)])


def values_needed(share: float) -> int:
    """How many values a percentile needs to be shown: 30 for p90, 60 for p95, 300 for p99; one up to the median.

    Above the median that is 3 / (1 - share): a p99 of a hundred is their maximum, whoever happened to be it.
    """
    if share <= 0.5 or share >= 1:
        return 1
    return math.ceil(round(TAIL_SAMPLES / (1 - share), 9))


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest observed value that at least `share` of the values do not exceed (nearest rank, no interpolation).

    Args:
        values: Any order; `math.inf` stands for a failure.
        share: In (0, 1]; 1 is the maximum.

    Returns:
        None when there are fewer than `values_needed`.
    """
    return None if len(values) < values_needed(share) else nearest_rank(sorted(values), share)


@lru_cache(maxsize=4096)
def interval_ranks(n: int, share: float) -> tuple[int, int] | None:
    """1-based ranks (l, u): the order statistics l and u enclose the percentile with at least 95 %, at most 2.5 % a
    side.

    P(X(l) <= percentile < X(u)) = P(l <= B < u), B binomial(n, share); free of any assumption on the distribution.

    Returns:
        None when n values cannot give it (below 6 for the median, below 72 for p95).
    """
    tail = (1 - CONFIDENCE) / 2
    low = _first(0, n, lambda k: binomial_cdf(k, n, share) > tail)
    high = _first(0, n, lambda k: binomial_cdf(k, n, share) >= 1 - tail) + 1
    return (low, high) if low >= 1 and high <= n else None


def _first(low: int, high: int, holds: object) -> int:
    """The smallest whole number in [low, high] of which a monotone condition holds; it holds of `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)  # type: ignore[operator]
    return low


def percentile_interval(ordered: Sequence[float], share: float) -> Interval | None:
    """The order-statistic interval of a percentile, from ascending values that are independent of each other."""
    ranks = interval_ranks(len(ordered), share)
    return None if ranks is None else Interval(low=float(ordered[ranks[0] - 1]), high=float(ordered[ranks[1] - 1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles(Plain):
    """p50 to p99, mean and extremes of one figure; a percentile is None when there are too few values for it.

    `intervals`: by name (`p50`) the order-statistic interval, where there is one.
    """

    n: int
    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    min: float | None = None
    max: float | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)


def percentiles(values: Sequence[float]) -> Percentiles:
    """Of one value a request; the mean is None as soon as one of them is infinite."""
    return percentiles_of_sorted(sorted(values))


def percentiles_of_sorted(ordered: Sequence[float], *, is_independent: bool = True) -> Percentiles:
    """Of ascending values. `is_independent` False (the gaps of a stream): percentiles without intervals."""
    n = len(ordered)
    if n == 0:
        return Percentiles(n=0, mean=None, p50=None, p90=None, p95=None, p99=None)
    shown = {name: nearest_rank(ordered, s) for name, s in SHARES.items() if n >= values_needed(s)}
    found = {name: percentile_interval(ordered, SHARES[name]) for name in shown} if is_independent else {}
    return Percentiles(
        n=n,
        mean=math.fsum(ordered) / n if math.isfinite(ordered[-1]) else None,
        p50=shown["p50"],
        p90=shown.get("p90"),
        p95=shown.get("p95"),
        p99=shown.get("p99"),
        min=float(ordered[0]),
        max=float(ordered[-1]),
        intervals={name: i for name, i in found.items() if i is not None},
    )


def wilson(hits: int, n: int) -> Interval | None:
    """The score interval of a share; None for n = 0. Unlike the normal one it is right for 0 % and 100 %."""
    if n == 0:
        return None
    z = normal_quantile((1 + CONFIDENCE) / 2)
    middle = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return Interval(low=max(0.0, middle - half), high=min(1.0, middle + half))
