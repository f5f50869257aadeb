"""The sweep stage's parts: what the load is sent to, and cell after cell with what an earlier attempt finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.figures.cell import cell_figures
from orchestrator.pipeline.events import CellBegan, CellEnded, CellMoved
from orchestrator.pipeline.road import Road
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.sweep.runner import CellProgress, LoadTarget
from orchestrator.sweep.workload import Cell
from orchestrator.values import Json, digest


def cell_digest(cell: Cell, serving: Mapping[str, Json]) -> str:
    """Identity of a cell: the load, and what it was sent to (image, argv, effective settings), not the container."""
    return digest({"load": cell.load_digest(), "serving": dict(serving)})


def sweep_cells(road: Road, load: LoadTarget, serving: Mapping[str, Json]) -> tuple[int, int]:
    """Run all cells of all workloads; returns `(measured, kept)` counts."""
    cells = [cell for workload in road.job.workloads for cell in workload.cells()]
    measured = kept = 0
    for index, cell in enumerate(cells):
        road.cancel.check()
        wanted = cell_digest(cell, serving)
        found = road.writer.find_cell(cell.workload.name, cell.id)
        if found is not None and found.cell.digest == wanted and found.cell.status == "measured":
            kept += 1
            _tell_end(road, found.cell, found.requests, index, len(cells), "kept from an earlier attempt: ")
            continue
        _run_one(road, load, cell, wanted, index, len(cells))
        measured += 1
    return measured, kept


def _run_one(road: Road, load: LoadTarget, cell: Cell, wanted: str, index: int, total: int) -> None:
    road.observer.on(CellBegan(where=road.where, cell=f"{cell.workload.name}/{cell.id}", index=index, total=total))

    def show(progress: CellProgress) -> None:
        road.observer.on(
            CellMoved(
                where=road.where,
                cell=f"{cell.workload.name}/{cell.id}",
                index=index,
                total=total,
                share=progress.share,
                text=progress.text,
            )
        )

    with road.tools.sweep_turn():
        outcome = road.tools.run_cell(load, cell, show, road.cancel.is_set)
    road.cancel.check()
    record = replace(outcome.record, digest=wanted, is_ungated=road.run.is_ungated)
    road.writer.write_cell(record, outcome.requests)
    road.save()
    _tell_end(road, record, outcome.requests, index, total, "")


def _tell_end(
    road: Road, cell: CellRecord, requests: tuple[RequestRecord, ...], index: int, total: int, prefix: str
) -> None:
    figures = cell_figures(cell, requests)
    rate = figures.output_tok_per_s
    first = figures.ttft_ms.p50
    parts = [
        f"{rate.mean:.1f} tok/s" if rate else "no rate",
        f"first token {first / 1000:.2f} s" if first is not None else "no first token",
        f"{figures.good}/{figures.requests} good",
    ]
    parts += [f"invalid: {g.get('name')}" for g in cell.guards]
    if cell.is_queueing:
        parts.append(f"queueing for {cell.slots} slots")
    text = prefix + ", ".join(parts)
    road.observer.on(CellEnded(where=road.where, cell=cell, index=index, total=total, text=text))
