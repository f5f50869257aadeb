"""The figures of a run's cells, kept: what the raw records come to is computed once for each content of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from orchestrator.figures.cell import CellFigures, cell_figures
from orchestrator.records.store import StoredRun, Unreadable, read_cell, requests_file
from orchestrator.report.derived import files
from orchestrator.report.derived.form import from_plain, to_plain
from orchestrator.report.tables import CellsRead

FIGURES = "figures.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one cell came to.

    Attributes:
        figures: None: it could not be read, or `plain` alone has come from another process.
        plain: Its figures as JSON; None where that would not read back the same.
    """

    figures: CellFigures | None = None
    plain: bytes | None = None
    unreadable: Unreadable | None = None

    def read(self) -> CellFigures | Unreadable:
        if self.unreadable is not None:
            return self.unreadable
        return self.figures if self.figures is not None else from_plain(orjson.loads(self.plain or b""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Of one run: which cells are known, and which are to be read.

    Attributes:
        paths: All cell files, in order. stamps: of each, of it and its requests.
        kept: The entries that still hold, as JSON values. known: what they read as. Both by path.
        is_changed: The file of the last time holds more or less than `kept`.
    """

    run: StoredRun
    paths: tuple[Path, ...]
    stamps: Mapping[Path, Any]
    kept: Mapping[Path, Any]
    known: Mapping[Path, CellFigures]
    is_changed: bool

    @property
    def to_read(self) -> tuple[Path, ...]:
        return tuple(path for path in self.paths if path not in self.known)

    @property
    def bytes_to_read(self) -> int:
        return sum((self.stamps[path][1] or (0,))[0] for path in self.to_read)


def plan(run: StoredRun, folder: Path | None) -> Plan:
    """
    Args:
        folder: Where its derived data are; None: nowhere.
    """
    paths = run.cell_files()
    # Before anything is read: what is written meanwhile has another stamp the next time.
    stamps = {path: [files.stamp(path), files.stamp(requests_file(path))] for path in paths}
    held = None if folder is None else files.read(folder / FIGURES)
    held = held if isinstance(held, dict) else {}
    kept, known = {}, {}
    for path in paths:
        entry = held.get(_name(run, path))
        figures = _known(entry, stamps[path])
        if figures is not None:
            kept[path], known[path] = entry, figures
    return Plan(run=run, paths=paths, stamps=stamps, kept=kept, known=known, is_changed=len(kept) != len(held))


def compute(path: Path) -> Outcome:
    """Read one cell; its figures as JSON only where they read back the same."""
    stored = read_cell(path)
    if isinstance(stored, Unreadable):
        return Outcome(unreadable=stored)
    figures = cell_figures(stored.cell, stored.requests)
    return Outcome(figures=figures, plain=_plain(figures))


def compute_elsewhere(paths: Sequence[Path]) -> list[Outcome]:
    """The same for another process: figures travel as JSON, which is shorter than what pickle makes of them."""
    found = map(compute, paths)
    return [replace(o, figures=None) if o.plain is not None else o for o in found]


def finish(planned: Plan, outcomes: Mapping[Path, Outcome], folder: Path | None) -> CellsRead:
    """All cells of the run, those that were known and those that were read; what is new is kept in `folder`."""
    entries = dict(planned.kept)
    for path in planned.to_read:
        if (plain := outcomes[path].plain) is not None:
            entries[path] = [planned.stamps[path], orjson.Fragment(plain)]
    if folder is not None and (planned.is_changed or len(entries) > len(planned.kept)):
        files.write(folder / FIGURES, {_name(planned.run, path): entry for path, entry in entries.items()})
    found = [planned.known[path] if path in planned.known else outcomes[path].read() for path in planned.paths]
    return CellsRead(
        figures=tuple(f for f in found if isinstance(f, CellFigures)),
        unreadable=tuple(f for f in found if isinstance(f, Unreadable)),
    )


def _known(entry: Any, stamps: Any) -> CellFigures | None:
    try:
        held, raw = entry
        return from_plain(raw) if held == stamps and None not in stamps else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _plain(figures: CellFigures) -> bytes | None:
    try:
        plain = orjson.dumps(to_plain(figures))
        return plain if from_plain(orjson.loads(plain)) == figures else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _name(run: StoredRun, path: Path) -> str:
    return path.relative_to(run.directory).as_posix()
