"""Which family shows a cell, what its load is called, and which cells are of one load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.records.record import CellRecord
from orchestrator.report.columns import Axis, Family
from orchestrator.report.kinds.arrivals import OPEN, OVERLOAD, REPLAY
from orchestrator.report.kinds.grid import GRID, INGEST
from orchestrator.report.kinds.mixed import MIXED
from orchestrator.report.kinds.sessions import SESSIONS
from orchestrator.report.kinds.swarm import SWARM

FAMILIES: Mapping[str, Family] = {
    "ingest": INGEST,
    "swarm": SWARM,
    "open": OPEN,
    "overload": OVERLOAD,
    "replay": REPLAY,
    "sessions": SESSIONS,
    "mixed": MIXED,
}
"""By kind; every other is shown as a grid."""


def find_family(kind: str) -> Family:
    return FAMILIES.get(kind, GRID)


def load_title(cell: CellRecord, axes: Sequence[Axis]) -> str:
    """`concurrency, closed: 128 tokens in, 256 out, thinking off`: what all cells of a table share.

    Args:
        axes: Those whose value all of them have.
    """
    words = [w for w in (*(axis.title(cell) for axis in axes), *terms(cell)) if w]
    return f"{cell.workload}, {cell.kind}" + (f": {', '.join(words)}" if words else "")


def terms(cell: CellRecord) -> Iterator[str]:
    """What else was asked for and is not the usual: figures under other terms stand in another table."""
    load = cell.load
    yield from _of_kind(cell)
    if isinstance(load.get("thinking"), bool):
        yield f"thinking {'on' if load['thinking'] else 'off'}"
    if cell.endpoint != "chat":
        yield f"{cell.endpoint} endpoint"
    if load.get("tools"):
        yield f"{load['tools']} tools in the prompt"
    if cell.temperature:
        yield f"temperature {cell.temperature:g}"
    if load.get("ignore_eos") is False:
        yield "answers end by themselves"
    if load.get("must_finish"):
        yield "answers wanted whole"
    if load.get("depth_cache") not in (None, "cold"):
        yield f"context {load['depth_cache']}"
    body = load.get("extra_body")
    if isinstance(body, Mapping) and body:
        yield f"with {', '.join(f'{k}={v}' for k, v in sorted(body.items()))}"


def _of_kind(cell: CellRecord) -> Iterator[str]:
    load = cell.load
    if cell.kind == "replay" and load.get("file"):
        yield str(load["file"])
    if load.get("speed") not in (None, 1, 1.0):
        yield f"at {load['speed']} times its speed"
    if load.get("turns"):
        yield f"{load['turns']} turns"
    if load.get("think_s"):
        yield f"{load['think_s']} s of thinking"
    if load.get("history") not in (None, "scripted"):
        yield f"history: {load['history']}"
    if load.get("ramp"):
        yield "ramp"
    if cell.kind == "mixed" and load.get("duration_s"):
        yield f"{load['duration_s']} s"
