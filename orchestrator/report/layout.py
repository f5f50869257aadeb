"""The tables as fields, the same for Markdown and the page: what each says, what is struck, what is best."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.report import foreign
from orchestrator.report.blocks import Block, line_remarks, shared_remarks
from orchestrator.report.columns import MARKS, Column, Line, Matrix, kept
from orchestrator.report.notes import clock_words, slo_words
from orchestrator.report.series import Series, SeriesLine
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH, number, seconds, share
from orchestrator.report.words import caption


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    text: str
    is_text: bool = False
    is_long: bool = False
    is_aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a table.

    Attributes:
        note: What must stand with it: the guard that it broke, or what is to be known of it.
        hover: What more there is to know.
    """

    text: str
    is_struck: bool = False
    is_best: bool = False
    note: str = ""
    hover: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """One run's line; who it is, the layout says."""

    line: SeriesLine
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesTable:
    """Runs side by side."""

    title: str
    caption: str
    head: tuple[Head, ...]
    rows: tuple[SeriesRow, ...]
    has_best: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRow:
    """One line of a run's table. remarks: what explains it, the client's error bar last."""

    fields: tuple[Field, ...]
    notes: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTable:
    """One run's table of one load; the notes are for the layout to place."""

    title: str
    caption: str
    head: tuple[Head, ...]
    rows: tuple[BlockRow, ...]
    answers: tuple[str, ...]


def series_table(series: Series) -> SeriesTable:
    matrix = series.family.matrix
    if matrix is None:
        return _long(series)
    columns = _beside(series, matrix)
    has_search = any(line.searches for line in series.lines)
    best = {c: series.find_best(c) for c in series.levels}
    rows = []
    for line in series.lines:
        fields = [_rate(matrix, line.points.get(c), found) for c, found in best.items()]
        fields += [Field(text=first_token(line)), *(_top(line, column) for column in columns)]
        fields += [Field(text="; ".join(s.answer for s in line.searches) or DASH)] if has_search else []
        rows.append(SeriesRow(line=line, fields=tuple(fields)))
    head = [Head(text=f"c={c}") for c in series.levels]
    head += [Head(text="First token (s)"), *(_head(c) for c in columns)]
    head += [Head(text="Search", is_text=True, is_long=True)] if has_search else []
    return SeriesTable(
        title=series.key.title, caption=caption(series), head=tuple(head), rows=tuple(rows), has_best=True
    )


def block_table(block: Block) -> BlockTable:
    columns, shared = (*block.lead, *block.columns), shared_remarks(block)
    return BlockTable(
        title=block.title,
        caption=block.family.caption,
        head=tuple(_head(c) for c in columns),
        rows=tuple(
            BlockRow(
                fields=tuple(_field(column, line) for column in columns),
                notes=line.notes,
                remarks=tuple(r for r in line_remarks(block, line) if r not in shared),
            )
            for line in block.lines
        ),
        answers=(*block.answers, *(f"all: {r}" for r in shared)),
    )


def first_token(line: SeriesLine) -> str:
    """`0.51 at 8`: the median and the level that it is of."""
    if line.top is None:
        return DASH
    figures = line.top.figures
    text = foreign.latency_words(figures, "ttft_ms", "p50", seconds)
    return f"{text} at {figures.cell.concurrency}"


def _long(series: Series) -> SeriesTable:
    pairs = series.all_lines
    columns = (*series.family.lead, *kept((MARKS, *series.family.columns), [line for _, line in pairs]))
    return SeriesTable(
        title=series.key.title,
        caption=caption(series),
        head=tuple(_head(c) for c in columns),
        rows=tuple(
            SeriesRow(line=of_run, fields=tuple(_field(column, line) for column in columns)) for of_run, line in pairs
        ),
        has_best=False,
    )


def _beside(series: Series, matrix: Matrix) -> tuple[Column, ...]:
    tops = [Line(point=line.top) for line in series.lines if line.top is not None]
    cached = Column(head="Cached", short="", words=lambda line: share(line.figures.cached_share, 1))
    return (cached, *kept(matrix.beside, tops))


def _top(line: SeriesLine, column: Column) -> Field:
    return Field(text=DASH) if line.top is None else _field(column, Line(point=line.top))


def _head(column: Column) -> Head:
    return Head(text=column.head, is_text=column.is_text, is_long=column.is_long, is_aside=column.is_aside)


def _field(column: Column, line: Line) -> Field:
    text = column.words(line)
    return Field(text=text, is_struck=text not in ("", DASH) and column.is_struck(line))


def _rate(matrix: Matrix, point: PointRow | None, best: PointRow | None) -> Field:
    text = DASH if point is None else matrix.words(point)
    if point is None or text == DASH:
        return Field(text=DASH)
    f = point.figures
    known = ("ungated", "tunnel")  # the line says so
    return Field(
        text=text,
        is_struck=not f.is_valid,
        is_best=point is best,
        note=", ".join(mark for mark in point.marks if mark not in known),
        hover=_hover(point),
    )


def _hover(point: PointRow) -> str:
    f = point.figures
    speed, first = number(f.per_user_tok_per_s), seconds(foreign.latency_ms(f, "ttft_ms", "p50"))
    parts = [f"{speed} tok/s per user, first token {first} s, {f.good} requests"]
    parts += [slo_words(f.goodput)] if f.goodput is not None else []
    return "; ".join([*parts, *(w for w in (clock_words(f.cell),) if w)])
