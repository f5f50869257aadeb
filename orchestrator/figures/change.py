"""One sample against another: how much more or less, and how sure that is.

A ratio of geometric means over repeats with Welch's t on logarithms, where all values are above zero. Else, and for
shares, a difference: of means over repeats with Welch's t, and of shares of requests with Newcombe's interval (the two
Wilson intervals, squared and added), which a share at 0 or 1 does not make infinitely sure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.figures.plain import Plain
from orchestrator.figures.ratio import moments, ratio, welch
from orchestrator.figures.samples import Sample
from orchestrator.figures.stats import Interval, wilson

ROUNDING = 1e-9
"""Relative: below it two means differ by their summation alone."""


class Form(StrEnum):
    """RATIO: b / a. DIFFERENCE: b - a, in the figure's unit."""

    RATIO = "ratio"
    DIFFERENCE = "difference"

    @property
    def neutral(self) -> float:
        return 1.0 if self is Form.RATIO else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Plain):
    """B against A.

    Attributes:
        a, b: The two means that `value` is made of.
        value: Infinite, or 0, where one side's never came and the other's did.
        interval: Two-sided, 95 %; None with fewer than two repeats on a side, and for what is stated or pooled.
    """

    form: Form
    a: float
    b: float
    value: float
    interval: Interval | None

    @property
    def is_none(self) -> bool:
        """The two are the same, or the interval does not say that they are not."""
        if self.interval is None:
            return False
        scale = 1.0 if self.form is Form.RATIO else max(abs(self.a), abs(self.b))
        return self.form.neutral in self.interval or abs(self.value - self.form.neutral) <= ROUNDING * scale


def change_of(a: Sample, b: Sample, *, is_share: bool = False) -> Change | None:
    """None: one side has no value, or a figure that came in some of its repeats only.

    Args:
        is_share: Of one: compared by its difference.
    """
    if not (a.is_finite and b.is_finite):
        return _never(a, b)
    if a.is_positive and b.is_positive and not is_share:
        return _ratio(a, b)
    if a.mean is None or b.mean is None:
        return None
    if a.hits is not None and a.judged and b.hits is not None and b.judged:
        interval = newcombe((a.hits, a.judged), (b.hits, b.judged))
    else:
        interval = mean_difference(a.values, b.values)
    return Change(form=Form.DIFFERENCE, a=a.mean, b=b.mean, value=b.mean - a.mean, interval=interval)


def mean_difference(a: Sequence[float], b: Sequence[float]) -> Interval | None:
    """Of mean(b) - mean(a), by Welch's t; None with fewer than two values on a side."""
    if min(len(a), len(b)) < 2:
        return None
    value = statistics.fmean(b) - statistics.fmean(a)
    half = welch((statistics.variance(b), len(b)), (statistics.variance(a), len(a))).half_width
    return Interval(low=value - half, high=value + half)


def newcombe(a: tuple[int, int], b: tuple[int, int]) -> Interval | None:
    """Of the difference of two shares `(hits, n)`, b - a; None for an n of 0.

    R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10.
    """
    of_a, of_b = wilson(*a), wilson(*b)
    if of_a is None or of_b is None:
        return None
    share_a, share_b = a[0] / a[1], b[0] / b[1]
    below = math.hypot(share_b - of_b.low, of_a.high - share_a)
    above = math.hypot(of_b.high - share_b, share_a - of_a.low)
    return Interval(low=share_b - share_a - below, high=share_b - share_a + above)


def _ratio(a: Sample, b: Sample) -> Change | None:
    mean_a, mean_b = a.geometric_mean, b.geometric_mean
    if mean_a is None or mean_b is None:
        return None
    found = ratio(moments(b.values), moments(a.values))
    return Change(
        form=Form.RATIO,
        a=mean_a,
        b=mean_b,
        value=mean_b / mean_a if found is None else found.value,
        interval=None if found is None else found.interval,
    )


def _never(a: Sample, b: Sample) -> Change | None:
    """One side never came in any repeat, the other came in all; anything else cannot be put as a number."""
    lost_a, lost_b = (bool(s.values) and all(math.isinf(v) for v in s.values) for s in (a, b))
    if lost_a == lost_b or not (a.is_finite or b.is_finite):
        return None
    mean_a, mean_b = a.geometric_mean, b.geometric_mean
    if mean_a is None or mean_b is None:
        return None
    value = math.inf if lost_b else 0.0
    is_repeated = min(len(a.values), len(b.values)) > 1
    interval = Interval(low=value, high=value) if is_repeated else None
    return Change(form=Form.RATIO, a=mean_a, b=mean_b, value=value, interval=interval)
