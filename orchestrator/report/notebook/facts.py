"""What a figure's popover says: the cell's main figures with interval, n, definition and how each came about."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.figures.stats import Percentiles, Spread
from orchestrator.report.notebook.told import places, popover_lines
from orchestrator.report.notes import clock_words, slo_words
from orchestrator.report.sheet_figures import DERIVED, Figure, one
from orchestrator.report.tables import PointRow
from orchestrator.values import Json

HEAD = ("Figure", "Value", "95 % interval", "n", "Definition", "")
"""Columns of a popover; the last says measured, derived or stated."""


def figure_lines(point: PointRow) -> list[list[Json]]:
    """Lines of `HEAD`: those of the cell that are told."""
    own = [_line(x) for x in _own(point) if x.value is not None]
    return [*own, *popover_lines(point.figures.cell.stated)]


def said_of(point: PointRow) -> list[str]:
    """What speaks against the figures, then what explains them, the clock's error last."""
    f = point.figures
    slo = [slo_words(f.goodput)] if f.goodput is not None else []
    clock = clock_words(f.cell)
    where = "; ".join(places(f.cell.stated))
    return [*point.notes, *slo, *(w for w in (clock, f"where: {where}" if where else "") if w)]


def _own(point: PointRow) -> Iterator[Figure]:
    f = point.figures
    yield from _mean("all together", "output", f.output_tok_per_s)
    yield from _mean("prompt tokens", "prompt", f.prompt_tok_per_s if f.ingest is not None else None)
    yield one("per user", "per_user", f.per_user_tok_per_s, n=f.good)
    yield from _shares("first token", "ttft", f.ttft_ms)
    yield from _shares("time per output token", "tpot", f.tpot_ms, ("p50",))
    yield one("cached", "cached_share", f.cached_share, n=f.good, unit="share")
    if point.efficiency is not None:
        yield one("efficiency", "efficiency", point.efficiency, n=None, unit="share", method=DERIVED)


def _line(x: Figure) -> list[Json]:
    return [x.name, x.words, x.interval_words, x.n, x.definition, x.method]


def _mean(name: str, definition: str, found: Spread | None) -> Iterator[Figure]:
    if found is not None:
        yield one(name, definition, found.mean, n=found.n, interval=found.interval)


def _shares(name: str, definition: str, found: Percentiles, keys: tuple[str, ...] = ("p50", "p95")) -> Iterator[Figure]:
    for key in keys:
        value = getattr(found, key)
        if value is not None:
            yield one(f"{name} {key}", definition, value, n=found.n, interval=found.intervals.get(key))
