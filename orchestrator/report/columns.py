"""What a table is made of: columns that know their words, axes that stand in the title where they do not vary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.figures.cell import CellFigures
from orchestrator.records.record import CellRecord
from orchestrator.report.notes import marks, notes
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH

Order = tuple[str | float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a table: a point, or one lane of a mixed point (`lane` empty: all of them together)."""

    point: PointRow
    lane: str = ""

    @property
    def figures(self) -> CellFigures:
        return self.point.figures

    @property
    def cell(self) -> CellRecord:
        return self.point.figures.cell

    @property
    def alone(self) -> CellFigures | None:
        """The cell in which the lane ran alone, where this one is of several together."""
        found = self.point.alone.get(self.lane)
        return None if found is None or found.cell is self.cell else found

    @property
    def marks(self) -> tuple[str, ...]:
        """The point's, said once; of a lane what is to be said of the cell in which it ran alone only."""
        if not self.lane or self.alone is None:
            return self.point.marks
        return tuple(f"alone: {mark}" for mark in marks(self.alone) if mark not in self.point.marks)

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.lane or self.alone is None:
            return self.point.notes
        return tuple(f"alone: {note}" for note in notes(self.alone) if note not in self.point.notes)

    @property
    def remarks(self) -> tuple[str, ...]:
        return self.point.remarks if not self.lane or self.alone is None else ()


def is_invalid(line: Line) -> bool:
    return not line.figures.is_valid


def never(line: Line) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        head: In Markdown and on the page, with its unit.
        short: In the terminal; a line break makes it narrow.
        words: Of one line. narrow: the same for the terminal, where it must be shorter.
        group: Neighbours of one group stay side by side where a table is split.
        is_struck: Whether the line's figure is none: its cell broke a guard.
        is_text: Left-aligned. is_long: a sentence, that wraps.
        is_optional: Left out of a table in which no line has it.
        is_aside: Set back, so that nobody takes it for the headline.
    """

    head: str
    short: str
    words: Callable[[Line], str]
    narrow: Callable[[Line], str] | None = None
    group: str = ""
    is_struck: Callable[[Line], bool] = is_invalid
    is_text: bool = False
    is_long: bool = False
    is_optional: bool = False
    is_aside: bool = False

    def narrow_words(self, line: Line) -> str:
        return (self.narrow or self.words)(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A size of the load: a column where it varies within a table, words of the title where it does not."""

    column: Column
    title: Callable[[CellRecord], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How loads of one kind are shown.

    Attributes:
        lead: What tells the lines of a table apart beside the axes: users; cell and agents; rate.
        caption: How the columns are to be read.
        order: Of the lines.
        lines: Of one run's points of this load; one a point unless told otherwise.
        matrix: The figure that runs are compared by, level beside level; None: line below line.
    """

    name: str
    axes: tuple[Axis, ...]
    lead: tuple[Column, ...]
    columns: tuple[Column, ...]
    caption: str
    order: Callable[[Line], Order]
    lines: Callable[[Sequence[PointRow]], tuple[Line, ...]] = lambda points: tuple(Line(point=p) for p in points)
    matrix: Matrix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A figure by number of users.

    Attributes:
        of: What it is, for the caption. unit: the same over a column.
        words, value: Of a point; the value decides which is best, None competes with nobody.
        beside: Columns of the highest level with a valid figure.
    """

    of: str
    unit: str
    words: Callable[[PointRow], str]
    value: Callable[[PointRow], float | None]
    beside: tuple[Column, ...]


MARKS = Column(
    head="Marks",
    short="marks",
    words=lambda line: ", ".join(line.marks),
    group="marks",
    is_struck=never,
    is_text=True,
    is_long=True,
    is_optional=True,
)


def kept(columns: Sequence[Column], lines: Sequence[Line]) -> tuple[Column, ...]:
    """Without those optional ones that no line has."""
    return tuple(c for c in columns if not c.is_optional or any(c.words(line) not in ("", DASH) for line in lines))


def varying(axes: Sequence[Axis], lines: Sequence[Line]) -> tuple[Axis, ...]:
    """The axes that have more than one value among the lines."""
    return tuple(a for a in axes if len({a.column.words(line) for line in lines}) > 1)
