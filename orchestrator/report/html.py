"""The page: one self-contained HTML file from the rows, everything escaped, no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from orchestrator.report import foreign
from orchestrator.report.series import Series, SeriesLine, series_of, without_points
from orchestrator.report.tables import GOOD, PointRow, RunRow
from orchestrator.report.text import duration, number, seconds
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
        tables=[_series(series) for series in series_of(rows)],
        not_measured=[_run(row) for row in without_points(rows)],
        runs=[_run(row) for row in rows],
        point_head=POINT_HEAD,
        point_count=sum(len(r.points) for r in rows),
        newest=max((r.run.updated_at for r in rows), default=None),
        warnings=[*warnings, *(w for row in rows for w in row.warnings)],
    )


def _series(series: Series) -> dict[str, Any]:
    best = {c: series.find_best(c) for c in series.levels}
    return {
        "title": series.key.title,
        "caption": caption(series),
        "levels": series.levels,
        "lines": [_line(line, best) for line in series.lines],
    }


def _line(line: SeriesLine, best: Mapping[int, PointRow | None]) -> dict[str, Any]:
    return {
        **_head(line.row),
        "vantage_words": vantage_words(line),
        "cells": [_cell(line.points.get(c), found) for c, found in best.items()],
        "first_token": first_token(line),
        "cached": cached(line),
        "ungated": line.is_ungated,
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
        "points": [point_words(p) for p in row.points],
        "image": r.image or r.runtime,
        "digest": r.image_digest,
        "model": r.model,
        "tool": r.tool_version,
        "command": list(r.command),
        "source": r.profile_source,
    }


def _cell(point: PointRow | None, best: PointRow | None) -> dict[str, Any]:
    rate = None if point is None else foreign.output_tok_per_s(point.figures)
    if point is None or rate is None:
        return {"text": "", "guard": None, "best": False, "title": ""}
    f = point.figures
    speed, first = number(f.per_user_tok_per_s), seconds(foreign.latency_ms(f, "ttft_ms", "p50"))
    return {
        "text": foreign.marked(number(rate), f.cell),
        "guard": None if f.is_valid else f.cell.guards[0].get("name", "invalid"),
        "best": point is best,
        "title": f"{speed} tok/s per user, first token {first} s, {f.good} requests",
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
