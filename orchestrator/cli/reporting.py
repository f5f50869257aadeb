"""One report, drawn once or again and again: what is read, what it becomes, where it is written."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from orchestrator.errors import InputError, StoreError

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.records.store import StoredRun
    from orchestrator.report.notebook.book import Book, DatedNote
    from orchestrator.report.tables import RunRow

STDOUT = "-"
FORMATS = ("html", "md", "json", "site")
DEFAULT_NAMES = {"html": "notebook.html", "md": "notebook.md", "json": "notebook.json", "site": "site"}


@dataclass(slots=True)
class Reporter:
    """Reads records and writes the report of them.

    Attributes:
        names: Of the runs, as `find_run` knows them; empty: all of the results folder.
        output: A file, of style `site` a folder; `-`: stdout.
    """

    printer: Printer
    root: Path
    names: tuple[str, ...]
    style: str
    output: str
    _rows: dict[Path, tuple[object, RunRow]] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)

    def read(self) -> tuple[tuple[StoredRun, ...], tuple[RunRow, ...], tuple[str, ...]]:
        """Runs, their rows, and what could not be read. A row is made again only when its record has changed.

        Raises:
            InputError: A run that is named is not there.
        """
        from orchestrator.records.changes import run_stamp
        from orchestrator.report.derived.rows import rows_of

        runs, warnings = self._runs()
        stamps = {run.directory: run_stamp(run.directory) for run in runs}
        changed = [run for run in runs if self._rows.get(run.directory, (None,))[0] != stamps[run.directory]]
        fresh = zip(changed, rows_of(changed, self.root, tell=self._tell), strict=True)
        made = {run.directory: (stamps[run.directory], row) for run, row in fresh}
        self._rows = {run.directory: made.get(run.directory) or self._rows[run.directory] for run in runs}
        rows = tuple(row for _, row in self._rows.values())
        self._warn([*warnings, *(w for row in rows for w in row.warnings)])
        return runs, rows, warnings

    def write(self, runs: Sequence[StoredRun], rows: Sequence[RunRow], warnings: Sequence[str], is_live: bool) -> None:
        """
        Raises:
            InputError: The folder of a site is not one.
            StoreError: The output cannot be written.
        """
        from orchestrator.records.store import write_atomically

        if self.style == "site":
            self._write_site(runs, rows, warnings, is_live)
            return
        text = self._text(runs, rows, warnings, is_live)
        if self.output == STDOUT:
            sys.stdout.write(text)
            return
        path = Path(self.output)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)
        except OSError as exc:
            raise StoreError(
                f"cannot write {path}: {exc.strerror}", hint="choose another place with `-o FILE`"
            ) from exc

    def draw(self, *, is_live: bool) -> str:
        """Read and write; in words what was written."""
        with without_collector():
            runs, rows, warnings = self.read()
            self.write(runs, rows, warnings, is_live)
        points = sum(len(r.points) for r in rows)
        return f"{self.output}: {_counted(len(rows), 'run')}, {_counted(points, 'point')}"

    def _runs(self) -> tuple[tuple[StoredRun, ...], tuple[str, ...]]:
        from orchestrator.records.naming import find_run
        from orchestrator.records.store import Store

        store = Store(self.root)
        if not self.names:
            good, bad = store.runs()
            return good, tuple(f"{b.path}: {b.reason}" for b in bad)
        found = {run.directory.resolve(): run for run in (find_run(store, name) for name in self.names)}
        return tuple(found.values()), ()

    def _text(self, runs: Sequence[StoredRun], rows: Sequence[RunRow], warnings: Sequence[str], is_live: bool) -> str:
        from orchestrator.report.markdown import report as markdown
        from orchestrator.report.notebook.page import page

        if self.style == "md":
            return markdown(rows, warnings)
        if self.style == "json":
            return json.dumps({"runs": [r.as_json() for r in rows], "warnings": warnings}, indent=1, ensure_ascii=False)
        folder = None if self.output == STDOUT else Path(self.output).parent
        return page(self._book(runs, rows, warnings, folder, is_live))

    def _write_site(
        self, runs: Sequence[StoredRun], rows: Sequence[RunRow], warnings: Sequence[str], is_live: bool
    ) -> None:
        from orchestrator.report.site.folder import write_site
        from orchestrator.report.site.pages import site

        if self.output == STDOUT:
            raise InputError("a site is a folder and has no place on stdout", hint="name a folder with `-o DIR`")
        folder = Path(self.output)
        write_site(site(self._book(runs, rows, warnings, folder, is_live)), folder)

    def _book(
        self,
        runs: Sequence[StoredRun],
        rows: Sequence[RunRow],
        warnings: Sequence[str],
        folder: Path | None,
        is_live: bool,
    ) -> Book:
        from orchestrator.report.notebook.book import Book
        from orchestrator.report.raw import RawRecords

        return Book(
            rows=tuple(rows),
            notes=tuple(self._notes()),
            warnings=tuple(warnings),
            record_links=record_links(runs, self.root, folder),
            is_live=is_live,
            raw=RawRecords.of(runs, self.root),
        )

    def _notes(self) -> Iterator[DatedNote]:
        from orchestrator.records.notes import note_files
        from orchestrator.report.notebook.notes_file import dated_note

        for file in note_files(self.root):
            note = None if file.problem else dated_note(file.name, file.text)
            if note is None:
                why = file.problem or "neither its name nor its first line begins with a day, as 2026-11-30"
                self._warn([f"notes/{file.name}: {why}"])
            else:
                yield note

    def _warn(self, warnings: Sequence[str]) -> None:
        """Each once, however often the report is drawn."""
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self.printer.warning(warning)

    def _tell(self, cells: int, size: int) -> None:
        self.printer.progress(f"reading the raw records of {cells} cells, {size / 1e6:,.0f} MB: once, then kept")


def record_links(runs: Sequence[StoredRun], root: Path, folder: Path | None) -> dict[str, str]:
    """Where each run's record lies as seen from the report, by run id.

    None from stdout, and none that would climb out of the results folder: it would name folders of this machine.
    """
    if folder is None:
        return {}
    here, store = folder.resolve(), root.resolve()
    found = {}
    for run in runs:
        there = run.directory.resolve()
        is_inside = there.is_relative_to(store) and here.is_relative_to(store)
        if is_inside or there.is_relative_to(here):
            found[run.run.id] = quote(Path(os.path.relpath(there, here)).as_posix()) + "/"
    return found


def _counted(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


@contextmanager
def without_collector() -> Iterator[None]:
    """Rows are a million small values without a cycle: looking for one in them takes as long as making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
