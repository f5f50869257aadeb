"""Find the largest level (users, or requests/s) that meets a service level: bracket, then bisect.

Levels double from `low` until one misses or `high` is reached, then the gap between the largest that met and the
smallest that missed is halved (on a scale of ratios) until it is within the precision. A level counts by the interval
on its attainment; one that stays undecided after all its repeats counts by the share itself and is named so. That more
load is never better is checked, not assumed: a level that met above one that missed is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MET, MISSED, UNDECIDED = "met", "missed", "undecided"
GROWTH = 2.0


class Ended(StrEnum):
    """Why a search has no further level. BRACKETED: as close as asked for. ALL_MET: even the highest met.
    NONE_MET: even the lowest missed. SPOILED: a level broke a guard, its figure is none. UNJUDGED: of no request of a
    level it could be said whether it was good. BUDGET: the time was over before there was an answer."""

    BRACKETED = "bracketed"
    ALL_MET = "all_met"
    NONE_MET = "none_met"
    SPOILED = "spoiled"
    UNJUDGED = "unjudged"
    BUDGET = "budget"


OPEN_ENDS = frozenset({Ended.SPOILED, Ended.UNJUDGED, Ended.BUDGET})
"""There is no answer, only what was seen so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Where to look. `is_whole`: levels are whole numbers (users)."""

    low: float
    high: float
    precision: float
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A level that was measured.

    Attributes:
        verdict: `met`, `missed`, or `undecided` while the interval encloses the share.
        attainment: Share of its requests that were good; None: none could be judged.
        is_valid: It broke no guard.
        can_go_on: It has repeats left.
    """

    level: float
    verdict: str
    attainment: float | None
    share: float
    is_valid: bool = True
    can_go_on: bool = False

    @property
    def is_met(self) -> bool:
        """Decided by the interval, else by the share itself."""
        if self.verdict != UNDECIDED:
            return self.verdict == MET
        return self.attainment is not None and self.attainment >= self.share

    @property
    def is_judged(self) -> bool:
        """It says anything of the level."""
        return self.is_valid and (self.verdict != UNDECIDED or self.attainment is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer.

    Attributes:
        best: The largest level that met; None: not even the lowest.
        missed: The smallest level above it that missed; None: even the highest met.
        is_certain: Both are decided by their intervals.
        notes: Levels that met above one that missed.
    """

    ended: Ended
    best: float | None
    missed: float | None
    is_certain: bool
    notes: tuple[str, ...] = ()


def next_level(where: Range, tried: Sequence[Tried]) -> float | Found:
    """The level to measure next (one of `tried` again while it is undecided), or the answer."""
    for t in tried:
        if not t.is_valid:
            return _found(Ended.SPOILED, tried)
        if t.verdict == UNDECIDED and t.can_go_on:
            return t.level
        if not t.is_judged:
            return _found(Ended.UNJUDGED, tried)
    low, high = _level(where, where.low), _level(where, where.high)
    missed = min((t.level for t in tried if not t.is_met), default=None)
    best = max((t.level for t in tried if t.is_met and (missed is None or t.level < missed)), default=None)
    if missed is None:
        if best is None:
            return low
        if best >= high:
            return _found(Ended.ALL_MET, tried)
        return _level(where, min(high, best * GROWTH))
    if best is None:
        return _found(Ended.NONE_MET, tried) if missed <= low else low
    middle = _level(where, math.sqrt(best * missed))
    is_close = (missed - best) / best <= where.precision or (where.is_whole and missed - best <= 1)
    if is_close or any(t.level == middle for t in tried):
        return _found(Ended.BRACKETED, tried)
    return middle


def interrupted(tried: Sequence[Tried]) -> Found:
    """What is known when the time is over."""
    return _found(Ended.BUDGET, tried)


def _level(where: Range, level: float) -> float:
    """Whole users, one at least; of a rate three digits, so that its cell has a short name."""
    return max(1.0, float(round(level))) if where.is_whole else float(f"{level:.3g}")


def _found(ended: Ended, all_tried: Sequence[Tried]) -> Found:
    tried = [t for t in all_tried if t.is_judged]
    missed = min((t.level for t in tried if not t.is_met), default=None)
    below = [t for t in tried if t.is_met and (missed is None or t.level < missed)]
    best = max(below, key=lambda t: t.level, default=None)
    ends = [t for t in tried if (best is not None and t.level == best.level) or t.level == missed]
    above = sorted(t.level for t in tried if missed is not None and t.is_met and t.level > missed)
    return Found(
        ended=ended,
        best=None if best is None else best.level,
        missed=missed,
        is_certain=ended not in OPEN_ENDS and all(t.verdict != UNDECIDED for t in ends),
        notes=tuple(f"{level:g} met although {missed:g} missed" for level in above),
    )
