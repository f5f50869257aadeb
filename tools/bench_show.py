"""Tables and targets as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A figure that gate0 promises. `value` None: not measured in this run."""

    name: str
    value: float | None
    limit: float
    unit: str = ""
    is_floor: bool = False

    @property
    def is_met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.is_floor else self.value <= self.limit

    def line(self) -> str:
        bound = f"{'at least' if self.is_floor else 'at most'} {self.limit:,g}{self.unit}"
        if self.value is None:
            return f"  {'not measured':12s}  {self.name}: {bound}"
        digits = ",.0f" if self.limit >= 1000 else ".3g"
        return f"  {'met' if self.is_met else 'MISSED':12s}  {self.name}: {self.value:{digits}}{self.unit}, {bound}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as needed, headings broken at their blanks; text to the left, figures to the right."""
    parts = [text.split(" ") for text in head]
    widths = [max(map(len, (*part, *(row[i] for row in rows)))) for i, part in enumerate(parts)]
    height = max(map(len, parts))
    headings = [[("", *part)[max(0, len(part) - height + y + 1)] for part in parts] for y in range(height)]
    return [_line(cells, widths, rows) for cells in (*headings, *rows)]


def _line(cells: Sequence[str], widths: Sequence[int], rows: Sequence[Sequence[str]]) -> str:
    is_text = [any(row[i][:1].isalpha() and row[i] != "none" for row in rows) for i in range(len(widths))]
    padded = [c.ljust(w) if t else c.rjust(w) for c, w, t in zip(cells, widths, is_text, strict=True)]
    return "  " + "  ".join(padded).rstrip()
