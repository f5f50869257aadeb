"""Rows of a table that somebody else wrote: CSV or JSON lines, each with its line in the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from orchestrator.errors import InvalidFile, Problem
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. `line`: where it begins, from 1. Values of a CSV are text."""

    file: str
    line: int
    cells: Mapping[str, Json]

    def number(self, key: str) -> float:
        """The cell as a number of zero or more.

        Raises:
            InvalidFile: There is none, or it is something else.
        """
        value = self.cells.get(key)
        found = _as_number(value)
        if found is None or not found >= 0 or found == float("inf"):
            raise wrong(self.file, self.line, key, f"expected a number of zero or more, got {_shown(value)}")
        return found

    def whole(self, key: str) -> int:
        """The cell as a whole number of zero or more.

        Raises:
            InvalidFile: There is none, or it is something else.
        """
        found = self.number(key)
        if not found.is_integer():
            raise wrong(self.file, self.line, key, f"expected a whole number, got {_shown(self.cells.get(key))}")
        return int(found)


def wrong(file: str, line: int | None, path: str, message: str) -> InvalidFile:
    return InvalidFile([Problem(file=file, line=line, path=path, message=message)])


def json_rows(text: str, file: str) -> Iterator[Row]:
    """The objects of JSON lines; empty lines are skipped.

    Raises:
        InvalidFile: A line is no JSON object.
    """
    # Not splitlines(): a JSON text may hold U+2028 as it is.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as exc:
            raise wrong(file, number, "", f"not JSON: {exc.msg} at column {exc.colno}") from exc
        if not isinstance(value, dict):
            raise wrong(file, number, "", "expected a JSON object on each line")
        yield Row(file=file, line=number, cells=value)


def csv_rows(text: str, file: str) -> Iterator[Row]:
    """The rows of a CSV file with a head line.

    Raises:
        InvalidFile: A row has more or fewer cells than the head.
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    head = [name.strip() for name in next(reader, [])]
    before = reader.line_num
    for cells in reader:
        line, before = before + 1, reader.line_num
        if not any(cells):
            continue
        if len(cells) != len(head):
            raise wrong(file, line, "", f"{len(cells)} cells, but the head line names {len(head)}")
        yield Row(file=file, line=line, cells=dict(zip(head, (c.strip() for c in cells), strict=True)))


def read_lengths(text: str, file: str, column: str | None) -> tuple[int, ...]:
    """Token counts: one a line, or with `column` from CSV or JSON lines.

    Raises:
        InvalidFile: One is not a whole number of at least 1, or there is none.
    """
    if column is None:
        lines = enumerate(text.splitlines(), start=1)
        rows: Iterator[Row] = (Row(file=file, line=n, cells={"": t.strip()}) for n, t in lines if t.strip())
    else:
        rows = json_rows(text, file) if text.lstrip().startswith("{") else csv_rows(text, file)
    found = tuple(_length(row, column or "") for row in rows)
    if not found:
        raise wrong(file, None, "", "no lengths in it")
    return found


def _length(row: Row, key: str) -> int:
    if key not in row.cells:
        known = ", ".join(row.cells)
        raise wrong(row.file, row.line, key, f"no such column; there are: {known}")
    tok = row.whole(key)
    if tok < 1:
        raise wrong(row.file, row.line, key, "expected at least 1 token, got 0")
    return tok


def _as_number(value: Json) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _shown(value: Json) -> str:
    return "nothing" if value is None or value == "" else f"`{str(value)[:60]}`"
