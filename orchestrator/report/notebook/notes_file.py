"""A note's file: its day from the name (`2026-11-30-title.md`) or from the first line, its title, its text."""

from __future__ import annotations

import re

from orchestrator.report.notebook.book import DatedNote

_DAY = re.compile(r"(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?!\d)")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*\s*$")


def dated_note(name: str, text: str) -> DatedNote | None:
    """None: neither the name nor the first line tells a day.

    The title is the first line's where that is a heading or only a date and words, else the name's; a line that became
    the title is not said again.

    Args:
        name: The file's, without its folder.
    """
    first, _, rest = text.lstrip("\ufeff\n\r\t ").partition("\n")
    heading = _HEADING.match(first)
    said = heading[1] if heading else first
    stem = name.removesuffix(".md")
    in_name, in_line = _DAY.match(stem), _DAY.match(said.strip())
    if in_name is None and in_line is None:
        return None
    day = (in_name or in_line or [""])[0]
    is_title = heading is not None or in_line is not None
    words = _without_day(said) if is_title else ""
    words = words or (_without_day(stem).replace("-", " ").replace("_", " ") if in_name else "") or "Note"
    return DatedNote(day=day, title=words, text=rest.strip() if is_title else text.strip())


def _without_day(text: str) -> str:
    return _DAY.sub("", text.strip(), count=1).strip(" -_:·,.")
