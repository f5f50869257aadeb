"""The page: one self-contained HTML file from the rows, everything escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.report.notebook.book import Book, DatedNote
from orchestrator.report.notebook.page import page as notebook
from orchestrator.report.tables import RunRow


def page(
    rows: Sequence[RunRow],
    warnings: Sequence[str] = (),
    *,
    notes: Sequence[DatedNote] = (),
    record_links: Mapping[str, str] | None = None,
    is_live: bool = False,
) -> str:
    """The whole page as text.

    Args:
        notes, record_links, is_live: See `orchestrator.report.notebook.book.Book`.
    """
    return notebook(
        Book(
            rows=tuple(rows),
            notes=tuple(notes),
            warnings=tuple(warnings),
            record_links=record_links or {},
            is_live=is_live,
        )
    )
