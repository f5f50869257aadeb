"""Notes beside the records: Markdown files in `notes/` of a results folder. Read here, understood by the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = "notes"
MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFile:
    """One file. problem: why its text could not be read; empty otherwise."""

    name: str
    text: str
    problem: str = ""


def note_files(results: Path) -> Iterator[NoteFile]:
    """In the order of their names."""
    for path in sorted((results / FOLDER).glob("*.md")):
        try:
            if path.stat().st_size > MOST_BYTES:
                yield NoteFile(name=path.name, text="", problem="longer than 1 MB")
                continue
            yield NoteFile(name=path.name, text=path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as exc:
            yield NoteFile(name=path.name, text="", problem=str(getattr(exc, "strerror", None) or "is not UTF-8"))
