"""One table a load: runs stand side by side only where workload, kind and sizes are the same.

What may be marked best is decided here, for every layout alike: a valid and gated figure of one host, measured from
where most of its table was measured. All else is shown and says why it does not compete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.report.tables import PointRow, RunRow

VANTAGES = ("local", "lan", "tailnet", "tunnel")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeriesKey:
    """The load of a table; with a concurrency it is one column."""

    workload: str
    kind: str
    prompt_tok: int
    output_tok: int

    @property
    def title(self) -> str:
        return f"{self.workload}, {self.kind}: {self.prompt_tok} tokens in, {self.output_tok} out"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLine:
    """One run in one table. `other_vantages`: where its load ran from, if not from where the table's did."""

    row: RunRow
    points: Mapping[int, PointRow]
    other_vantages: tuple[str, ...] = ()

    @property
    def top(self) -> PointRow | None:
        """The point of the highest level that has a valid figure; None when no level has."""
        return next(
            (self.points[c] for c in sorted(self.points, reverse=True) if self.points[c].figures.is_valid), None
        )

    @property
    def is_ungated(self) -> bool:
        return self.row.run.is_ungated or any(p.figures.cell.is_ungated for p in self.points.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """All runs that carried one load, the best at the highest level first."""

    key: SeriesKey
    levels: tuple[int, ...]
    vantage: str
    lines: tuple[SeriesLine, ...]

    def find_best(self, concurrency: int) -> PointRow | None:
        """The fastest figure of that level among those that compete; None when none does."""
        points = [(line, line.points[concurrency]) for line in self.lines if concurrency in line.points]
        competing = [p for line, p in points if _competes(line.row, p, self.vantage)]
        return max(competing, key=_rate, default=None)


def series_of(rows: Sequence[RunRow]) -> tuple[Series, ...]:
    """The tables that these runs fill, by workload, kind and sizes; a run stands in each that it has points of."""
    found: dict[SeriesKey, list[tuple[RunRow, dict[int, PointRow]]]] = {}
    for row in rows:
        for key, points in _by_load(row).items():
            found.setdefault(key, []).append((row, points))
    return tuple(_series(key, found[key]) for key in sorted(found))


def without_points(rows: Sequence[RunRow]) -> tuple[RunRow, ...]:
    """The runs that no table shows."""
    return tuple(row for row in rows if not row.points)


def _by_load(row: RunRow) -> dict[SeriesKey, dict[int, PointRow]]:
    loads: dict[SeriesKey, dict[int, PointRow]] = {}
    for point in row.points:
        cell = point.figures.cell
        key = SeriesKey(workload=cell.workload, kind=cell.kind, prompt_tok=cell.prompt_tok, output_tok=cell.output_tok)
        loads.setdefault(key, {})[cell.concurrency] = point
    return loads


def _series(key: SeriesKey, runs: Sequence[tuple[RunRow, Mapping[int, PointRow]]]) -> Series:
    levels = tuple(sorted({c for _, points in runs for c in points}))
    vantage = _most_common_vantage([points for _, points in runs])
    lines = [
        SeriesLine(
            row=row,
            points=points,
            other_vantages=tuple(v for v in _vantages(points) if v != vantage),
        )
        for row, points in runs
    ]
    return Series(key=key, levels=levels, vantage=vantage, lines=tuple(sorted(lines, key=_place)))


def _place(line: SeriesLine) -> tuple[int, bool, float]:
    """Runs that reached the highest level come first: a rate at eight users says nothing beside one at two."""
    level = max(line.points)
    point = line.points[level]
    return -level, not point.figures.is_valid, -_rate(point)


def _most_common_vantage(runs: Sequence[Mapping[int, PointRow]]) -> str:
    """One vote a run and vantage; of equals the one nearest to the server."""
    votes = Counter(v for points in runs for v in _vantages(points))
    most = max(votes.values())
    return min((v for v, n in votes.items() if n == most), key=_distance)


def _vantages(points: Mapping[int, PointRow]) -> Iterator[str]:
    yield from sorted({p.figures.cell.vantage for p in points.values()}, key=_distance)


def _distance(vantage: str) -> tuple[int, str]:
    return (VANTAGES.index(vantage) if vantage in VANTAGES else len(VANTAGES)), vantage


def _competes(row: RunRow, point: PointRow, vantage: str) -> bool:
    f = point.figures
    is_gated = bool(row.run.gates) and not row.run.is_ungated and not f.cell.is_ungated
    is_alike = len(row.run.hosts) == 1 and f.cell.vantage == vantage
    return f.is_valid and f.output_tok_per_s is not None and is_gated and is_alike


def _rate(point: PointRow) -> float:
    return point.figures.output_tok_per_s.mean if point.figures.output_tok_per_s else 0.0
