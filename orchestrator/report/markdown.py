"""The tables as Markdown: for a terminal, a README or an issue. The same content as the page."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.blocks import answers_without_points, blocks
from orchestrator.report.effective import HEAD as EFFECTIVE_HEAD
from orchestrator.report.effective import counted_words, effective_lines
from orchestrator.report.layout import BlockRow, BlockTable, Field, SeriesRow, SeriesTable, block_table, series_table
from orchestrator.report.series import series_of, without_points
from orchestrator.report.tables import RunRow
from orchestrator.report.text import duration
from orchestrator.report.words import engine_words, host_words, vantage_words


def configurations(rows: Sequence[RunRow]) -> str:
    """A table for each load that was measured, then the runs without a figure."""
    parts = [_series(series_table(series)) for series in series_of(rows)]
    left = without_points(rows)
    if left:
        parts.append("## Not measured\n\n" + _not_measured(left))
    return "\n\n".join(parts)


def run_report(row: RunRow) -> str:
    """One run: what ran, its gates, its sweep."""
    r = row.run
    ran = (
        f"{engine_words(row)} on {host_words(row)} · {r.created_at} · {r.status} · "
        f"wall time {duration(r.duration_s)} (measured) · load from {r.vantage}"
    )
    parts = [
        f"## {plain_text(r.profile_title)}",
        plain_text(ran),
        plain_text(str((r.error or {}).get("message") or "")),
        plain_text(f"Gate 0: {row.verdict}"),
        "\n".join(_gate(g.name, g.status, g.summary, g.hint) for g in row.gates),
        _effective(row),
        *(_block(block_table(block)) for block in blocks(row.points, row.searches)),
        "\n".join(f"- {plain_text(words)}" for words in answers_without_points(row)),
    ]
    return "\n\n".join(p for p in parts if p)


def report(rows: Sequence[RunRow], warnings: Sequence[str] = ()) -> str:
    """The whole notebook as Markdown; what could not be read comes first."""
    noted = [f"> warning: {plain_text(w)}" for w in (*warnings, *(w for row in rows for w in row.warnings))]
    body = [configurations(rows), *(run_report(r) for r in rows)] if rows else ["No runs yet."]
    return "\n\n".join(["# Serving configurations", *noted, *body]) + "\n"


def _effective(row: RunRow) -> str:
    """What is declared beside what ran; empty where nothing was read back."""
    lines = effective_lines(row.run, row.gates)
    if not lines:
        return ""
    table = table_text(EFFECTIVE_HEAD, [[plain_text(text) for text in line.fields] for line in lines])
    return f"### Declared and running: {plain_text(counted_words(lines))}\n\n{table}"


def _series(table: SeriesTable) -> str:
    head = ["Configuration", "Engine", "Hosts", *(h.text for h in table.head), "Gate 0"]
    lines = [_run_fields(row) for row in table.rows]
    best = " Best valid and gated single-host figure of each column in bold." if table.has_best else ""
    return f"## {plain_text(table.title)}\n\n{plain_text(table.caption + best)}\n\n{table_text(head, lines)}"


def _run_fields(row: SeriesRow) -> list[str]:
    of_run = row.line.row
    return [
        plain_text(of_run.run.profile_title),
        plain_text(engine_words(of_run)),
        plain_text("; ".join(w for w in (host_words(of_run), vantage_words(row.line)) if w)),
        *(_field(f) for f in row.fields),
        plain_text(of_run.verdict + (" · ungated" if row.line.is_ungated else "")),
    ]


def _block(table: BlockTable) -> str:
    head = [*(h.text for h in table.head), "Notes"]
    parts = [
        f"### {plain_text(table.title)}",
        plain_text(table.caption),
        table_text(head, [_block_fields(r) for r in table.rows]),
    ]
    parts += ["\n".join(f"- {plain_text(words)}" for words in table.answers)] if table.answers else []
    return "\n\n".join(parts)


def _block_fields(row: BlockRow) -> list[str]:
    return [*(_field(f) for f in row.fields), plain_text("; ".join((*row.notes, *row.remarks)))]


def _not_measured(rows: Sequence[RunRow]) -> str:
    head = ("Configuration", "Engine", "Hosts", "Status", "Gate 0")
    lines = [
        [
            row.run.profile_title,
            engine_words(row),
            host_words(row),
            row.run.status,
            row.verdict + (" · ungated" if row.run.is_ungated else ""),
        ]
        for row in rows
    ]
    return table_text(head, [[plain_text(v) for v in line] for line in lines])


def _field(field: Field) -> str:
    """Struck with its guard's name behind, bold where it is the best."""
    text, note = plain_text(field.text), plain_text(field.note)
    if field.is_struck:
        return f"~~{text}~~ {note}".rstrip()
    text = f"**{text}**" if field.is_best else text
    return f"{text} ({note})" if note else text


def _gate(name: str, status: str, summary: str, hint: str | None) -> str:
    return plain_text(f"- {name}: {status}: {summary}" + (f" (hint: {hint})" if hint else ""))


def table_text(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Fields are plain by now."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def plain_text(text: str) -> str:
    """On one line, with nothing that ends a table's cell or opens a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
