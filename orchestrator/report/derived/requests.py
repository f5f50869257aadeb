"""One cell's requests without the events of their streams: what pictures of single requests need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.records.store import StoredCell, StoredRun, cell_stem, requests_file
from orchestrator.report.derived import files

_DEFAULTS = RequestRecord(repeat=0, index=0, scheduled_ns=0).as_json()
_ALWAYS = frozenset({"repeat", "index", "scheduled_ns"})


def thin_cell(run: StoredRun, cell: CellRecord, folder: Path | None) -> StoredCell | None:
    """The cell with requests that have no `events`; None when it cannot be read any more.

    Args:
        folder: Where the run's derived data are; None: nowhere.
    """
    path = run.directory / f"{cell_stem(cell)}.json"
    at = [files.stamp(path), files.stamp(requests_file(path))]
    place = None if folder is None else folder / f"{cell_stem(cell)}.requests.json"
    if place is not None and None not in at and (kept := _kept(place, at)) is not None:
        return StoredCell(cell=cell, requests=kept)
    found = run.find_cell(cell)
    if found is None:
        return None
    thin = tuple(replace(r, events=()) for r in found.requests)
    if place is not None:
        _keep(place, at, thin)
    return StoredCell(cell=found.cell, requests=thin)


def _keep(place: Path, at: list[Any], requests: Sequence[RequestRecord]) -> None:
    """By field, those that say something; nothing where it would not read back the same."""
    columns = {name: [getattr(r, name) for r in requests] for name in _DEFAULTS if name != "events"}
    told = {k: v for k, v in columns.items() if k in _ALWAYS or any(value != _DEFAULTS[k] for value in v)}
    try:
        is_exact = orjson.loads(orjson.dumps(told)) == told
    except TypeError:
        return
    if is_exact:
        files.write(place, {"of": at, "columns": told})


def _kept(place: Path, at: list[Any]) -> tuple[RequestRecord, ...] | None:
    held = files.read(place)
    try:
        if held["of"] != at:
            return None
        columns = held["columns"]
        rows = zip(*columns.values(), strict=True)
        return tuple(RequestRecord(**dict(zip(columns, row, strict=True))) for row in rows)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
