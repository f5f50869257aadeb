"""One table a load: runs stand side by side only where workload, kind, sizes and terms are the same.

What may be marked best is decided here, for every layout alike: a valid and gated figure of one host, measured from
where most of its table was measured. All else is shown and says why it does not compete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.record import CellRecord
from orchestrator.report.columns import Family, Line
from orchestrator.report.kinds.families import find_family, load_title
from orchestrator.report.searches import SearchAnswer
from orchestrator.report.tables import PointRow, RunRow

VANTAGES = ("local", "lan", "tailnet", "tunnel")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeriesKey:
    """The load of a table. Sizes that make no table of their own are 0: a recording's, and those of a mixed load."""

    workload: str
    kind: str
    prefix_tok: int
    prompt_tok: int
    output_tok: int
    depth_tok: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLine:
    """One run in one table.

    Attributes:
        lines: Its points, or the lanes of them, in the family's order.
        other_vantages: Where its load ran from, if not from where the table's did.
        searches: What it found of this load.
    """

    row: RunRow
    lines: tuple[Line, ...]
    other_vantages: tuple[str, ...] = ()
    searches: tuple[SearchAnswer, ...] = ()

    @property
    def points(self) -> Mapping[int, PointRow]:
        """By number of users: of a family with a matrix."""
        return {line.cell.concurrency: line.point for line in self.lines}

    @property
    def top(self) -> PointRow | None:
        """The point of the highest level that has a valid figure; None when no level has."""
        points = self.points
        return next((points[c] for c in sorted(points, reverse=True) if points[c].figures.is_valid), None)

    @property
    def is_ungated(self) -> bool:
        return self.row.run.is_ungated or any(line.cell.is_ungated for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """All runs that carried one load, the best at the highest level first."""

    key: SeriesKey
    family: Family
    levels: tuple[int, ...]
    vantage: str
    lines: tuple[SeriesLine, ...]

    def find_best(self, concurrency: int) -> PointRow | None:
        """The fastest figure of that level among those that compete; None when none does."""
        points = [(line, line.points[concurrency]) for line in self.lines if concurrency in line.points]
        competing = [p for line, p in points if self._competes(line.row, p)]
        return max(competing, key=lambda p: value_of(self.family, p), default=None)

    def _competes(self, row: RunRow, point: PointRow) -> bool:
        matrix = self.family.matrix
        return matrix is not None and matrix.value(point) is not None and may_be_best(row, point, self.vantage)

    @property
    def all_lines(self) -> tuple[tuple[SeriesLine, Line], ...]:
        """Line below line, the same point of every run side by side."""
        pairs = [(of_run, line) for of_run in self.lines for line in of_run.lines]
        return tuple(sorted(pairs, key=lambda pair: self.family.order(pair[1])))


def may_be_best(row: RunRow, point: PointRow, vantage: str) -> bool:
    """A valid and gated figure of one host, with the load from where the table's came."""
    cell = point.figures.cell
    is_gated = bool(row.run.gates) and not row.run.is_ungated and not cell.is_ungated
    return cell.is_valid and is_gated and len(row.run.hosts) == 1 and cell.vantage == vantage


def series_of(rows: Sequence[RunRow]) -> tuple[Series, ...]:
    """The tables that these runs fill; a run stands in each that it has points of."""
    found: dict[SeriesKey, list[tuple[RunRow, list[PointRow]]]] = {}
    for row in rows:
        for key, points in _by_load(row).items():
            found.setdefault(key, []).append((row, points))
    return tuple(_series(key, found[key]) for key in sorted(found))


def without_points(rows: Sequence[RunRow]) -> tuple[RunRow, ...]:
    """The runs that stand in no table."""
    return tuple(row for row in rows if not row.points)


def series_key(cell: CellRecord) -> SeriesKey:
    family = find_family(cell.kind)
    is_sized = family.name not in {"mixed", "replay"}
    return SeriesKey(
        workload=cell.workload,
        kind=cell.kind,
        prefix_tok=cell.prefix_tok if is_sized else 0,
        prompt_tok=cell.prompt_tok if is_sized else 0,
        output_tok=cell.output_tok if is_sized else 0,
        depth_tok=cell.depth_tok if is_sized else 0,
        title=load_title(cell, family.axes),
    )


def value_of(family: Family, point: PointRow) -> float:
    value = family.matrix.value(point) if family.matrix is not None else None
    return value or 0.0


def _by_load(row: RunRow) -> dict[SeriesKey, list[PointRow]]:
    loads: dict[SeriesKey, list[PointRow]] = {}
    for point in row.points:
        loads.setdefault(series_key(point.figures.cell), []).append(point)
    return loads


def _series(key: SeriesKey, runs: Sequence[tuple[RunRow, Sequence[PointRow]]]) -> Series:
    family = find_family(key.kind)
    levels = tuple(sorted({p.figures.cell.concurrency for _, points in runs for p in points}))
    vantage = _most_common_vantage([points for _, points in runs])
    lines = [
        SeriesLine(
            row=row,
            lines=tuple(sorted(family.lines(points), key=family.order)),
            other_vantages=tuple(v for v in _vantages(points) if v != vantage),
            searches=tuple(s for s in row.searches if any(s.is_of(p.figures.cell) for p in points)),
        )
        for row, points in runs
    ]
    if family.matrix is not None:
        lines.sort(key=lambda line: _place(family, line))
    return Series(key=key, family=family, levels=levels, vantage=vantage, lines=tuple(lines))


def _place(family: Family, line: SeriesLine) -> tuple[int, bool, float]:
    """Runs that reached the highest level come first: a rate at eight users says nothing beside one at two."""
    level = max(line.points)
    point = line.points[level]
    return -level, not point.figures.is_valid, -value_of(family, point)


def _most_common_vantage(runs: Sequence[Sequence[PointRow]]) -> str:
    """One vote a run and vantage; of equals the one nearest to the server."""
    votes = Counter(v for points in runs for v in _vantages(points))
    most = max(votes.values())
    return min((v for v, n in votes.items() if n == most), key=_distance)


def _vantages(points: Sequence[PointRow]) -> Iterator[str]:
    yield from sorted({p.figures.cell.vantage for p in points}, key=_distance)


def _distance(vantage: str) -> tuple[int, str]:
    return (VANTAGES.index(vantage) if vantage in VANTAGES else len(VANTAGES)), vantage
