"""Which one for what: per use the configuration, the verdict, the cell that decides, and the runner-up."""

from __future__ import annotations

from typing import Any

from orchestrator.report.notebook.book import Book, Section, cell_anchor, run_anchor
from orchestrator.report.recommend import Recommendation, recommend
from orchestrator.report.use_candidates import Candidate
from orchestrator.report.use_words import (
    answer_words,
    asides,
    because,
    cell_words,
    command,
    figures_words,
    limit_lines,
    limits_words,
    lost_words,
    source_words,
    tone,
)
from orchestrator.report.uses import USES
from orchestrator.report.words import engine_words, host_words


def section(book: Book) -> Section | None:
    if not any(row.points for row in book.rows):
        return None
    found = recommend(book.rows)
    return Section(
        id="uses",
        title="Which one for what",
        template="uses.html.j2",
        data={
            "rows": [_row(r) for r in found if r.best is not None],
            "left": [_left(r) for r in found if r.best is None],
            "limits": list(limit_lines(USES)),
            "has_stated": any(r.best is not None and r.best.is_foreign for r in found),
        },
    )


def _row(found: Recommendation) -> dict[str, Any]:
    best, rule = found.best, found.rule
    assert best is not None
    assert rule is not None
    return {
        "id": f"use-{found.use.key}",
        "title": found.use.title,
        "answer": answer_words(found),
        "tone": tone(found),
        "best": _candidate(best),
        "figures": figures_words(found),
        "limits": limits_words(rule),
        "cell": cell_words(best.point),
        "detail": cell_anchor(best.row, best.point.figures.cell),
        "because": because(best),
        "second": None if found.second is None else _candidate(found.second),
        "lost": lost_words(found),
        "asides": asides(found),
        "command": command(found),
    }


def _left(found: Recommendation) -> dict[str, Any]:
    return {"title": found.use.title, "command": command(found), "asides": asides(found)}


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.configuration.name,
        "anchor": run_anchor(candidate.row),
        "where": " on ".join(w for w in (engine_words(candidate.row), host_words(candidate.row)) if w),
        "over": f"over {candidate.hosts} hosts" if candidate.hosts > 1 else "",
        "foreign": source_words(candidate),
        "marks": [m for m in candidate.point.marks if m != "ungated"],
    }
