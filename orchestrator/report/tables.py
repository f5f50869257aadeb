"""The tables that records make: pure values, no layout. Every figure says whether it was measured or derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.figures.cell import CellFigures, batch_time, cell_figures, efficiency, find_single
from orchestrator.figures.lanes import ALONE, Slowdown, slowdowns
from orchestrator.figures.plain import plain
from orchestrator.figures.prefill import PrefillSpeed, prefill_speed
from orchestrator.figures.swarm import WarmAgent, warm_agent
from orchestrator.records.record import GateRecord, RunRecord
from orchestrator.records.store import StoredCell, StoredRun, Unreadable
from orchestrator.report import foreign
from orchestrator.report.notes import marks, notes, remarks
from orchestrator.report.searches import SearchAnswer, searches_of
from orchestrator.values import Json

GOOD = ("pass", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One point of a sweep, with what follows from the other points of its run.

    Attributes:
        prefill: By the server's time, else by the slope between two cold lengths.
        warm: Of a swarm: one agent alone on a warm prefix. slowdowns: of a mixed cell, by lane.
        alone: Of a mixed cell: the cells in which a lane ran alone, by lane, valid or not.
        notes: What speaks against the figures; `marks` in a word each. remarks: what explains them.
    """

    figures: CellFigures
    efficiency: float | None
    batch_s: float | None
    batch_answers: int
    batch_kind: str
    prefill: PrefillSpeed | None = None
    warm: WarmAgent | None = None
    slowdowns: Mapping[str, Slowdown] = field(default_factory=dict)
    alone: Mapping[str, CellFigures] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """Plain values with units in the names; None where nothing was measured. `figures`: all of them."""
        f, cell = self.figures, self.figures.cell
        rate = f.output_tok_per_s
        return {
            "workload": cell.workload,
            "cell": cell.id,
            "kind": cell.kind,
            "concurrency": cell.concurrency,
            "prompt_tok": cell.prompt_tok,
            "output_tok": cell.output_tok,
            "repeats": cell.repeats,
            "requests": f.requests,
            "good": f.good,
            "failures": dict(f.failures),
            "output_tok_per_s": rate.mean if rate else None,
            "output_tok_per_s_sd": rate.sd if rate else None,
            "per_user_tok_per_s": f.per_user_tok_per_s,
            "decode_tok_per_s": f.decode_tok_per_s,
            "efficiency": self.efficiency,
            "ttft_ms": _percentiles(f, "ttft_ms"),
            "ttft_adjusted_ms": _percentiles(f, "ttft_adjusted_ms"),
            "tpot_ms": _percentiles(f, "tpot_ms"),
            "itl_ms": _percentiles(f, "itl_ms"),
            "e2e_ms": _percentiles(f, "e2e_ms"),
            "cached_share": f.cached_share,
            "batch_s": {"answers": self.batch_answers, "seconds": self.batch_s, "kind": self.batch_kind},
            "wall_s": f.wall_s,
            "slots": cell.slots,
            "slots_source": cell.slots_source,
            "is_queueing": cell.is_queueing,
            "is_valid": cell.is_valid,
            "is_ungated": cell.is_ungated,
            "guards": [dict(g) for g in cell.guards],
            "vantage": cell.vantage,
            "variant": cell.variant,
            "client": dict(cell.client),
            "client_error": dict(cell.client_error),
            "source": dict(cell.source),
            "stated": {name: dict(figure) for name, figure in cell.stated.items()},
            "definitions": dict(cell.definitions),
            "notes": list(self.notes),
            "remarks": list(self.remarks),
            "figures": f.as_json(),
            "prefill": plain(self.prefill),
            "warm_agent": plain(self.warm),
            "slowdowns": plain(self.slowdowns),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One configuration on its hosts.

    Attributes:
        searches: What a search for the highest level found, the newest of each load.
        warnings: What of its record could not be read, by file.
    """

    run: RunRecord
    gates: tuple[GateRecord, ...]
    points: tuple[PointRow, ...]
    verdict: str
    searches: tuple[SearchAnswer, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        r = self.run
        return {
            "id": r.id,
            "profile": r.profile_name,
            "title": r.profile_title,
            "status": r.status,
            "hosts": [str(h.get("name")) for h in r.hosts],
            "engine": r.engine,
            "engine_version": r.engine_version,
            "image": r.image,
            "image_digest": r.image_digest,
            "model": r.model,
            "verdict": self.verdict,
            "gates": dict(r.gates),
            "effective": r.effective.get("compared") or [],
            "is_ungated": r.is_ungated,
            "source": dict(r.source),
            "duration_s": r.duration_s,
            "created_at": r.created_at,
            "points": [p.as_json() for p in self.points],
            "searches": [s.as_json() for s in self.searches],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsRead:
    """A run's cells as figures, by workload and name, and those that could not be read."""

    figures: tuple[CellFigures, ...]
    unreadable: tuple[Unreadable, ...] = ()


def read_cells(stored: StoredRun) -> CellsRead:
    """From the raw records, each read once and let go."""
    figures, unreadable = [], []
    for found in stored.each_cell():
        if isinstance(found, StoredCell):
            figures.append(cell_figures(found.cell, found.requests))
        else:
            unreadable.append(found)
    return CellsRead(figures=tuple(figures), unreadable=tuple(unreadable))


def run_row(stored: StoredRun, cells: CellsRead | None = None) -> RunRow:
    """One run's record as its row.

    Args:
        cells: Its figures, where they are known already; else they are read.
    """
    cells = read_cells(stored) if cells is None else cells
    ordered = sorted(cells.figures, key=_load_order)
    gates = _gates(stored)
    return RunRow(
        run=stored.run,
        gates=gates,
        points=tuple(point_row(f, ordered) for f in ordered),
        verdict=gate_verdict(stored.run, gates),
        searches=searches_of(stored.events("search")),
        warnings=_warnings(stored, cells.unreadable),
    )


def point_row(figures: CellFigures, others: Sequence[CellFigures]) -> PointRow:
    """Set a cell beside the others of its run."""
    answers = figures.cell.batch_answers
    batch = batch_time(figures, answers)
    return PointRow(
        figures=figures,
        efficiency=efficiency(figures, find_single(figures, others)),
        batch_s=batch.seconds if batch else None,
        batch_answers=answers,
        batch_kind=batch.kind if batch else "derived",
        prefill=prefill_speed(figures, others),
        warm=warm_agent(figures, others) if figures.swarm is not None else None,
        slowdowns={s.lane: s for s in slowdowns(figures, others)},
        alone=_alone(figures, others) if figures.cell.kind == "mixed" else {},
        notes=notes(figures),
        marks=marks(figures),
        remarks=remarks(figures),
    )


def gate_verdict(run: RunRecord, gates: Sequence[GateRecord] = ()) -> str:
    """The words for a table: only the unmodified suite `gate0` reads 'Gate 0 passed'.

    UNSTABLE is shown as such and never as passed; a gate that may fail and did is named; without verdicts the answer is
    'not gated'. Of another tool's record its name stands there.
    """
    if run.source:
        return f"foreign: {foreign.tool_words(run)}, not gated"
    if not run.gates:
        return "not gated"
    optional = {g.name for g in gates if not g.is_required}
    own = "its suite" if run.suite == "suite" else f"suite {run.suite}"
    name = "Gate 0" if run.suite == "gate0" and run.is_suite_unmodified else own
    if run.suite == "gate0" and not run.is_suite_unmodified:
        name = "suite gate0 (modified)"
    for status, words in (("fail", "failed"), ("error", "could not tell"), ("unstable", "unstable")):
        found = [gate for gate, of_gate in run.gates.items() if of_gate == status and gate not in optional]
        if found:
            return f"{name} {words}: {', '.join(found)}"
    asides = [f"{gate} {status}" for gate, status in run.gates.items() if gate in optional and status not in GOOD]
    skipped = sum(status == "skip" for status in run.gates.values())
    asides += [f"{skipped} skipped"] if skipped else []
    return f"{name} passed" + (f" ({'; '.join(asides)})" if asides else "")


def _load_order(figures: CellFigures) -> tuple[str, str, int, int, int]:
    cell = figures.cell
    return cell.workload, cell.kind, cell.prompt_tok, cell.output_tok, cell.concurrency


def _warnings(stored: StoredRun, cells: Sequence[Unreadable]) -> tuple[str, ...]:
    """By file and reason, the file as seen from the results folder: a page is given away, a home's path is not."""
    broken = (*stored.unreadable_gates(), *cells)
    return tuple(f"{b.path.relative_to(stored.directory.parent)}: {b.reason}" for b in broken)


def _gates(stored: StoredRun) -> tuple[GateRecord, ...]:
    found = {g.name: g for g in stored.gates()}
    ordered = [found.pop(name) for name in stored.run.gates if name in found]
    return (*ordered, *found.values())


def _alone(figures: CellFigures, others: Sequence[CellFigures]) -> dict[str, CellFigures]:
    of_workload = [o for o in others if o.cell.kind == "mixed" and o.cell.workload == figures.cell.workload]
    return {o.cell.variant.removeprefix(ALONE): o for o in of_workload if o.cell.variant.startswith(ALONE)}


def _percentiles(figures: CellFigures, name: str) -> dict[str, Json]:
    p = getattr(figures, name)
    values = {"n": p.n, "mean": p.mean, "p50": p.p50, "p90": p.p90, "p95": p.p95, "p99": p.p99}
    return {k: (None if v is not None and v == float("inf") else v) for k, v in values.items()}
