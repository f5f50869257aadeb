"""One cell in full: every figure with its unit, n, interval, definition and method, its repeats, its raw record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import InputError
from orchestrator.figures.plain import Plain, plain
from orchestrator.figures.scope import by_repeat, good_of, of_phase, rate_over, repeat_spans
from orchestrator.figures.server import number_of
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.records.store import cell_stem
from orchestrator.report.sheet_figures import Figure, sheet_figures
from orchestrator.report.tables import PointRow
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class LapLine(Plain):
    """One repeat.

    Attributes:
        order: Its place among all repeats of the sweep; None: not told.
        output_tok_per_s: Of its good requests over its time; None: tokens unknown, or none good.
        lag_ms_p99: How late the load process itself was; stamp_lag_ms_p99: its stamps after the kernel's.
    """

    repeat: int
    order: int | None
    started_at: str
    duration_s: float | None
    good: int
    requests: int
    output_tok_per_s: float | None
    lag_ms_p99: float | None
    stamp_lag_ms_p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSheet:
    """All there is to say of one cell.

    Attributes:
        files: Of the raw record: the cell and its requests, relative to the run's directory.
    """

    point: PointRow
    figures: tuple[Figure, ...]
    laps: tuple[LapLine, ...]
    files: tuple[str, str]

    def as_json(self) -> dict[str, Json]:
        """The record as it lies there under `cell`, what it means under `figures` and `all`."""
        return {
            "cell": plain(self.point.figures.cell),
            "guards": [dict(g) for g in self.point.figures.cell.guards],
            "notes": list(self.point.notes),
            "remarks": list(self.point.remarks),
            "figures": [f.as_json() for f in self.figures],
            "laps": [lap.as_json() for lap in self.laps],
            "all": self.point.as_json(),
            "files": list(self.files),
        }


def cell_sheet(point: PointRow, requests: Sequence[RequestRecord]) -> CellSheet:
    cell, stem = point.figures.cell, cell_stem(point.figures.cell)
    return CellSheet(
        point=point,
        figures=sheet_figures(point),
        laps=_laps(cell, requests),
        files=(f"{stem}.json", f"{stem}.requests.jsonl"),
    )


def find_point(points: Sequence[PointRow], name: str) -> PointRow:
    """By the cell's id, by `workload/id`, or by a part of that which only one has.

    Raises:
        InputError: None of that name, or several.
    """
    named = {f"{p.figures.cell.workload}/{p.figures.cell.id}": p for p in points}
    exact = [p for full, p in named.items() if name in (full, p.figures.cell.id)]
    found = exact or [p for full, p in named.items() if name in full]
    if len(found) == 1:
        return found[0]
    fits = [f"{p.figures.cell.workload}/{p.figures.cell.id}" for p in found]
    if fits:
        raise InputError(f"{name!r} fits {len(fits)} cells: {', '.join(fits[:6])}", hint="give more of the name")
    known = ", ".join(named) or "none"
    raise InputError(f"no cell named {name!r} in this run", hint=f"it has {known}")


def _laps(cell: CellRecord, requests: Sequence[RequestRecord]) -> tuple[LapLine, ...]:
    """As recorded; of an older record without laps, as its requests tell."""
    main, spans = by_repeat(of_phase(requests)), repeat_spans(cell, requests)
    told: dict[int, Mapping[str, Json]] = {int(v): lap for lap in cell.laps if isinstance(v := lap.get("repeat"), int)}
    lines = []
    for repeat in sorted({*told, *main}):
        lap, part = told.get(repeat, {}), main.get(repeat, [])
        span = {repeat: spans[repeat]} if repeat in spans else {}
        rate = rate_over(span, good_of(part), lambda r: r.output_tok)
        order, stamps = number_of(lap, "order"), lap.get("stamp_lag_ms")
        lines.append(
            LapLine(
                repeat=repeat,
                order=None if order is None else int(order),
                started_at=str(lap.get("started_at") or ""),
                duration_s=number_of(lap, "duration_s"),
                good=len(good_of(part)),
                requests=len(part),
                output_tok_per_s=None if rate is None else rate.mean,
                lag_ms_p99=number_of(lap, "lag_ms_p99"),
                stamp_lag_ms_p99=number_of(stamps, "p99") if isinstance(stamps, Mapping) else None,
            )
        )
    return tuple(lines)
