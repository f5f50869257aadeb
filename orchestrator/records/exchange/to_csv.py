"""A run as CSV: one line a cell with all figures, or one line a request with its stamps; units are in the names."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass

from orchestrator.figures.cell import cell_figures
from orchestrator.records.record import RequestRecord, RunRecord
from orchestrator.records.store import StoredCell

CELL = (
    *("workload", "id", "kind", "variant", "concurrency", "prompt_tok", "output_tok", "depth_tok", "prefix_tok"),
    *("rate_rps", "burstiness", "repeats", "repeats_done", "vantage", "is_valid", "is_ungated", "started_at"),
)
REQUEST = tuple(f.name for f in fields(RequestRecord) if f.name not in ("events", "server"))


def cells_csv(run: RunRecord, cells: Sequence[StoredCell]) -> str:
    """All cells; a figure that a cell does not have is empty. Stated figures of other tools are `stated_<figure>_…`."""
    lines = [_cell_line(run, stored) for stored in cells]
    head = list(dict.fromkeys(name for line in lines for name in line))
    return _text(head, ([line.get(name) for name in head] for line in lines))


def requests_csv(run: RunRecord, cells: Sequence[StoredCell]) -> str:
    """All requests of all cells; stamps are ns of the cell's clock, `events` is their number."""
    head = ["run", "workload", "cell", *REQUEST, "events"]
    return _text(
        head,
        (
            [run.id, c.cell.workload, c.cell.id, *(getattr(r, name) for name in REQUEST), len(r.events)]
            for c in cells
            for r in c.requests
        ),
    )


def _cell_line(run: RunRecord, stored: StoredCell) -> dict[str, object]:
    cell = stored.cell
    figures = cell_figures(cell, stored.requests)
    line: dict[str, object] = {
        "run": run.id,
        "profile": run.profile_name,
        "engine": run.engine,
        "engine_version": run.engine_version,
        "model": run.model,
        **{name: getattr(cell, name) for name in CELL},
        "guards": "; ".join(g.get("name", "") for g in cell.guards),
        "source": str(run.source.get("title") or ""),
    }
    line |= flat({f.name: getattr(figures, f.name) for f in fields(figures) if f.name != "cell"})
    return line | flat({f"stated_{k}": v for k, v in cell.stated.items()})


def flat(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Numbers, words and what is made of them, under joined names (`ttft_ms_p50`); lists are left out."""
    found: dict[str, object] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if is_dataclass(value) and not isinstance(value, type):
            found |= flat({f.name: getattr(value, f.name) for f in fields(value)}, f"{name}_")
        elif isinstance(value, Mapping):
            found |= flat(value, f"{name}_")
        elif value is None or isinstance(value, str | int | float):
            found[name] = value
    return found


def _text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([_cell(v) for v in row])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "inf" if isinstance(value, float) and math.isinf(value) else value
