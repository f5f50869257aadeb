"""A comparison in words: what differs, a table for each workload, how to read it; the same in every layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.figures.change import Change, Form
from orchestrator.report.compare import CellChange, Comparison
from orchestrator.report.differences import Difference
from orchestrator.report.figure_change import FigureChange, Verdict
from orchestrator.report.headlines import Headline
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.text import DASH, number
from orchestrator.report.words import engine_words, host_words
from orchestrator.values import Json, canonical_json

HEAD = ("cell", "figure", "A", "B", "change", "95 % interval", "verdict")
NUMBERS = (2, 3, 4, 5)
"""Columns of `HEAD` that are numbers."""
DIFFERENCES_HEAD = ("what differs", "A", "B")
CAPTION = (
    "Change: B against A, the ratio of the geometric means over repeats, with its interval by Welch's t on logarithms; "
    "of a latency each repeat gives its median (or p95), a failed request counting as one that never came. Shares: the "
    "difference in points. No difference: the interval encloses none; how wide it is says how much may hide in it. Of "
    "twenty figures that are truly alike one lies outside its interval by chance, and what a restart of the server "
    "changes is in none."
)
CAPTION_WITHOUT = "Change: B against A. Without an interval nobody knows whether a change is more than chance."


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """One line of a table, by `HEAD`. verdict: the bare one; None: a line of a whole cell."""

    fields: tuple[str, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTable:
    """All pairs of one workload. marks: what is to be known of its cells."""

    workload: str
    rows: tuple[FigureRow, ...]
    marks: tuple[str, ...]


def run_words(row: RunRow) -> str:
    """`Tiny (20261130T…): vllm 0.31.0 on spark01, Gate 0 passed`."""
    where = host_words(row)
    ran = " on ".join(w for w in (engine_words(row), where) if w)
    gated = row.verdict + (", ungated" if row.run.is_ungated else "")
    return f"{row.run.profile_title} ({row.run.id}): {ran}, {gated}"


def difference_rows(differences: Sequence[Difference]) -> tuple[tuple[str, str, str], ...]:
    """By `DIFFERENCES_HEAD`."""
    return tuple((d.name, told(d.a), told(d.b)) for d in differences)


def told(value: Json) -> str:
    """A dash for what is not set or not told; a list of words as they stand on a command line."""
    if value is None:
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, str | int | float) for v in value):
        return " ".join(str(v) for v in value)
    return canonical_json(value)


def workload_tables(found: Comparison) -> tuple[WorkloadTable, ...]:
    """In the order of the cells."""
    by_workload: dict[str, list[CellChange]] = {}
    for cell in found.cells:
        by_workload.setdefault(cell.cells[0].workload, []).append(cell)
    return tuple(
        WorkloadTable(
            workload=name,
            rows=tuple(row for cell in cells for row in _rows(cell)),
            marks=_marks(cells),
        )
        for name, cells in by_workload.items()
    )


def unpaired_words(found: Comparison) -> tuple[str, ...]:
    """`only in A: chat/closed-p128-o256-c64`."""
    sides: tuple[tuple[str, tuple[PointRow, ...]], ...] = (("A", found.only_a), ("B", found.only_b))
    names = {side: [f"{p.figures.cell.workload}/{p.figures.cell.id}" for p in points] for side, points in sides}
    return tuple(f"only in {side}: {', '.join(of_side)}" for side, of_side in names.items() if of_side)


def summary(found: Comparison) -> str:
    """`12 figures of 4 cells: 3 better, 1 worse, 8 no difference`."""
    counts = {verdict: count for verdict, count in found.counts.items() if count}
    total, cells = sum(counts.values()), sum(bool(cell.figures) for cell in found.cells)
    if not found.cells:
        return "no cell of one has a cell of the same load in the other: nothing to compare"
    words = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items()) or "nothing to compare"
    return f"{_count(total, 'figure')} of {_count(cells, 'cell')}: {words}"


def caption(found: Comparison) -> str:
    """How the tables are to be read; empty without one."""
    return "" if not found.cells else CAPTION if found.has_verdict else CAPTION_WITHOUT


def worse_words(found: Comparison, share: float) -> tuple[str, ...]:
    """Each figure that is surely worse by more than that, with its interval."""
    return tuple(
        f"{cell.cells[0].workload}/{cell.name}: {figure_title(f)} {change_words(f.headline, f.change)} "
        f"({interval_words(f.headline, f.change)})"
        for cell, f in found.worse_by(share)
    )


def figure_title(figure: FigureChange) -> str:
    """With its lane; of a stated one that is a mean, or does not tell what it is, not as a median."""
    title = figure.headline.title
    told = {s.statistic for s in (figure.a, figure.b) if s is not None and s.is_stated}
    if told and "p50" not in told:
        title = title.replace(" p50", " mean" if told == {"mean"} else "")
    return f"{figure.lane}: {title}" if figure.lane else title


def change_words(headline: Headline, change: Change | None) -> str:
    """`+116 %`, `+2.9 points`, `-4100 tok`."""
    if change is None:
        return DASH
    if change.value == math.inf:
        return "never came"
    return f"{_signed(headline, change.form, change.value)} {_unit(headline, change.form)}".strip()


def interval_words(headline: Headline, change: Change | None) -> str:
    """`+98 to +135 %`; a dash without one."""
    if change is None or change.interval is None or not math.isfinite(change.interval.high):
        return DASH
    low, high = (_signed(headline, change.form, v) for v in (change.interval.low, change.interval.high))
    return f"{low} to {high} {_unit(headline, change.form)}".strip()


def _unit(headline: Headline, form: Form) -> str:
    return "%" if form is Form.RATIO else "points" if headline.is_share else headline.unit


def _signed(headline: Headline, form: Form, value: float) -> str:
    shown = (value - 1) * 100 if form is Form.RATIO else value * 100 if headline.is_share else value
    text = number(shown, 0 if abs(shown) >= 99.95 else 1)
    return "0.0" if float(text) == 0 else text if text.startswith("-") else f"+{text}"


def _rows(cell: CellChange) -> list[FigureRow]:
    """The cell's name on its first line; a pair that is refused as a whole has one line."""
    if cell.refusal:
        words = (cell.name, "all", DASH, DASH, DASH, DASH, f"{Verdict.NOT_COMPARABLE.value}: {cell.refusal}")
        return [FigureRow(fields=words, verdict=Verdict.NOT_COMPARABLE)]
    return [_row(cell.name if i == 0 else "", figure) for i, figure in enumerate(cell.figures)]


def _row(name: str, figure: FigureChange) -> FigureRow:
    verdict = figure.verdict.value + (f": {figure.reason}" if figure.reason else "")
    headline, change = figure.headline, figure.change
    fields = (
        name,
        figure_title(figure),
        *(headline.shown(value) for value in figure.values),
        change_words(headline, change),
        interval_words(headline, change),
        verdict,
    )
    return FigureRow(fields=fields, verdict=figure.verdict)


def _marks(cells: Sequence[CellChange]) -> tuple[str, ...]:
    """Each once, with the cells that it is of, unless it is of all."""
    shown = [cell for cell in cells if not cell.refusal]
    found: dict[str, list[str]] = {}
    for cell in shown:
        sides = [f"{side}: {', '.join(point.marks)}" for side, point in (("A", cell.a), ("B", cell.b)) if point.marks]
        if sides:
            found.setdefault("; ".join(sides), []).append(cell.name)
    return tuple(
        f"{'all' if len(names) == len(shown) > 1 else ', '.join(names)}: {mark}" for mark, names in found.items()
    )


def _count(number_: int, what: str) -> str:
    return f"{number_} {what}" if number_ == 1 else f"{number_} {what}s"
