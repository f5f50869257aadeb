"""One load's table of configurations, as fields with what sorting, marking and the popover need of each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.report import foreign
from orchestrator.report.columns import Column, Line, Matrix, kept
from orchestrator.report.kinds.common import cached
from orchestrator.report.layout import series_table
from orchestrator.report.notebook.identity import Configuration, is_foreign, newest_only, older_runs
from orchestrator.report.notebook.levels import Level, headline_level, levels_of, matrix_of, points_of, shown_levels
from orchestrator.report.series import Series, SeriesKey, SeriesLine, may_be_best
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.text import DASH, seconds
from orchestrator.report.words import caption

OWN, STATED = "best", "best stated"
SAID_BY_ROW = ("ungated", "tunnel")
"""Marks that the row says once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardHead:
    """A column.

    Attributes:
        group: Words over it and its neighbours of the same group; empty: none.
        spoken: What a screen reader says after the text.
        is_low_good: A first click sorts upwards, and the lowest is the best.
    """

    text: str
    group: str = ""
    spoken: str = ""
    is_text: bool = False
    is_long: bool = False
    is_low_good: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardField:
    """A figure.

    Attributes:
        sort: None: sorted last, whichever way.
        best: `OWN`, `STATED` among what other reports state, or empty.
        note: The guard that it broke, or what is to be known of it.
        point: Whose popover it opens.
        is_soft: Of another level than the column's.
    """

    text: str
    sort: float | None = None
    best: str = ""
    note: str = ""
    point: PointRow | None = None
    is_struck: bool = False
    is_soft: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A configuration's line; who it is, the section says. older: runs of the same that the newest stands for."""

    configuration: Configuration
    line: SeriesLine
    fields: tuple[BoardField, ...]
    older: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """
    Attributes:
        sorted_by: Index of the column that the rows are sorted by, best first; None: another order.
    """

    key: SeriesKey
    caption: str
    head: tuple[BoardHead, ...]
    rows: tuple[BoardRow, ...]
    levels: int
    sorted_by: int | None
    has_best: bool


def board(series: Series, of_run: Mapping[str, Configuration]) -> Board:
    """The newest run of each configuration that carried this load."""
    series = newest_only(series, of_run)
    matrix = matrix_of(series)
    if matrix is None:
        return _long(series, of_run)
    found = _Columns(series=series, matrix=matrix, levels=shown_levels(series), at=headline_level(series))
    columns = found.columns()
    fields = [[write(line) for line in series.lines] for _, write in columns]
    marked = [_with_best(head, column, series) for (head, _), column in zip(columns, fields, strict=True)]
    rows = [_row(line, of_run, [column[i] for column in marked]) for i, line in enumerate(series.lines)]
    sorted_by = found.levels.index(found.at) if found.at in found.levels else None
    if sorted_by is not None:
        rows.sort(key=lambda row: (-_or_least(row.fields[sorted_by].sort), row.configuration.name))
    return Board(
        key=series.key,
        caption=_caption(series, matrix),
        head=tuple(head for head, _ in columns),
        rows=tuple(rows),
        levels=len(levels_of(series)),
        sorted_by=sorted_by,
        has_best=any(f.best for row in rows for f in row.fields),
    )


Write = Callable[[SeriesLine], BoardField]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """What the columns of a table with a matrix are made of. at: the level of the columns beside the matrix."""

    series: Series
    matrix: Matrix
    levels: tuple[Level, ...]
    at: Level | None

    def columns(self) -> list[tuple[BoardHead, Write]]:
        made = [(self._level_head(level), self._rate(level)) for level in self.levels]
        if self.at is None:
            return made
        group = f"at {self.at.users} {self._user(self.at.users)}{self._of_variant(self.at)}"
        made.append((BoardHead(text="First token (s)", group=group, is_low_good=True), self._first_token))
        tops = [Line(point=p) for line in self.series.lines if (p := self._point(line)) is not None]
        if any(cached(line) != DASH for line in tops):
            made.append((BoardHead(text="Cached", group=group), self._cached))
        for column in kept(self.matrix.beside, tops):
            head = BoardHead(
                text=column.head,
                group=group,
                is_text=column.is_text,
                is_long=column.is_long,
                is_low_good=column.head.startswith(("TTFT", "Read")),
            )
            made.append((head, self._beside(column)))
        if any(line.searches for line in self.series.lines):
            made.append((BoardHead(text="Search", is_text=True, is_long=True), _search))
        return made

    def _user(self, count: int) -> str:
        return ("agent" if self.series.family.name == "swarm" else "user") + ("" if count == 1 else "s")

    def _of_variant(self, level: Level) -> str:
        return f", {level.variant}" if level.variant else ""

    def _level_head(self, level: Level) -> BoardHead:
        """The first of a group says what its number counts; the others say it to who hears them."""
        what = self._user(level.users)
        is_first = level == next(x for x in self.levels if x.variant == level.variant)
        return BoardHead(
            text=f"{level.users} {what}" if is_first else str(level.users),
            group=f"{self.matrix.unit}{self._of_variant(level)}",
            spoken="" if is_first else f" {what}",
        )

    def _rate(self, level: Level) -> Write:
        def write(line: SeriesLine) -> BoardField:
            point = points_of(line).get(level)
            text = DASH if point is None else self.matrix.words(point)
            if point is None or text == DASH:
                return BoardField(text=DASH)
            is_valid = point.figures.is_valid
            return BoardField(
                text=text,
                sort=(_value(self.matrix, point) or first_number(text)) if is_valid else None,
                note=", ".join(mark for mark in point.marks if mark not in SAID_BY_ROW),
                point=point,
                is_struck=not is_valid,
            )

        return write

    def _point(self, line: SeriesLine) -> PointRow | None:
        """At the table's level; where there is none valid, at the highest of the same variant that is."""
        points = {x: p for x, p in points_of(line).items() if p.figures.is_valid}
        if self.at is None or self.at in points:
            return points.get(self.at) if self.at is not None else None
        return next((points[x] for x in sorted(points, reverse=True) if x.variant == self.at.variant), None)

    def _at_level(self, line: SeriesLine, write: Callable[[PointRow], tuple[str, float | None]]) -> BoardField:
        point = self._point(line)
        if point is None:
            return BoardField(text=DASH)
        text, value = write(point)
        if text == DASH or self.at is None or points_of(line).get(self.at) is point:
            return BoardField(text=text, sort=value, point=point if text != DASH else None)
        return BoardField(text=f"{text} at {point.figures.cell.concurrency}", point=point, is_soft=True)

    def _first_token(self, line: SeriesLine) -> BoardField:
        def write(point: PointRow) -> tuple[str, float | None]:
            value = foreign.latency_ms(point.figures, "ttft_ms", "p50")
            return foreign.latency_words(point.figures, "ttft_ms", "p50", seconds), value

        return self._at_level(line, write)

    def _cached(self, line: SeriesLine) -> BoardField:
        return self._at_level(line, lambda point: _with_number(cached(Line(point=point))))

    def _beside(self, column: Column) -> Write:
        return lambda line: self._at_level(line, lambda point: _with_number(column.words(Line(point=point))))


