"""What makes a cell invalid: each case is a cell and the guards it breaks, message for message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.records.record import RequestRecord
from orchestrator.sweep.guards import GuardInput, broken_guards
from orchestrator.sweep.guards.answers import cache_notes
from orchestrator.sweep.lengths import fixed
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.workload import Cell, Kind, LaneLoad, SwarmCell, Workload

CASES = Path(__file__).parents[1] / "cases" / "guards"
ALL = [
    pytest.param(case, id=f"{path.stem}: {case['claim']}")
    for path in sorted(CASES.glob("*.json"))
    for case in json.loads(path.read_text())
]
MS = 1_000_000
GOOD = RequestRecord(
    repeat=0,
    index=0,
    scheduled_ns=0,
    ready_ns=0,
    sent_ns=0,
    http_status=200,
    events=((0, 1), (20 * MS, 1), (40 * MS, 1)),
    prompt_tok=128,
    expected_prompt_tok=128,
    output_tok=3,
    asked_output_tok=3,
    cached_tok=0,
    expected_cached_tok=0,
    token_source="one_per_event",
    finish_reason="length",
)
WORKLOAD = Workload(
    name="w",
    kinds=(Kind.BATCH,),
    output_tokens=(fixed(3),),
    concurrency=(2,),
    repeats=1,
    agents=(2,),
    sessions=2,
    turns=1,
    requests=2,
    lanes=(LaneLoad(name="chat", rate=1.0), LaneLoad(name="batch", concurrency=2)),
)
"""Two requests a repeat, whatever the kind."""
TARGET = LoadTarget(base_url="http://127.0.0.1:1/v1", model="m")


def cell_of(kind: str = "batch", variant: str = "", **changes: Any) -> Cell:
    if "depth" in changes:
        changes["depth"] = tuple(changes["depth"])
    workload = replace(WORKLOAD, kinds=(Kind(kind),), cells_of_swarm=tuple(SwarmCell), **changes)
    return next(c for c in workload.cells() if c.variant == variant)


def requests_of(told: list[dict[str, Any]]) -> tuple[RequestRecord, ...]:
    """Each entry stands for `n` requests: the good one with its changes, `events_ms` as `[[ms, tokens], …]`."""
    found: list[RequestRecord] = []
    for entry in told:
        changes = dict(entry)
        n = changes.pop("n", 1)
        if "events_ms" in changes:
            changes["events"] = tuple((ms * MS, tok) for ms, tok in changes.pop("events_ms"))
        for name in ("scheduled", "ready", "sent"):
            if f"{name}_ms" in changes:
                changes[f"{name}_ns"] = round(changes.pop(f"{name}_ms") * MS)
        found += [replace(GOOD, **changes)] * n
    return tuple(found)


def input_of(case: Mapping[str, Any]) -> GuardInput:
    return GuardInput(
        cell=cell_of(**case.get("cell", {})),
        target=replace(TARGET, **case.get("target", {})),
        laps=tuple({"repeat": i, **lap} for i, lap in enumerate(case.get("laps", [{}]))),
        requests=requests_of(case.get("requests", [{"n": 2}])),
    )


@pytest.mark.parametrize("case", ALL)
def test_a_cell_breaks_these_guards_and_no_others(case: Mapping[str, Any]) -> None:
    cell = input_of(case)

    assert {g.name: g.message for g in broken_guards(cell)} == case.get("broken", {})
    assert list(cache_notes(cell)) == case.get("notes", [])
