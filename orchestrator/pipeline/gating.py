"""The gates stage's parts: run the suite, keep earlier verdicts, stop on a failed required gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.errors import RefusedError
from orchestrator.gating.suite import GateEvent, GateResult, run_gate, run_suite
from orchestrator.pipeline.death import raise_if_dead
from orchestrator.pipeline.events import GateBegan, GateEnded
from orchestrator.pipeline.road import Road
from orchestrator.pipeline.stoppable import StoppableTarget
from orchestrator.records.aside import gate_files, set_aside
from orchestrator.records.record import GateRecord, Guard
from orchestrator.records.store import StoredRun
from orchestrator.values import Json, digest
from orchestrator.wire.chat import Target

AFTER_SWEEP = "coherence_after_sweep"


def gate_server(road: Road, serving: Mapping[str, Json]) -> bool:
    """Gate the server; True when all verdicts were kept from an earlier attempt.

    Raises:
        RefusedError: A required gate failed, or could not tell, and `--ungated` was not given.
    """
    identity = digest(dict(serving))
    kept = _kept(road, identity)
    if kept is None:
        _run(road, identity)
    else:
        road.verdicts = kept
        for record in kept:
            road.observer.on(GateEnded(where=road.where, gate=record))
    _refuse(road)
    return kept is not None


def regate_after_sweep(road: Road) -> None:
    """Ask the coherence questions again: a server that broke under load makes its cells invalid.

    Raises:
        ServerDied: The server has ended meanwhile.
        RefusedError: The answers were right before the sweep and are wrong after it, or could not be had.
    """
    before = next((g for g in road.verdicts if g.name == "coherence"), None)
    if before is None or before.status != "pass":
        return
    item = next(i for i in road.job.suite.items if i.gate.name == "coherence")
    record = replace(_record(run_gate(item, StoppableTarget(_target(road), road.cancel))), name=AFTER_SWEEP)
    road.verdicts.append(record)
    road.writer.write_gate(record)
    road.observer.on(GateEnded(where=road.where, gate=record))
    road.save(gates={**road.run.gates, AFTER_SWEEP: record.status})
    if record.status not in ("fail", "error"):
        return
    raise_if_dead(road, "after the sweep")
    _mark_cells(road, record)
    if record.is_required and not road.job.options.ungated:
        words = "make no sense any more" if record.status == "fail" else "could not be had any more"
        raise RefusedError(f"{road.where}: after the sweep the answers {words}: {record.summary}", hint=record.hint)


def needs_regate(road: Road) -> bool:
    """True when the questions were not answered well after a sweep of this serving."""
    return road.run.gates.get(AFTER_SWEEP) != "pass"


def _run(road: Road, identity: str) -> None:
    road.verdicts = []
    set_aside(road.writer.directory, gate_files(road.writer.directory), attempt=road.run.attempts)
    road.save(gates={}, gates_digest=None)

    def show(event: GateEvent) -> None:
        if event.result is None:
            road.observer.on(GateBegan(where=road.where, gate=event.name, title=event.title))
            return
        record = _record(event.result)
        road.verdicts.append(record)
        road.writer.write_gate(record)
        road.observer.on(GateEnded(where=road.where, gate=record))
        road.save(gates=_statuses(road))
        if record.status in ("fail", "error"):
            raise_if_dead(road, f"at the gate {record.name}")

    target = StoppableTarget(_target(road), road.cancel)
    run_suite(road.job.suite, target, on_event=show, is_cancelled=road.cancel.is_set)
    road.cancel.check()
    road.save(gates=_statuses(road), gates_digest=identity)


def _kept(road: Road, identity: str) -> list[GateRecord] | None:
    if road.run.gates_digest != identity:
        return None
    found = [road.writer.find_gate(name) for name in (i.gate.name for i in road.job.suite.items)]
    whole = [g for g in found if g is not None and g.status not in ("fail", "error")]
    return whole if len(whole) == len(found) else None


def _refuse(road: Road) -> None:
    stopping = [g for g in road.verdicts if g.is_required and g.status in ("fail", "error")]
    if not stopping:
        return
    names = ", ".join(g.name for g in stopping)
    if road.job.options.ungated:
        road.save(is_ungated=True)
        road.note(f"going on although {names} did not pass: every figure is marked ungated", is_warning=True)
        return
    raise RefusedError(
        f"{road.where}: {names} did not pass: {stopping[0].summary}",
        hint=stopping[0].hint or (road.job.options.going_on if road.job.workloads else None),
    )


def _mark_cells(road: Road, record: GateRecord) -> None:
    guard = Guard(name=AFTER_SWEEP, message=record.summary).as_json()
    for stored in StoredRun(run=road.run, directory=road.writer.directory).cells():
        road.writer.write_cell(replace(stored.cell, guards=(*stored.cell.guards, guard)), stored.requests)


def _record(result: GateResult) -> GateRecord:
    return GateRecord.from_json(result.as_json())


def _statuses(road: Road) -> dict[str, str]:
    return {g.name: g.status for g in road.verdicts}


def _target(road: Road) -> Target:
    assert road.target is not None
    return road.target
