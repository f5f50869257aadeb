"""Pictures written as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import StoreError

if TYPE_CHECKING:
    from orchestrator.cli.printer import Printer
    from orchestrator.records.store import StoredRun
    from orchestrator.report.tables import RunRow

STYLES = ("svg", "png")


def write_charts(
    printer: Printer, stored: Sequence[StoredRun], rows: Sequence[RunRow], *, folder: Path, style: str
) -> None:
    """All pictures of these runs, one file each.

    Raises:
        StoreError: The folder cannot be written.
    """
    from orchestrator.report.charts.export import write_chart
    from orchestrator.report.notebook.book import Book
    from orchestrator.report.notebook.curves import all_charts
    from orchestrator.report.raw import RawRecords

    charts = all_charts(Book(rows=tuple(rows), raw=RawRecords.of(stored)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for chart in charts:
            write_chart(chart, folder, style)
    except OSError as exc:
        raise StoreError(
            f"cannot write {folder}: {exc.strerror}", hint="choose another place with `--charts DIR`"
        ) from exc
    if not charts:
        printer.warning("no pictures: the records have no points that make one")
    count = "1 picture" if len(charts) == 1 else f"{len(charts)} pictures"
    printer.answer(f"{folder}: {count}")
