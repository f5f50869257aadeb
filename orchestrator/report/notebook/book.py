"""What the page is made from, and what a section gives to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.records.record import CellRecord
from orchestrator.report.raw import RawRecords
from orchestrator.report.series import Series, series_of
from orchestrator.report.tables import RunRow
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedNote:
    """One Markdown file of `results/notes`. `day`: `2026-11-30`, from its name or its first line."""

    day: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All that the sections read: rows of records, and the raw ones behind them.

    Attributes:
        rows: One a run, newest last.
        record_links: Where each run's record lies as seen from the page, by run id; empty: nowhere to go.
        is_live: A sweep is going on: the page reloads itself.
        raw: Where pictures of single requests are read from.
    """

    rows: tuple[RunRow, ...]
    notes: tuple[DatedNote, ...] = ()
    warnings: tuple[str, ...] = ()
    record_links: Mapping[str, str] = field(default_factory=dict)
    is_live: bool = False
    raw: RawRecords = field(default_factory=RawRecords)

    @property
    def series(self) -> tuple[Series, ...]:
        return series_of(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A Vega-Lite picture.

    Attributes:
        id: Unique on the page; also the name of its PNG or SVG file.
        title, text: Heading, and what it shows in a sentence or two: for those who do not see it.
        spec: Vega-Lite, data inside. No title of its own; width `container`.
    """

    id: str
    title: str
    text: str
    spec: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the page.

    Attributes:
        id: Anchor. title: its heading, and its entry in the page's index.
        template: Its partial under `report/page/`; sees `section`, and the page's macros.
        data: For the template, plain values.
    """

    id: str
    title: str
    template: str
    data: Mapping[str, Any] = field(default_factory=dict)
    charts: tuple[Chart, ...] = ()


SectionMaker = Callable[[Book], Section | None]
"""None: the records have nothing to show there."""


def anchor(text: str) -> str:
    """An id for HTML."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)


def run_anchor(row: RunRow) -> str:
    return f"run-{anchor(row.run.id)}"


def cell_anchor(row: RunRow, cell: CellRecord) -> str:
    """Where a cell's line stands in the details of its run."""
    return f"{run_anchor(row)}--{anchor(cell.workload)}-{anchor(cell.id)}"


def newest(rows: Sequence[RunRow]) -> str | None:
    """When the newest record was written, UTC."""
    return max((r.run.updated_at for r in rows), default=None)
