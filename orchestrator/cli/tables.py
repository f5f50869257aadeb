"""Tables that several verbs print, each as wide as the terminal at most."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from orchestrator.cli.printer import Printer
from orchestrator.report.blocks import Block, blocks, line_remarks
from orchestrator.report.columns import MARKS, Column, Line
from orchestrator.report.notes import stamp_lag_ms, stamp_words
from orchestrator.report.searches import SearchAnswer
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH

WIDTH = 120
"""Of a table that nobody looks at in a terminal."""
MARKS_WIDTH = 26
GAP = 2


def show_points(printer: Printer, points: Sequence[PointRow], searches: Sequence[SearchAnswer] = ()) -> None:
    """A table for each load, with what is to be said of its points below it; nothing for no points."""
    width = printer.out.width if printer.out.is_terminal else WIDTH
    found = blocks(points, searches)
    for block in found:
        printer.answer("")
        printer.answer(block.title)
        for columns in _parts(block, width):
            head = [c.short for c in columns]
            rows = [[_field(column, line) for column in columns] for line in block.lines]
            printer.table(head, rows, right=[i for i, c in enumerate(columns) if not c.is_text])
        for words in (*block.answers, *_said(block)):
            printer.answer(words)
    for caption in dict.fromkeys(block.family.caption for block in found):
        printer.answer("")
        for text in textwrap.wrap(f"{caption} ~Struck~ figures broke a guard.", width):
            printer.answer(text)


def _parts(block: Block, width: int) -> Iterator[tuple[Column, ...]]:
    """The columns in as few tables as fit, of about the same width; each begins with what tells the lines apart.

    The marks stand in the first.
    """
    marks = (MARKS,) if any(MARKS.words(line) for line in block.lines) else ()
    groups = [tuple(part) for _, part in groupby(block.columns, key=lambda c: c.group)]
    sizes = [sum(_width(c, block.lines) + GAP for c in group) for group in groups]
    lead = sum(_width(c, block.lines) + GAP for c in block.lead) - GAP
    first = sum(_width(c, block.lines) + GAP for c in marks)
    packed = _packed(sizes, width - lead, first)
    for narrower in range(width - 1, lead, -1):
        if len(found := _packed(sizes, narrower - lead, first)) > len(packed):
            break
        packed = found
    for number, part in enumerate(packed):
        columns = (column for index in part for column in groups[index])
        yield (*block.lead, *columns, *(marks if number == 0 else ()))


def _packed(sizes: Sequence[int], room: int, first: int) -> list[list[int]]:
    """Places of the groups by table, in order; a group that is too wide alone has a table of its own.

    Args:
        first: What the first table needs besides.
    """
    tables: list[list[int]] = [[]]
    used = first
    for index, size in enumerate(sizes):
        if tables[-1] and used + size > room:
            tables.append([])
            used = 0
        tables[-1].append(index)
        used += size
    return tables


def _width(column: Column, lines: Sequence[Line]) -> int:
    texts = (column.short, *(_field(column, line) for line in lines))
    return max(len(part) for text in texts for part in text.split("\n"))


def _field(column: Column, line: Line) -> str:
    """A figure of a cell that broke a guard between tildes; a long text on several lines."""
    text = column.narrow_words(line)
    if column is MARKS:
        return "\n".join(textwrap.wrap(text, MARKS_WIDTH, break_long_words=False))
    return f"~{text}~" if text not in ("", DASH) and column.is_struck(line) else text


def _said(block: Block) -> Iterator[str]:
    """Notes, then remarks, then the client's error, each once with the lines that it is of."""
    for text, lines in _grouped([(line, line.notes) for line in block.lines]).items():
        yield ": ".join(w for w in ("note", _where(block, lines), text) if w)
    for said in (
        _grouped([(x, x.remarks) for x in block.lines]),
        _grouped([(x, _clock(block, x)) for x in block.lines]),
    ):
        for text, lines in said.items():
            yield ": ".join(w for w in (_where(block, lines), text) if w)
    lags = [v for line in block.lines if (v := stamp_lag_ms(line.cell)) is not None]
    if lags:
        yield f"at worst: {stamp_words(max(lags))}"


def _grouped(said: Sequence[tuple[Line, Sequence[str]]]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line, texts in said:
        for text in texts:
            found.setdefault(text, []).append(line)
    return found


def _clock(block: Block, line: Line) -> tuple[str, ...]:
    """The error bar; the kernel's audit is said once for all lines."""
    stamps = stamp_words(stamp_lag_ms(line.cell))
    return tuple(r for r in line_remarks(block, line) if r not in (*line.remarks, stamps))


def _where(block: Block, lines: Sequence[Line]) -> str:
    """`users 1, 2`, `cell cold, agents 4, 8; cell primed, agents 8`; empty where it is of all lines."""
    if len(lines) == len(block.lines):
        return ""
    *outer, last = block.lead
    found: dict[str, list[str]] = {}
    for line in lines:
        place = "".join(f"{_flat(c)} {c.words(line)}, " for c in outer)
        found.setdefault(place, []).append(last.words(line))
    return "; ".join(f"{place}{_flat(last)} {', '.join(values)}" for place, values in found.items())


def _flat(column: Column) -> str:
    return column.short.replace("-\n", "").replace("\n", " ")
