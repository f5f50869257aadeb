"""A comparison as Markdown, for an issue's comment."""

from __future__ import annotations

from orchestrator.report.compare import Comparison
from orchestrator.report.compare_words import (
    DIFFERENCES_HEAD,
    HEAD,
    FigureRow,
    caption,
    difference_rows,
    run_words,
    summary,
    unpaired_words,
    workload_tables,
)
from orchestrator.report.figure_change import Verdict
from orchestrator.report.markdown import plain_text, table_text


def comparison(found: Comparison) -> str:
    """Who is compared, what differs, a table for each workload, what has no cell beside it."""
    warnings = [f"> warning: {plain_text(w)}" for row in (found.a, found.b) for w in row.warnings]
    parts = [
        f"- A: {plain_text(run_words(found.a))}\n- B: {plain_text(run_words(found.b))}",
        "\n".join(warnings),
        plain_text(summary(found)),
        _differences(found),
    ]
    for block in workload_tables(found):
        parts += [f"### {plain_text(block.workload)}", table_text(HEAD, [_fields(row) for row in block.rows])]
        parts += ["\n".join(f"- {plain_text(words)}" for words in block.marks)]
    parts += ["\n".join(f"- {plain_text(words)}" for words in unpaired_words(found))]
    parts += [caption(found)]
    return "\n\n".join(p for p in parts if p) + "\n"


def _differences(found: Comparison) -> str:
    if not found.differences:
        return "The records tell no difference between the two configurations."
    rows = [[plain_text(v) for v in row] for row in difference_rows(found.differences)]
    return table_text(DIFFERENCES_HEAD, rows)


def _fields(row: FigureRow) -> list[str]:
    """A change that is sure in bold."""
    fields = [plain_text(f) for f in row.fields]
    if row.verdict in (Verdict.BETTER, Verdict.WORSE):
        fields[-1] = f"**{fields[-1]}**"
    return fields
