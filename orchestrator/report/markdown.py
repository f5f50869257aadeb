"""The tables as Markdown: for a terminal, a README or an issue. The same content as the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.report import foreign
from orchestrator.report.series import Series, SeriesLine, series_of, without_points
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.text import DASH, duration, number
from orchestrator.report.words import (
    POINT_HEAD,
    cached,
    caption,
    engine_words,
    first_token,
    host_words,
    point_words,
    vantage_words,
)


def configurations(rows: Sequence[RunRow]) -> str:
    """A table for each load that was measured, then the runs without a figure."""
    parts = [_series(series) for series in series_of(rows)]
    left = without_points(rows)
    if left:
        parts.append("## Not measured\n\n" + _not_measured(left))
    return "\n\n".join(parts)


def points(rows: Sequence[PointRow]) -> str:
    """A sweep's table, one line a point."""
    return _table(POINT_HEAD, [point_words(row) for row in rows])


def run_report(row: RunRow) -> str:
    """One run: what ran, its gates, its sweep."""
    r = row.run
    ran = (
        f"{engine_words(row)} on {host_words(row)} · {r.created_at} · {r.status} · "
        f"wall time {duration(r.duration_s)} (measured) · load from {r.vantage}"
    )
    parts = [
        f"## {_plain(r.profile_title)}",
        _plain(ran),
        _plain(str((r.error or {}).get("message") or "")),
        _plain(f"Gate 0: {row.verdict}"),
        "\n".join(_gate(g.name, g.status, g.summary, g.hint) for g in row.gates),
        points(row.points) if row.points else "",
    ]
    return "\n\n".join(p for p in parts if p)


def report(rows: Sequence[RunRow], warnings: Sequence[str] = ()) -> str:
    """The whole notebook as Markdown; what could not be read comes first."""
    noted = [f"> warning: {_plain(w)}" for w in (*warnings, *(w for row in rows for w in row.warnings))]
    body = [configurations(rows), *(run_report(r) for r in rows)] if rows else ["No runs yet."]
    return "\n\n".join(["# Serving configurations", *noted, *body]) + "\n"


def _series(series: Series) -> str:
    head = [
        "Configuration",
        "Engine",
        "Hosts",
        *(f"c={c}" for c in series.levels),
        "First token (s)",
        "Cached",
        "Gate 0",
    ]
    best = {c: series.find_best(c) for c in series.levels}
    lines = [_line_words(line, best) for line in series.lines]
    notes = f"{caption(series)} Best valid and gated single-host figure of each column in bold."
    return f"## {_plain(series.key.title)}\n\n{_plain(notes)}\n\n{_table(head, lines)}"


def _line_words(line: SeriesLine, best: Mapping[int, PointRow | None]) -> list[str]:
    return [
        line.row.run.profile_title,
        engine_words(line.row),
        "; ".join(w for w in (host_words(line.row), vantage_words(line)) if w),
        *(_rate(line.points.get(c), is_best=c in line.points and line.points[c] is found) for c, found in best.items()),
        first_token(line),
        cached(line),
        line.row.verdict + (" · ungated" if line.is_ungated else ""),
    ]


def _not_measured(rows: Sequence[RunRow]) -> str:
    head = ("Configuration", "Engine", "Hosts", "Status", "Gate 0")
    return _table(
        head,
        [
            [
                row.run.profile_title,
                engine_words(row),
                host_words(row),
                row.run.status,
                row.verdict + (" · ungated" if row.run.is_ungated else ""),
            ]
            for row in rows
        ],
    )


def _rate(point: PointRow | None, *, is_best: bool) -> str:
    rate = None if point is None else foreign.output_tok_per_s(point.figures)
    if point is None or rate is None:
        return DASH
    text = foreign.marked(number(rate), point.figures.cell)
    if not point.figures.is_valid:
        return f"~~{text}~~ {point.figures.cell.guards[0].get('name', 'invalid')}"
    return f"**{text}**" if is_best else text


def _gate(name: str, status: str, summary: str, hint: str | None) -> str:
    return _plain(f"- {name}: {status}: {summary}" + (f" (hint: {hint})" if hint else ""))


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    body = ([_plain(v) for v in line] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body))


def _plain(text: str) -> str:
    """On one line, with nothing that ends a table's cell or opens a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
