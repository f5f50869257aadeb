"""How many requests are in flight, exactly: a sweep-line over their starts and ends.

Counting a request in every whole second that it touches, as some tools do, reports peaks that never were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.figures.columns import Floats
from orchestrator.figures.scope import Window


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """A step function: `count[i]` intervals are open over [at_ns[i], at_ns[i + 1]); both of shape (edges,).

    An interval is open from its start, its end excluded: one that begins as another ends makes no peak.
    """

    at_ns: NDArray[np.int64]
    count: NDArray[np.int64]

    @property
    def peak(self) -> int:
        return int(self.count.max(initial=0))


def levels(intervals: Sequence[Window]) -> Levels:
    starts = np.array([a for a, _ in intervals], dtype=np.int64)
    ends = np.array([b for _, b in intervals], dtype=np.int64)
    edges, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    change = np.zeros(len(edges), dtype=np.int64)
    np.add.at(change, place, np.repeat(np.array([1, -1]), len(intervals)))
    return Levels(at_ns=edges, count=np.cumsum(change))


def windows_at_least(found: Levels, level: float, *, bridge_ns: int = 0) -> tuple[Window, ...]:
    """The times in which at least `level` are open; dips of at most `bridge_ns` between two of them are bridged."""
    windows: list[Window] = []
    for i in np.flatnonzero(found.count[:-1] >= level).tolist():
        start, end = int(found.at_ns[i]), int(found.at_ns[i + 1])
        if windows and start - windows[-1][1] <= bridge_ns:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return tuple(windows)


def mean_levels(found: Levels, edges_ns: Sequence[float]) -> tuple[float, ...]:
    """The mean count between each two successive edges, exactly; n - 1 of them."""
    at = np.asarray(edges_ns, dtype=np.float64)
    if len(found.at_ns) == 0:
        return (0.0,) * (len(at) - 1)
    times = found.at_ns.astype(np.float64)
    area = np.concatenate([[0.0], np.cumsum(found.count[:-1] * np.diff(times))])
    # The integral is linear between edges, 0 before the first and constant after the last.
    means: list[float] = (np.diff(np.interp(at, times, area)) / np.diff(at)).tolist()
    return tuple(means)


def tokens_within(windows: Sequence[Window], at_ns: Floats, tok: Floats) -> float:
    """Tokens of the events in (start, end] of each window, each event with all of its own.

    What arrives just as a window opens was computed before it.

    Args:
        at_ns, tok: Shape (events,), ascending in time.
    """
    upto = np.concatenate([[0.0], np.cumsum(tok)])
    starts, ends = (np.array([w[i] for w in windows], dtype=np.float64) for i in (0, 1))
    found = upto[np.searchsorted(at_ns, ends, side="right")] - upto[np.searchsorted(at_ns, starts, side="right")]
    return float(found.sum())
