"""The page: one self-contained HTML file from the rows, everything escaped, no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from orchestrator.report.blocks import answers_without_points, blocks
from orchestrator.report.layout import SeriesTable, block_table, series_table
from orchestrator.report.series import series_of, without_points
from orchestrator.report.tables import GOOD, RunRow
from orchestrator.report.text import duration
from orchestrator.report.words import engine_words, host_words, vantage_words

TONES = {"pass": "good", "fail": "bad", "error": "bad", "unstable": "warn", "skip": "soft"}


def page(rows: Sequence[RunRow], warnings: Sequence[str] = ()) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=PackageLoader("orchestrator.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        tables=[_series(series_table(series)) for series in series_of(rows)],
        not_measured=[_run(row) for row in without_points(rows)],
        runs=[_run(row) for row in rows],
        point_count=sum(len(r.points) for r in rows),
        newest=max((r.run.updated_at for r in rows), default=None),
        warnings=[*warnings, *(w for row in rows for w in row.warnings)],
    )


def _series(table: SeriesTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "caption": table.caption,
        "has_best": table.has_best,
        "head": table.head,
        "lines": [
            {
                **_head(row.line.row),
                "vantage_words": vantage_words(row.line),
                "fields": row.fields,
                "ungated": row.line.is_ungated,
            }
            for row in table.rows
        ],
    }


def _head(row: RunRow) -> dict[str, Any]:
    """What names a run in every table."""
    return {
        "anchor": "".join(c if c.isalnum() or c in "-_." else "-" for c in row.run.id),
        "title": row.run.profile_title,
        "engine": engine_words(row),
        "hosts": host_words(row),
        "verdict": row.verdict,
        "tone": _verdict_tone(row),
        "ungated": row.run.is_ungated,
    }


def _run(row: RunRow) -> dict[str, Any]:
    r = row.run
    return {
        **_head(row),
        "id": r.id,
        "status": r.status,
        "created_at": r.created_at,
        "wall": duration(r.duration_s),
        "vantage": r.vantage,
        "error": (r.error or {}).get("message"),
        "gates": [
            {"name": g.name, "status": g.status, "summary": g.summary, "hint": g.hint, "tone": TONES.get(g.status, "")}
            for g in row.gates
        ],
        "blocks": [block_table(block) for block in blocks(row.points, row.searches)],
        "answers": answers_without_points(row),
        "image": r.image or r.runtime,
        "digest": r.image_digest,
        "model": r.model,
        "tool": r.tool_version,
        "command": list(r.command),
        "source": r.profile_source,
    }


def _verdict_tone(row: RunRow) -> str:
    """Good only where every verdict is: a gate that may fail and did is no reason to stop, and no tick either."""
    optional = {g.name for g in row.gates if not g.is_required}
    required = {status for gate, status in row.run.gates.items() if gate not in optional}
    if required & {"fail", "error"}:
        return "bad"
    if set(row.run.gates.values()) - set(GOOD):
        return "warn"
    return "good" if row.run.gates else "soft"
