"""Which configuration to use: one line a configuration, a column a cell, for each load that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from orchestrator.records.store import cell_stem
from orchestrator.report import foreign
from orchestrator.report.notebook.board import Board, BoardField, BoardHead, BoardRow, board
from orchestrator.report.notebook.book import Book, Section, cell_anchor, run_anchor
from orchestrator.report.notebook.facts import HEAD, figure_lines, said_of
from orchestrator.report.notebook.identity import Configuration, by_run, configurations_of, is_foreign
from orchestrator.report.notebook.verdicts import VERDICTS, tone_of, verdict_of, verdict_words
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.words import engine_words, host_words, vantage_words
from orchestrator.values import Json


def section(book: Book) -> Section | None:
    if not book.rows:
        return None
    configurations = configurations_of(book.rows)
    of_run = by_run(configurations)
    boards = sorted((board(series, of_run) for series in book.series), key=_importance)
    popovers: dict[str, list[Json]] = {}
    tables = [_table(b, f"load-{i}", book, popovers) for i, b in enumerate(boards)]
    left = [c for c in configurations if not any(row.points for row in c.rows)]
    return Section(
        id="configurations",
        title="Configurations",
        template="configurations.html.j2",
        data={
            "tables": tables,
            "left": [{**_identity(c, c.newest), "older": len(c.rows) - 1} for c in left],
            "popover_head": HEAD,
            "popovers": popovers,
            "filters": _filters([row for row in book.rows if row.points] or book.rows),
            "has_foreign": any(is_foreign(row) for row in book.rows),
        },
    )


def _importance(b: Board) -> tuple[bool, int, int, str]:
    """The headline first: a table with a matrix, most configurations, then most levels."""
    return b.sorted_by is None, -len(b.rows), -b.levels, b.key.title


def _table(b: Board, id_: str, book: Book, popovers: dict[str, list[Json]]) -> dict[str, Any]:
    return {
        "id": id_,
        "title": b.key.title,
        "caption": b.caption,
        "has_best": b.has_best,
        "has_stated_best": any(f.best.endswith("stated") for row in b.rows for f in row.fields),
        "head": b.head,
        "groups": _groups(b.head),
        "sorted_by": b.sorted_by,
        "rows": [_row(row, f"{id_}-{i}", book, popovers) for i, row in enumerate(b.rows)],
    }


def _groups(head: Sequence[BoardHead]) -> list[tuple[str, int]]:
    """Words over columns, and over how many; empty without any."""
    runs = [(group, len(list(of_one))) for group, of_one in groupby(h.group for h in head)]
    return runs if any(group for group, _ in runs) else []


def _row(row: BoardRow, id_: str, book: Book, popovers: dict[str, list[Json]]) -> dict[str, Any]:
    of_run = row.line.row
    return {
        **_identity(row.configuration, of_run),
        "id": id_,
        "vantage": vantage_words(row.line) if not is_foreign(of_run) else "",
        "older": row.older,
        "ungated": row.line.is_ungated and not is_foreign(of_run),
        "fields": [_field(f, of_run, book, popovers) for f in row.fields],
    }


def _field(field: BoardField, of_run: RunRow, book: Book, popovers: dict[str, list[Json]]) -> tuple[BoardField, str]:
    """The field, and where its detail stands, which is its popover's key too; empty where there is none."""
    if field.point is None:
        return field, ""
    detail = cell_anchor(of_run, field.point.figures.cell)
    if detail not in popovers:
        popovers[detail] = _popover(field.point, of_run, book)
    return field, detail


def _popover(point: PointRow, row: RunRow, book: Book) -> list[Json]:
    """Title, what cell, figures, what is said, the record's address or null."""
    cell = point.figures.cell
    record = book.record_links.get(row.run.id)
    words = [f"{cell.workload}/{cell.id}"]
    words += [f"not measured here: {foreign.tool_words(row.run)}"] if is_foreign(row) else []
    lines: list[Json] = list(figure_lines(point))
    said: list[Json] = list(said_of(point))
    address = None if record is None else f"{record.rstrip('/')}/{cell_stem(cell)}.json"
    return [row.run.profile_title, " · ".join(words), lines, said, address]


def _identity(configuration: Configuration, row: RunRow) -> dict[str, Any]:
    """Who a line is."""
    r = row.run
    hosts = len(r.hosts)
    return {
        "anchor": run_anchor(row),
        "config": configuration.id,
        "name": configuration.name,
        "note": str(r.profile.get("note") or r.source.get("remark") or ""),
        "engine": engine_words(row),
        "engine_name": r.engine,
        "model": r.model,
        "model_name": _short_model(r.model),
        "hosts": host_words(row),
        "host_names": [str(h.get("name")) for h in r.hosts],
        "over": f"over {hosts} hosts" if hosts > 1 else "",
        "foreign": f"not measured here: {_report(row)}" if is_foreign(row) else "",
        "status": r.status,
        "verdict": verdict_words(row),
        "verdict_name": verdict_of(row),
        "tone": tone_of(row),
        "ungated": r.is_ungated and not is_foreign(row),
        "created_at": r.created_at,
    }


def _report(row: RunRow) -> str:
    """The report's or the tool's name, without its version."""
    return str(row.run.source.get("title") or "another tool")


def _short_model(model: str) -> str:
    """Of a path the file alone."""
    return model.rsplit("/", 1)[-1] if model.startswith(("/", ".", "~")) else model


def _filters(rows: Sequence[RunRow]) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Name, label and choices of each; one that has nothing to choose from is left out."""
    hosts = sorted({str(h.get("name")) for row in rows for h in row.run.hosts})
    found = {verdict_of(row) for row in rows}
    offered: Mapping[str, tuple[str, list[tuple[str, str]]]] = {
        "engine": ("Engine", [(v, v) for v in sorted({row.run.engine for row in rows})]),
        "model": ("Model", [(v, _short_model(v)) for v in sorted({row.run.model for row in rows})]),
        "host": ("Host", [(v, v) for v in hosts]),
        "verdict": ("Gate 0", [(v, words) for v, words in VERDICTS.items() if v in found]),
    }
    return ((name, label, choices) for name, (label, choices) in offered.items() if len(choices) > 1)
