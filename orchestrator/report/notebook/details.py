"""Everything about each configuration: its gates with their evidence, its tables, where its figures come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.report.blocks import Block, answers_without_points, blocks
from orchestrator.report.effective import HEAD as EFFECTIVE_HEAD
from orchestrator.report.effective import TOLD_HEAD, counted_words, effective_lines, list_words, told_lines
from orchestrator.report.layout import block_table
from orchestrator.report.notebook.book import Book, Section, cell_anchor, run_anchor
from orchestrator.report.notebook.evidence import gate_evidence
from orchestrator.report.notebook.identity import Configuration, configurations_of, is_foreign
from orchestrator.report.notebook.provenance import host_facts, provenance
from orchestrator.report.notebook.told import HEAD, report_words, stated_lines
from orchestrator.report.notebook.verdicts import TONES, tone_of, verdict_words
from orchestrator.report.tables import RunRow
from orchestrator.report.text import duration
from orchestrator.report.words import engine_words, host_words


def section(book: Book) -> Section | None:
    if not book.rows:
        return None
    found = sorted(configurations_of(book.rows), key=lambda c: (is_foreign(c.newest), c.name.casefold()))
    return Section(
        id="details",
        title="Details and evidence",
        template="details.html.j2",
        data={
            "configurations": [_configuration(c, book) for c in found],
            "stated_head": HEAD,
            "effective_head": EFFECTIVE_HEAD,
            "told_head": TOLD_HEAD,
        },
    )


def _configuration(c: Configuration, book: Book) -> dict[str, Any]:
    return {
        "id": c.id,
        "name": c.name,
        "engine": engine_words(c.newest),
        "hosts": host_words(c.newest),
        "verdict": verdict_words(c.newest),
        "tone": tone_of(c.newest),
        "ungated": c.newest.run.is_ungated and not is_foreign(c.newest),
        "newest": _run(c.newest, book),
        "older": [_run(row, book) for row in c.rows[1:]],
    }


def _run(row: RunRow, book: Book) -> dict[str, Any]:
    r = row.run
    return {
        "anchor": run_anchor(row),
        "id": r.id,
        "record": book.record_links.get(r.id),
        "status": r.status,
        "created_at": r.created_at,
        "wall": f"wall time {duration(r.duration_s)} (measured)" if r.duration_s else "",
        "vantage": "" if is_foreign(row) else f"load from {r.vantage}",
        "error": str((r.error or {}).get("message") or ""),
        "hint": str((r.error or {}).get("hint") or ""),
        "foreign": report_words(row) if is_foreign(row) else [],
        "stated": stated_lines(row) if is_foreign(row) else [],
        "verdict": verdict_words(row),
        "tone": tone_of(row),
        "effective": _effective(row),
        "gates": [_gate(row, i) for i in range(len(row.gates))],
        "blocks": [_block(b, row, first) for b, first in _with_first_lines(row)],
        "answers": answers_without_points(row),
        "provenance": provenance(row),
        "hosts": host_facts(row),
        "command": list(r.command),
        "invocation": " ".join(r.invocation),
        "profile": r.profile_source,
    }


def _effective(row: RunRow) -> dict[str, Any]:
    lines = effective_lines(row.run, row.gates)
    return {
        "counted": counted_words(lines),
        "by": list_words(row.run),
        "lines": [{"fields": x.fields, "tone": x.tone} for x in lines],
        "told": told_lines(row.run),
        "is_failing": any(x.is_failing for x in lines),
    }


def _gate(row: RunRow, place: int) -> dict[str, Any]:
    gate = row.gates[place]
    return {
        "name": gate.name,
        "status": gate.status,
        "tone": TONES.get(gate.status, ""),
        "summary": gate.summary,
        "hint": gate.hint or "",
        "may_fail": not gate.is_required,
        "took": duration(gate.duration_s) if gate.duration_s else "",
        "evidence": gate_evidence(gate),
    }


def _with_first_lines(row: RunRow) -> Iterator[tuple[Block, dict[int, str]]]:
    """The run's tables, with the anchors of the lines that are their cell's first."""
    seen: set[str] = set()
    for block in blocks(row.points, row.searches):
        ids = {}
        for place, line in enumerate(block.lines):
            name = cell_anchor(row, line.cell)
            if name not in seen:
                seen.add(name)
                ids[place] = name
        yield block, ids


def _block(block: Block, row: RunRow, ids: dict[int, str]) -> dict[str, Any]:
    table = block_table(block)
    return {
        "title": table.title,
        "caption": table.caption,
        "head": table.head,
        "rows": [(ids.get(place, ""), line) for place, line in enumerate(table.rows)],
        "answers": table.answers,
    }
