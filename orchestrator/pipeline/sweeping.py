"""The sweep stage's parts: what the load is sent to, and cell after cell with what an earlier attempt finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator.errors import TargetError
from orchestrator.figures.cell import cell_figures
from orchestrator.pipeline.death import raise_if_dead
from orchestrator.pipeline.events import CellBegan, CellEnded, CellMoved
from orchestrator.pipeline.road import Road, RunCell
from orchestrator.records.aside import foreign_cell_files, set_aside
from orchestrator.records.store import StoredCell
from orchestrator.sweep.spec import CellProgress, LoadTarget
from orchestrator.sweep.workload import Cell
from orchestrator.values import Json, digest


def cell_digest(cell: Cell, serving: Mapping[str, Json]) -> str:
    """Identity of a cell: the load, and what it was sent to (image, argv, effective settings), not the container."""
    return digest({"load": cell.load_digest(), "serving": dict(serving)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One cell and its place in the sweep."""

    cell: Cell
    digest: str
    index: int
    total: int

    @property
    def name(self) -> str:
        return f"{self.cell.workload.name}/{self.cell.id}"


def sweep_cells(road: Road, load: LoadTarget, serving: Mapping[str, Json]) -> tuple[int, int]:
    """Run all cells of all workloads; returns `(measured, kept)` counts.

    A cell of an earlier attempt stands when load and serving are the same and it broke no guard; cells of another
    serving are set aside, so that one record never mixes two.

    Raises:
        ServerDied: The server ended under the load.
        TargetError: A whole cell went unanswered by a server that still runs, or that is not ours to look at.
    """
    serving_digest = digest(dict(serving))
    set_aside(
        road.writer.directory, foreign_cell_files(road.writer.directory, serving_digest), attempt=road.run.attempts
    )
    cells = [cell for workload in road.job.workloads for cell in workload.cells()]
    measured = kept = 0
    with road.tools.cell_runner() as run_cell:
        for index, cell in enumerate(cells):
            road.cancel.check()
            turn = _Turn(cell=cell, digest=cell_digest(cell, serving), index=index, total=len(cells))
            found = road.writer.find_cell(cell.workload.name, cell.id)
            if found is not None and found.cell.digest == turn.digest and _stands(found):
                kept += 1
                _tell_end(road, turn, found, prefix="kept from an earlier attempt: ")
            else:
                measured += 1
                stored = _measure(road, load, turn, run_cell, serving_digest)
                _tell_end(road, turn, stored, prefix="")
                _refuse_silence(road, turn, stored)
    return measured, kept


def _stands(found: StoredCell) -> bool:
    return found.cell.status == "measured" and found.cell.is_valid


def _refuse_silence(road: Road, turn: _Turn, stored: StoredCell) -> None:
    """A failed request may be a dead server's; a cell without one answer ends the sweep in any case."""
    good = sum(r.failure is None for r in stored.requests)
    if good < len(stored.requests):
        raise_if_dead(road, f"in cell {turn.name}")
    if stored.requests and not good:
        kinds = ", ".join(sorted({str(r.failure) for r in stored.requests}))
        raise TargetError(
            f"{road.where}: no request of {turn.name} was answered: {kinds}",
            hint="its requests.jsonl has the server's words; the server's log is in the record",
        )


def _measure(road: Road, load: LoadTarget, turn: _Turn, run_cell: RunCell, serving_digest: str) -> StoredCell:
    def show(progress: CellProgress) -> None:
        moved = CellMoved(
            where=road.where,
            cell=turn.name,
            index=turn.index,
            total=turn.total,
            share=progress.share,
            text=progress.text,
        )
        road.observer.on(moved)

    with road.tools.sweep_turn():
        road.cancel.check()
        road.observer.on(CellBegan(where=road.where, cell=turn.name, index=turn.index, total=turn.total))
        road.writer.append_event("cell", {"cell": turn.name, "index": turn.index, "total": turn.total})
        outcome = run_cell(load, turn.cell, show, road.cancel.is_set)
    road.cancel.check()
    record = replace(outcome.record, digest=turn.digest, serving_digest=serving_digest, is_ungated=road.run.is_ungated)
    road.writer.write_cell(record, outcome.requests)
    road.save()
    return StoredCell(cell=record, requests=outcome.requests)


def _tell_end(road: Road, turn: _Turn, stored: StoredCell, *, prefix: str) -> None:
    ended = CellEnded(
        where=road.where, cell=stored.cell, index=turn.index, total=turn.total, text=prefix + cell_words(stored)
    )
    road.observer.on(ended)


def cell_words(stored: StoredCell) -> str:
    """A finished cell in one line, with what makes it invalid or different."""
    cell, figures = stored.cell, cell_figures(stored.cell, stored.requests)
    rate, first = figures.output_tok_per_s, figures.ttft_ms.p50
    parts = [
        f"{rate.mean:.1f} tok/s" if rate else "no rate",
        f"first token {first / 1000:.2f} s" if first is not None else "no first token",
        f"{figures.good}/{figures.requests} good",
        *(f"{count} failed: {name}" for name, count in figures.failures.items()),
        *(f"invalid: {g.get('name')}: {g.get('message')}" for g in cell.guards),
    ]
    if cell.is_queueing:
        parts.append(f"queueing for {cell.slots} slots")
    return ", ".join(parts)
