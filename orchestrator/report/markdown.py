"""The tables as Markdown: for a terminal, a README or an issue."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.tables import PointRow, RunRow, levels
from orchestrator.report.text import DASH, duration, number, seconds, share

LEVELS_SHOWN = 6


def configurations(rows: Sequence[RunRow]) -> str:
    """One line a run, its output tokens per second at each level, first token and verdict."""
    shown = _spread_levels(levels(rows))
    head = ["Configuration", "Engine", "Hosts", *(f"c={c}" for c in shown), "First token (s)", "Cached", "Gate 0"]
    lines = [_line(head), _line(["---"] * len(head))]
    lines.extend(_line([_cell(v) for v in _configuration(row, shown)]) for row in rows)
    return "\n".join(lines)


def points(rows: Sequence[PointRow]) -> str:
    """A sweep's table, one line a point."""
    answers = rows[0].batch_answers if rows else 200
    head = ["Load", "Users", "tok/s", "sd", "per user", "efficiency", "TTFT p50 (s)", "p95", "TPOT p50 (ms)"]
    head += ["E2E p50 (s)", f"{answers} answers (derived)", "good", "notes"]
    lines = [_line(head), _line(["---"] * len(head))]
    lines.extend(_line([_cell(v) for v in point_words(row)]) for row in rows)
    return "\n".join(lines)


def point_words(row: PointRow) -> list[str]:
    """The cells of one point's line, in the order of `points`."""
    f = row.figures
    rate = f.output_tok_per_s
    return [
        f"{f.cell.workload} {f.cell.kind} {f.cell.prompt_tok}/{f.cell.output_tok}",
        str(f.cell.concurrency),
        number(rate.mean if rate else None),
        number(rate.sd if rate else None, 2),
        number(f.per_user_tok_per_s),
        share(row.efficiency),
        seconds(f.ttft_ms.p50),
        seconds(f.ttft_ms.p95),
        number(f.tpot_ms.p50),
        seconds(f.e2e_ms.p50),
        duration(row.batch_s) + (" measured" if row.batch_kind == "measured" else ""),
        f"{f.good}/{f.requests}",
        "; ".join(row.notes),
    ]


def run_report(row: RunRow) -> str:
    """One run: what ran, its gates, its sweep."""
    r = row.run
    hosts = ", ".join(str(h.get("name")) for h in r.hosts)
    parts = [
        f"## {r.profile_title}",
        f"{r.engine} {r.engine_version or ''} on {hosts} · {r.created_at} · {r.status} · wall {duration(r.duration_s)}",
        f"Gate 0: {row.verdict}",
        *(f"- {g.name}: {g.status}: {g.summary}" for g in row.gates),
    ]
    if row.points:
        parts.append(points(row.points))
    return "\n\n".join(p for p in parts if p)


def report(rows: Sequence[RunRow]) -> str:
    """The whole notebook as Markdown."""
    if not rows:
        return "No runs yet."
    return "\n\n".join(["# Serving configurations", configurations(rows), *(run_report(r) for r in rows)]) + "\n"


def _configuration(row: RunRow, shown: Sequence[int]) -> list[str]:
    r = row.run
    cells = [_rate(row.point_at(c)) for c in shown]
    top = row.points[-1] if row.points else None
    return [
        r.profile_title,
        f"{r.engine} {r.engine_version or ''}".strip(),
        ", ".join(str(h.get("name")) for h in r.hosts),
        *cells,
        f"{seconds(top.figures.ttft_ms.p50)} at {top.figures.cell.concurrency}" if top else DASH,
        share(top.figures.cached_share, 1) if top else DASH,
        row.verdict + (" · ungated" if r.is_ungated else ""),
    ]


def _rate(point: PointRow | None) -> str:
    if point is None or point.figures.output_tok_per_s is None:
        return DASH
    text = number(point.figures.output_tok_per_s.mean)
    return text if point.figures.is_valid else f"~~{text}~~ {point.figures.cell.guards[0].get('name', 'invalid')}"


def _spread_levels(all_levels: Sequence[int]) -> tuple[int, ...]:
    if len(all_levels) <= LEVELS_SHOWN:
        return tuple(all_levels)
    step = (len(all_levels) - 1) / (LEVELS_SHOWN - 1)
    return tuple(all_levels[round(i * step)] for i in range(LEVELS_SHOWN))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
