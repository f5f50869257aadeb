"""How much longer a sweep takes: what each cell took so far, and for those not begun the estimate, corrected."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.pipeline.course import Course
from orchestrator.sweep.estimate import TOK_PER_S, cell_seconds


def remaining_s(courses: Sequence[Course]) -> float | None:
    """Seconds to the end of all repeats planned; None before the first repeat ended.

    A cell without a repeat gets its estimate times the ratio of time taken to estimate over those that have one.
    """
    known = [(c, c.lap_s) for c in courses]
    measured = sum(lap_s for _, lap_s in known if lap_s is not None)
    estimated = sum(_estimate_s(c) for c, lap_s in known if lap_s is not None)
    if not measured or not estimated:
        return None
    left = 0.0
    for course, lap_s in known:
        if course.stop_reason is None:
            each = lap_s if lap_s is not None else _estimate_s(course) * measured / estimated
            left += each * max(0, course.repeats - len(course.laps))
    return left


def _estimate_s(course: Course) -> float:
    return max(0.1, cell_seconds(course.cell, tok_per_s=TOK_PER_S) / course.repeats)


def words(seconds: float | None) -> str:
    """`about 12 min left`, empty when unknown."""
    if seconds is None:
        return ""
    return f"about {seconds:.0f} s left" if seconds < 90 else f"about {seconds / 60:.0f} min left"
