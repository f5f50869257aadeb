"""How much slower one set of values is than another, with an interval: drift between repeats, slowdown beside others.

Welch's t on logarithms. Latencies are skewed and differ in spread between the two sets: the logarithm tames the tail so
that one stalled request does not decide, the difference of logarithms is a ratio, and Welch needs no equal variances.
A permutation test would need a seed and many rounds to say no more, and would give no interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.figures.distributions import t_cdf, t_quantile
from orchestrator.figures.plain import Plain
from orchestrator.figures.request import e2e_ms, normalised_ms
from orchestrator.figures.scope import by_repeat, good_of, values_of
from orchestrator.figures.stats import CONFIDENCE, Interval
from orchestrator.records.record import RequestRecord

MIN_VALUES = 5
MIN_CHANGE = 0.02
"""A smaller change is no drift, however sure: with many requests any two repeats differ by something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments(Plain):
    """All that a ratio needs of a set of positive values: how many, and mean and variance of their logarithms."""

    n: int
    mean_log: float
    var_log: float | None

    @property
    def geometric_mean(self) -> float:
        return math.exp(self.mean_log)


def moments(values: Sequence[float]) -> Moments | None:
    """Of the values above zero; None when there is none."""
    logs = [math.log(v) for v in values if v > 0 and math.isfinite(v)]
    if not logs:
        return None
    return Moments(
        n=len(logs), mean_log=statistics.fmean(logs), var_log=statistics.variance(logs) if len(logs) > 1 else None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Plain):
    """One geometric mean over another. `interval` and `p_value` are None with one value on a side."""

    value: float
    interval: Interval | None
    p_value: float | None
    n: int
    n_base: int


def ratio(of: Moments | None, base: Moments | None) -> Ratio | None:
    """`of` / `base`; None when one of them is missing."""
    if of is None or base is None:
        return None
    change = of.mean_log - base.mean_log
    if of.var_log is None or base.var_log is None:
        return Ratio(value=math.exp(change), interval=None, p_value=None, n=of.n, n_base=base.n)
    found = welch((of.var_log, of.n), (base.var_log, base.n))
    half = found.half_width
    interval = Interval(low=math.exp(change - half), high=math.exp(change + half))
    if found.error == 0:
        p_value = 1.0 if change == 0 else 0.0
    else:
        p_value = 2 * t_cdf(-abs(change) / found.error, found.df)
    return Ratio(value=math.exp(change), interval=interval, p_value=p_value, n=of.n, n_base=base.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Welch:
    """Of a difference of two means: its standard error, and the degrees of freedom by Welch and Satterthwaite."""

    error: float
    df: float

    @property
    def half_width(self) -> float:
        """Of the two-sided 95 % interval."""
        return t_quantile((1 + CONFIDENCE) / 2, self.df) * self.error if self.error else 0.0


def welch(of: tuple[float, int], base: tuple[float, int]) -> Welch:
    """From `(variance, n)` of each side, n >= 2. Two sides that do not vary at all have an error of 0."""
    a, b = (variance / n for variance, n in (of, base))
    if a + b == 0:
        return Welch(error=0.0, df=math.inf)
    df = (a + b) ** 2 / (a * a / (of[1] - 1) + b * b / (base[1] - 1))
    return Welch(error=math.sqrt(a + b), df=df)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift(Plain):
    """The last repeat against the first.

    Attributes:
        of: What was compared: `normalised` (E2E per output token), or `e2e` where tokens are unknown.
        first, last: The repeats.
        ratio: Above one: slower at the end.
        is_drift: The interval excludes one and the change is at least `MIN_CHANGE`.
    """

    of: str
    first: int
    last: int
    ratio: Ratio
    is_drift: bool


def drift(main: Sequence[RequestRecord]) -> Drift | None:
    """None with one repeat, or with fewer than `MIN_VALUES` good requests in the first or last."""
    parts = by_repeat(good_of(main))
    if len(parts) < 2:
        return None
    first, last = min(parts), max(parts)
    for name, value in (("normalised", normalised_ms), ("e2e", e2e_ms)):
        before, after = (values_of(parts[i], value) for i in (first, last))
        if min(len(before), len(after)) >= MIN_VALUES:
            return drift_of(before, after, of=name, first=first, last=last)
    return None


def drift_of(
    before: Sequence[float], after: Sequence[float], *, of: str, first: int = 0, last: int = 1
) -> Drift | None:
    """Of two sets of values, each of one a request; None with fewer than `MIN_VALUES` above zero in one of them."""
    base, end = moments(before), moments(after)
    found = ratio(end, base)
    if found is None or min(found.n, found.n_base) < MIN_VALUES or found.interval is None:
        return None
    is_sure = 1.0 not in found.interval and abs(found.value - 1) >= MIN_CHANGE
    return Drift(of=of, first=first, last=last, ratio=found, is_drift=is_sure)
