"""Rows of records written in a few words: for the tests of what a configuration is good for and what a change did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.figures.cell import cell_figures
from orchestrator.records.store import StoredCell
from orchestrator.report.tables import RunRow, gate_verdict, point_row
from tests.unit.chart_records import closed, opened, stated, swarm
from tests.unit.test_report import run

MAKERS: Mapping[str, Any] = {"closed": closed, "opened": opened, "swarm": swarm, "stated": stated}


def row_of(name: str, raw: Mapping[str, Any]) -> RunRow:
    """One run.

    Args:
        raw: `cells`: each with the arguments of its maker (`make`, else `closed`); `profile`: its name, else the run's;
            `profile_json`: itself; `hosts`: how many, or facts for each; `foreign`: of another tool, with more of its
            `source`; the rest are fields of the run.
    """
    given = dict(raw)
    cells = [_cell(dict(c)) for c in given.pop("cells")]
    profile = given.pop("profile", name)
    changes: dict[str, Any] = {
        "profile_name": profile,
        "profile_title": f"title of {profile}",
        "profile_digest": f"digest of {profile}",
        "profile": given.pop("profile_json", {}),
        "hosts": _hosts(given.pop("hosts", 1)),
    }
    if foreign := given.pop("foreign", None):
        more = foreign if isinstance(foreign, dict) else {}
        changes |= {"gates": {}, "suite": None, "source": {"tool": "transcript", "title": "a report", **more}}
    record = run(name, **{**changes, **given})
    figures = [cell_figures(c.cell, c.requests) for c in cells]
    return RunRow(
        run=record,
        gates=(),
        points=tuple(point_row(f, figures) for f in figures),
        verdict=gate_verdict(record),
    )


def _hosts(told: int | list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    each = [{} for _ in range(told)] if isinstance(told, int) else told
    return tuple({"name": f"spark0{i + 1}", **facts} for i, facts in enumerate(each))


def _cell(raw: dict[str, Any]) -> StoredCell:
    made: StoredCell = MAKERS[raw.pop("make", "closed")](**raw)
    return made
