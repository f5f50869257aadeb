"""The page: one self-contained HTML file from the rows, everything escaped, no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from orchestrator.report.markdown import point_words
from orchestrator.report.tables import PointRow, RunRow, levels
from orchestrator.report.text import DASH, duration, number, seconds, share

POINT_HEAD = (
    *("Load", "Users", "tok/s", "sd", "per user", "efficiency", "TTFT p50 (s)", "TTFT p95 (s)", "TPOT p50 (ms)"),
    *("E2E p50 (s)", "batch (derived)", "good", "notes"),
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
    shown = levels(rows)
    best = {c: _best_at(rows, c) for c in shown}
    return environment.get_template("page.html.j2").render(
        runs=[_run(row, shown, best) for row in rows],
        levels=shown,
        point_head=POINT_HEAD,
        point_count=sum(len(r.points) for r in rows),
        newest=max((r.run.updated_at for r in rows), default=None),
        warnings=list(warnings),
    )


def _run(row: RunRow, shown: Sequence[int], best: Mapping[int, PointRow | None]) -> dict[str, Any]:
    r, top = row.run, row.points[-1] if row.points else None
    return {
        "id": r.id,
        "anchor": "".join(c if c.isalnum() or c in "-_." else "-" for c in r.id),
        "title": r.profile_title,
        "engine": f"{r.engine} {r.engine_version or ''}".strip(),
        "hosts": ", ".join(str(h.get("name")) for h in r.hosts),
        "cells": [_cell(row.point_at(c), best[c]) for c in shown],
        "first_token": f"{seconds(top.figures.ttft_ms.p50)} at {top.figures.cell.concurrency}" if top else DASH,
        "cached": share(top.figures.cached_share, 1) if top else DASH,
        "verdict": row.verdict,
        "tone": _verdict_tone(row),
        "ungated": r.is_ungated,
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
    if point is None or point.figures.output_tok_per_s is None:
        return {"text": "", "guard": None, "best": False, "title": ""}
    f = point.figures
    speed, first = number(f.per_user_tok_per_s), seconds(f.ttft_ms.p50)
    return {
        "text": number(point.figures.output_tok_per_s.mean),
        "guard": None if f.is_valid else f.cell.guards[0].get("name", "invalid"),
        "best": point is best,
        "title": f"{speed} tok/s per user, first token {first} s, {f.good} requests",
    }


def _best_at(rows: Sequence[RunRow], concurrency: int) -> PointRow | None:
    points = [row.point_at(concurrency) for row in rows if len(row.run.hosts) == 1]
    valid = [p for p in points if p and p.figures.is_valid and p.figures.output_tok_per_s]
    return max(valid, key=lambda p: p.figures.output_tok_per_s.mean if p.figures.output_tok_per_s else 0, default=None)


def _verdict_tone(row: RunRow) -> str:
    optional = {g.name for g in row.gates if not g.is_required}
    statuses = {status for gate, status in row.run.gates.items() if gate not in optional}
    return next((TONES[s] for s in ("fail", "error", "unstable") if s in statuses), "good" if statuses else "soft")