def first_number(text: str) -> float | None:
    """`203.4` of `203.4 ±1.2`."""
    found = re.search(r"-?\d+(?:\.\d+)?", text)
    return float(found[0]) if found else None


def _with_number(text: str) -> tuple[str, float | None]:
    return text, first_number(text)


def _search(line: SeriesLine) -> BoardField:
    return BoardField(text="; ".join(s.answer for s in line.searches) or DASH)


def _value(matrix: Matrix, point: PointRow) -> float | None:
    own = matrix.value(point)
    return foreign.output_tok_per_s(point.figures) if own is None else own


def _with_best(head: BoardHead, column: Sequence[BoardField], series: Series) -> list[BoardField]:
    """The best of what was measured here, and of what other reports state; all that read the same."""
    if head.is_text or head.is_long:
        return list(column)
    places = range(len(column))
    rows = [line.row for line in series.lines]
    own = [i for i in places if (p := column[i].point) is not None and may_be_best(rows[i], p, series.vantage)]
    told = [i for i in places if _may_be_best_stated(column[i], rows[i])]
    marks = {**dict.fromkeys(_best(column, told, head), STATED), **dict.fromkeys(_best(column, own, head), OWN)}
    return [replace(f, best=marks.get(i, "")) for i, f in enumerate(column)]


def _best(column: Sequence[BoardField], competing: Sequence[int], head: BoardHead) -> list[int]:
    """Their places."""
    rated = {i: v for i in competing if (v := column[i].sort) is not None and not column[i].is_soft}
    if not rated:
        return []
    value = (min if head.is_low_good else max)(rated.values())
    return [i for i, v in rated.items() if v == value]


def _may_be_best_stated(field: BoardField, row: RunRow) -> bool:
    """One number of one host; a run whose report says that its own check failed or varied does not compete."""
    gate = row.run.source.get("gate") if is_foreign(row) else None
    is_right = not isinstance(gate, Mapping) or gate.get("verdict") == "passed"
    is_number = field.text.removesuffix(foreign.MARK).rstrip("%").replace(".", "", 1).isdigit()
    return is_foreign(row) and is_right and is_number and len(row.run.hosts) == 1


def _row(line: SeriesLine, of_run: Mapping[str, Configuration], fields: Sequence[BoardField]) -> BoardRow:
    configuration = of_run[line.row.run.id]
    older = len(older_runs(configuration, line.row.run.id))
    return BoardRow(configuration=configuration, line=line, fields=tuple(fields), older=older)


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value


def _long(series: Series, of_run: Mapping[str, Configuration]) -> Board:
    """Line below line: one a point, or a lane of one."""
    table = series_table(series)
    lines = [line for _, line in series.all_lines]
    rows = [
        _row(row.line, of_run, [_long_field(f.text, f.is_struck, line, i == 0) for i, f in enumerate(row.fields)])
        for row, line in zip(table.rows, lines, strict=True)
    ]
    return Board(
        key=series.key,
        caption=table.caption,
        head=tuple(BoardHead(text=h.text, is_text=h.is_text, is_long=h.is_long) for h in table.head),
        rows=tuple(rows),
        levels=len(rows),
        sorted_by=None,
        has_best=False,
    )


def _long_field(text: str, is_struck: bool, line: Line, is_first: bool) -> BoardField:
    return BoardField(
        text=text,
        sort=None if is_struck else first_number(text),
        is_struck=is_struck,
        point=line.point if is_first else None,
    )


def _caption(series: Series, matrix: Matrix) -> str:
    if series.family.matrix is not None:
        return caption(series)
    words = "" if series.vantage == "unknown" else f" Load from {series.vantage} unless said."
    return f"{matrix.of}. {series.family.caption}{words} Struck figures broke the guard that is named."
