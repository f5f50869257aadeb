"""One run's tables: one a workload and kind, sizes that vary as columns, what holds for all lines said once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.figures.saturation import Knee, knee
from orchestrator.records.record import CellRecord
from orchestrator.report.columns import Column, Family, Line, kept, varying
from orchestrator.report.kinds.families import find_family, load_title
from orchestrator.report.notes import error_bar, slo_words, stamp_lag_ms, stamp_words
from orchestrator.report.searches import SearchAnswer
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.text import number


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One table of a run.

    Attributes:
        lead: Columns that tell the lines apart. columns: their figures.
        answers: Of searches, and where the knees are, in sentences.
    """

    title: str
    family: Family
    lead: tuple[Column, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    answers: tuple[str, ...]


def line_remarks(block: Block, line: Line) -> tuple[str, ...]:
    """What explains a line, the client's error bar last; the service level only where no column has it."""
    has_slo = any(c.group == "slo" and c.is_text for c in block.columns)
    slo = slo_words(line.figures.goodput) if has_slo and line.figures.goodput is not None else None
    is_own = not line.lane or line.alone is None
    clock = (error_bar(line.cell), stamp_words(stamp_lag_ms(line.cell))) if is_own else ()
    return tuple(r for r in (*line.remarks, *clock) if r and r != slo)


def shared_remarks(block: Block) -> tuple[str, ...]:
    """Those that all of several lines have."""
    if len(block.lines) < 2:
        return ()
    first, *rest = (line_remarks(block, line) for line in block.lines)
    return tuple(r for r in first if all(r in other for other in rest))


def blocks(points: Sequence[PointRow], searches: Sequence[SearchAnswer] = ()) -> tuple[Block, ...]:
    """In the order of the points; a search stands with the first block that has a cell of its load."""
    found: dict[tuple[str, str], list[PointRow]] = {}
    for point in points:
        found.setdefault((point.figures.cell.workload, point.figures.cell.kind), []).append(point)
    left = list(searches)
    made = []
    for part in found.values():
        here = [s for s in left if any(s.is_of(p.figures.cell) for p in part)]
        left = [s for s in left if s not in here]
        made.append(_block(part, here))
    return tuple(made)


def answers_without_points(row: RunRow) -> tuple[str, ...]:
    """Searches none of whose levels can be read."""
    cells = [p.figures.cell for p in row.points]
    return tuple(f"{s.workload}: {s.words}" for s in row.searches if not any(s.is_of(c) for c in cells))


def _block(points: Sequence[PointRow], searches: Sequence[SearchAnswer]) -> Block:
    cell = points[0].figures.cell
    family = find_family(cell.kind)
    lines = tuple(sorted(family.lines(points), key=family.order))
    axes = varying(family.axes, lines)
    return Block(
        title=load_title(cell, [a for a in family.axes if a not in axes]),
        family=family,
        lead=(*(a.column for a in axes), *family.lead),
        columns=kept(family.columns, lines),
        lines=lines,
        answers=(*(_search_words(s, points) for s in searches), *_knees(family, points)),
    )


def _search_words(search: SearchAnswer, points: Sequence[PointRow]) -> str:
    """With the sizes, where the block has several."""
    own = [p.figures.cell for p in points if search.is_of(p.figures.cell)]
    axes = varying(find_family(own[0].kind).axes, [Line(point=p) for p in points])
    sizes = ", ".join(w for w in (a.title(own[0]) for a in axes) if w)
    return f"{search.words} ({sizes})" if sizes else search.words


def _knees(family: Family, points: Sequence[PointRow]) -> Iterator[str]:
    """Of each series of users, by its valid figures."""
    if family.matrix is None:
        return
    series: dict[tuple[int, int, int], list[PointRow]] = {}
    for p in points:
        cell = p.figures.cell
        series.setdefault((cell.prompt_tok, cell.output_tok, cell.depth_tok), []).append(p)
    for part in series.values():
        rates = {
            float(p.figures.cell.concurrency): value
            for p in part
            if p.figures.is_valid and (value := family.matrix.value(p)) is not None
        }
        if (found := knee(list(rates.items()))) is not None:
            yield _knee_words(found, part[0].figures.cell, is_one=len(series) == 1)


def _knee_words(found: Knee, cell: CellRecord, *, is_one: bool) -> str:
    sizes = "" if is_one else f" ({cell.prompt_tok} in, {cell.output_tok} out)"
    return (
        f"knee at {found.concurrency:g} users{sizes}: {number(found.slope_before)} tok/s for each user more before it, "
        f"{number(found.slope_after)} after (derived: two joined lines)"
    )
