"""The running log, newest day first: what was noted, woven with what was run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from orchestrator.report import foreign
from orchestrator.report.notebook.book import Book, DatedNote, Section, run_anchor
from orchestrator.report.notebook.identity import by_run, configurations_of, is_foreign
from orchestrator.report.notebook.levels import headline_level, matrix_of, points_of
from orchestrator.report.notebook.prose import prose
from orchestrator.report.notebook.verdicts import tone_of, verdict_words
from orchestrator.report.series import Series
from orchestrator.report.tables import RunRow
from orchestrator.report.words import host_words

UNDATED = "undated"


def section(book: Book) -> Section | None:
    if not book.rows and not book.notes:
        return None
    headlines = _headlines(book.series)
    names = {run_id: c.name for run_id, c in by_run(configurations_of(book.rows)).items()}
    entries = [*_notes(book.notes), *(_run(row, names[row.run.id], headlines.get(row.run.id, "")) for row in book.rows)]
    entries.sort(key=lambda e: (e["day"] != UNDATED, e["day"], e["time"]), reverse=True)
    days = [{"day": day, "entries": list(of_day)} for day, of_day in groupby(entries, key=lambda e: e["day"])]
    return Section(id="log", title="Log", template="log.html.j2", data={"days": days})


def _notes(notes: Sequence[DatedNote]) -> Iterator[dict[str, Any]]:
    """A note stands above the runs of its day."""
    for note in notes:
        yield {"day": note.day, "time": "~", "is_note": True, "title": note.title, "html": prose(note.text)}


def _run(row: RunRow, name: str, headline: str) -> dict[str, Any]:
    r = row.run
    return {
        "day": r.created_at[:10] or UNDATED,
        "time": r.created_at[11:16],
        "is_note": False,
        "anchor": run_anchor(row),
        "name": name,
        "hosts": host_words(row),
        "foreign": f"not measured here: {foreign.tool_words(r)}" if is_foreign(row) else "",
        "status": r.status,
        "verdict": verdict_words(row),
        "tone": tone_of(row),
        "headline": headline,
        "error": str((r.error or {}).get("message") or ""),
    }


def _headlines(series: Sequence[Series]) -> dict[str, str]:
    """Of each run its figure at the headline level of its largest load: `203.4 ±1.2 tok/s at 32 (swarm-54k)`."""
    found: dict[str, str] = {}
    for one in sorted(series, key=lambda s: (-len(s.lines), s.key)):
        matrix, level = matrix_of(one), headline_level(one) if matrix_of(one) else None
        for line in one.lines if matrix is not None and level is not None else ():
            points = points_of(line)
            point = points.get(level) if level is not None else None
            if point is not None and matrix is not None and point.figures.is_valid and line.row.run.id not in found:
                words = f"{matrix.words(point)} {matrix.unit} at {point.figures.cell.concurrency} ({one.key.workload})"
                found[line.row.run.id] = words
    return found
