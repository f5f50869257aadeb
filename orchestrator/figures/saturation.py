"""Does the queue grow without end? The slope of what is outstanding, and the knee of a series of cells."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.figures.distributions import t_quantile
from orchestrator.figures.plain import Plain
from orchestrator.figures.request import NS_PER_S
from orchestrator.figures.scope import Window, by_repeat
from orchestrator.figures.stats import CONFIDENCE, Interval
from orchestrator.figures.windows import levels, mean_levels
from orchestrator.records.record import RequestRecord

BLOCKS = 10
RAMP_BLOCKS = 2
"""The first blocks fill an empty server: they rise under any load."""
GROWTH_SHARE = 0.02
MIN_ARRIVALS = 20
MIN_POINTS = 5
BEND = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class OutstandingSlope(Plain):
    """How fast due and not yet answered requests pile up, while requests arrive.

    Attributes:
        per_s: Requests per second; `interval` of the regression over block means.
        share: Of the arrival rate: what the server falls behind by.
        is_growing: The interval is above zero and `share` above 2 %.
    """

    per_s: float
    interval: Interval
    share: float
    is_growing: bool


def outstanding_slope(main: Sequence[RequestRecord]) -> OutstandingSlope | None:
    """Slope of the mean number outstanding (due to ended), over 10 blocks of the time in which requests arrive.

    Counted from the schedule: with a cap the requests in flight stay at it, however long the queue. Block means are
    averaged over repeats; the first two blocks are left out. None with fewer than `MIN_ARRIVALS` a repeat.
    """
    blocks, lengths, rates = [], [], []
    for part in by_repeat(main).values():
        due = [r.scheduled_ns for r in part]
        first, last = min(due), max(due)
        if len(due) < MIN_ARRIVALS or last <= first:
            continue
        final = max([last, *(r.end_ns for r in part if r.end_ns is not None)])
        stay: list[Window] = [(r.scheduled_ns, r.end_ns if r.end_ns is not None else final) for r in part]
        edges = np.linspace(first, last, BLOCKS + 1).tolist()
        blocks.append(mean_levels(levels([w for w in stay if w[1] > w[0]]), edges))
        lengths.append((last - first) / NS_PER_S)
        rates.append((len(due) - 1) / lengths[-1])
    if not blocks:
        return None
    length_s, rate = statistics.fmean(lengths), statistics.fmean(rates)
    means = [statistics.fmean(column) for column in zip(*blocks, strict=True)]
    at_s = [(i + 0.5) * length_s / BLOCKS for i in range(BLOCKS)]
    slope, half = _regression(at_s[RAMP_BLOCKS:], means[RAMP_BLOCKS:])
    interval = Interval(low=slope - half, high=slope + half)
    return OutstandingSlope(
        per_s=slope,
        interval=interval,
        share=slope / rate,
        is_growing=interval.low > 0 and slope > GROWTH_SHARE * rate,
    )


def _regression(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Least-squares slope, and half of its t-interval; at least three points."""
    fit = statistics.linear_regression(x, y)
    middle = statistics.fmean(x)
    rest = sum((b - fit.slope * a - fit.intercept) ** 2 for a, b in zip(x, y, strict=True))
    error = (rest / (len(x) - 2) / sum((a - middle) ** 2 for a in x)) ** 0.5
    return fit.slope, t_quantile((1 + CONFIDENCE) / 2, len(x) - 2) * error


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee(Plain):
    """Where more users stop bringing more tokens.

    Attributes:
        concurrency: The measured level at which the two lines meet; tok_per_s: the fit's rate there.
        slope_before, slope_after: Tokens/s gained per user on either side.
        r2: Share of the variance that the two lines explain.
    """

    concurrency: float
    tok_per_s: float
    slope_before: float
    slope_after: float
    r2: float


def knee(points: Sequence[tuple[float, float]]) -> Knee | None:
    """Two joined lines through (concurrency, total tok/s), the joint tried at every inner level; least squares.

    Returns:
        None with fewer than `MIN_POINTS` levels, or when the second line is not at most half as steep as the first:
        the series ends before its knee.
    """
    found = dict(sorted(points))
    if len(found) < MIN_POINTS:
        return None
    x, y = np.array(list(found)), np.array(list(found.values()))
    total = float(((y - y.mean()) ** 2).sum())
    best: tuple[float, Knee] | None = None
    for at in x[1:-1]:
        sides = np.column_stack([np.ones_like(x), np.minimum(x - at, 0), np.maximum(x - at, 0)])
        (level, before, after), *_ = np.linalg.lstsq(sides, y, rcond=None)
        rest = float(((y - sides @ np.array([level, before, after])) ** 2).sum())
        if best is None or rest < best[0]:
            r2 = 1 - rest / total if total > 0 else 0.0
            best = (
                rest,
                Knee(
                    concurrency=float(at),
                    tok_per_s=float(level),
                    slope_before=float(before),
                    slope_after=float(after),
                    r2=r2,
                ),
            )
    if best is None or best[1].slope_before <= 0 or best[1].slope_after > BEND * best[1].slope_before:
        return None
    return best[1]
