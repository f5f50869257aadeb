"""Whether a run's record changed, by the sizes and times of its files: nothing is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from orchestrator.records.store import EVENTS_FILE, RUN_FILE

Stamp = tuple[tuple[str, int, int, int], ...]


def run_stamp(directory: Path) -> Stamp:
    """Name, size, time of change and place on the disk of each file that a table shows something of.

    Telemetry and logs grow all the time and are left out; a cell's requests are written before its cell.
    """
    own = (e for e in _entries(directory) if e.name in (RUN_FILE, EVENTS_FILE))
    gates = (e for e in _entries(directory / "gates") if e.name.endswith(".json"))
    cells = (
        e
        for workload in _entries(directory / "sweeps")
        for e in _entries(Path(workload.path))
        if e.name.endswith(".json")
    )
    return tuple(sorted(found for entry in (*own, *gates, *cells) if (found := _stamp(entry)) is not None))


def store_stamp(root: Path) -> tuple[tuple[str, Stamp], ...]:
    """Of every run of a results folder, and of its notes."""
    folders = sorted(e.path for e in _entries(root) if e.name not in (".derived", "notes"))
    runs = ((path, run_stamp(Path(path))) for path in folders)
    notes = tuple(sorted(f for e in _entries(root / "notes") if (f := _stamp(e)) is not None))
    return (*((path, stamp) for path, stamp in runs if stamp), (str(root / "notes"), notes))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """None where there is no such folder (any more)."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _stamp(entry: os.DirEntry[str]) -> tuple[str, int, int, int] | None:
    try:
        s = entry.stat()
    except OSError:
        return None
    return entry.path, s.st_size, s.st_mtime_ns, s.st_ino
