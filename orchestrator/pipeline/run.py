"""Travel one road: the stages in order, `collect` whatever happened, and nothing of ours left behind.

The record is written before the first stage and after each one: a killed run is resumed from what is on disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial

from orchestrator.deploy.memory import MemoryReturn, memory_return
from orchestrator.deploy.runtime import LABEL_RUN
from orchestrator.errors import Gate0Error, Interrupted, RefusedError, StoreError
from orchestrator.pipeline.claims import vantage_of
from orchestrator.pipeline.events import StageBegan, StageEnded
from orchestrator.pipeline.road import Job, Rank, Road
from orchestrator.pipeline.stages import ATTACH, DEPLOY, GATES, SWEEPS, Stage, save_metrics
from orchestrator.records.record import RunRecord, RunStatus, StageRecord, StageStatus
from orchestrator.values import Json, digest, utc_now

RETURN_DEADLINE_S = 60.0
RETURN_PERIOD_S = 1.0


def new_run(job: Job, run_id: str) -> RunRecord:
    """The record as it stands before the first stage."""
    profile = job.profile
    return RunRecord(
        id=run_id,
        status=RunStatus.RUNNING.value,
        created_at=utc_now(),
        updated_at=utc_now(),
        profile_name=profile.name,
        profile_title=profile.label,
        profile_digest=job.digest,
        engine=profile.engine,
        tool_version=job.tool_version,
        git_revision=job.git_revision,
        invocation=job.invocation,
        profile=job.profile_json,
        profile_source=job.profile_source,
        lineage=profile.lineage,
        hosts=tuple({"name": b.host.name, "address": b.host.address, "rank": i} for i, b in enumerate(job.boxes)),
        vantage=vantage_of(job),
        image=profile.image,
        model=profile.model.display,
        served_name=profile.served_name or profile.model.display,
        suite=job.suite.name if job.options.is_gated else None,
        is_suite_unmodified=not job.suite.is_modified and job.suite.is_shipped,
        is_ungated=not job.options.is_gated,
        workloads=tuple(w.name for w in job.workloads),
    )


def resumed(run: RunRecord, job: Job) -> RunRecord:
    """The same record, for one more attempt."""
    return replace(
        run,
        status=RunStatus.RUNNING.value,
        attempts=run.attempts + 1,
        updated_at=utc_now(),
        invocation=job.invocation,
        workloads=tuple(w.name for w in job.workloads),
        is_ungated=not job.options.is_gated,
        error=None,
    )


def stages_for(job: Job) -> tuple[Stage, ...]:
    """The visible tuple: what this job's road consists of, `collect` aside."""
    way = ATTACH if job.profile.attach is not None else DEPLOY
    if job.options.deploy_only:
        return way
    gates = (GATES,) if job.options.is_gated else ()
    return (*way, *gates, SWEEPS) if job.workloads else (*way, *gates)


def travel(road: Road) -> RunRecord:
    """Take the road to its end.

    Returns:
        The finished record, also when a stage failed: `status` and `error` tell. Only what the record could not be
        written for, or a fault of gate0 itself, is raised.
    """
    began = road.tools.clock()
    earlier_s = road.run.duration_s
    status = RunStatus.FAILED
    problem: Mapping[str, Json] | None = {"kind": "bug", "message": "gate0 itself failed", "hint": None}
    try:
        road.save()
        with ExitStack() as stack:
            for box in road.job.boxes:
                why = f"{road.job.profile.name}, run {road.run.id}"
                lock = road.tools.lock(box.host, road.run.id, why, road.job.options.force, road.note)
                stack.enter_context(lock)
            road.error = _inside_lock(road, stack)
    except Gate0Error as exc:
        road.error = exc
    finally:
        duration = round(earlier_s + road.tools.clock() - began, 3)
        if sys.exc_info()[1] is None:
            status = RunStatus.PASSED if road.error is None else _status_of(road.error)
            problem = None if road.error is None else _error_json(road.error)
        _save_end(road, status, problem, duration)
    return road.run


def _save_end(road: Road, status: RunStatus, problem: Mapping[str, Json] | None, duration_s: float) -> None:
    """Write how it ended. What cannot be written any more (disk full) becomes the road's error if there was none."""
    try:
        road.save(status=status.value, error=problem, duration_s=duration_s)
    except StoreError as exc:
        road.error = road.error or exc


def _inside_lock(road: Road, stack: ExitStack) -> Gate0Error | None:
    error: Gate0Error | None = None
    is_whole = False
    try:
        for index, box in enumerate(road.job.boxes):
            runtime = road.tools.open_runtime(road.job.profile, box.host)
            stack.callback(runtime.close)
            road.ranks.append(Rank(index=index, box=box, runtime=runtime))
        for stage in stages_for(road.job):
            _take(road, stage)
        is_whole = True
    except Gate0Error as exc:
        error = exc
    finally:
        collect(road, is_kept=road.job.options.keep and is_whole)
    return error


def _take(road: Road, stage: Stage) -> None:
    road.cancel.check()
    road.observer.on(StageBegan(where=road.where, stage=stage.name))
    road.writer.append_event("stage", {"stage": stage.name, "attempt": road.run.attempts})
    started_at, began = utc_now(), road.tools.clock()
    status, detail, output, identity = StageStatus.FAILED, "", {}, ""
    try:
        outcome = stage.act(road)
        status = StageStatus.SKIPPED if outcome.is_skipped else StageStatus.PASSED
        detail, output = outcome.detail, dict(outcome.output)
        identity = digest(stage.identity(road))
    except Interrupted as exc:
        status, detail = StageStatus.INTERRUPTED, exc.message
        raise
    except Gate0Error as exc:
        detail = exc.message
        raise
    finally:
        record = StageRecord(
            name=stage.name,
            status=status.value,
            digest=identity,
            started_at=started_at,
            duration_s=round(road.tools.clock() - began, 3),
            detail=detail,
            output=output,
        )
        road.done.append(record)
        road.save()
        ended = StageEnded(
            where=road.where, stage=stage.name, status=status.value, detail=detail, duration_s=record.duration_s
        )
        road.observer.on(ended)


def collect(road: Road, *, is_kept: bool) -> None:
    """Save the logs and the end facts, then stop what this run started and measure what came back.

    Nothing here hides the error that led here: what goes wrong is noted, and the next thing is done all the same.
    """
    road.observer.on(StageBegan(where=road.where, stage="collect"))
    began, started_at = road.tools.clock(), utc_now()
    notes: list[str] = []
    _save_metrics(road)
    for rank in road.ranks:
        _attempt(road, f"{rank.name}: saving the log", partial(_save_log, road, rank))
    for rank in road.ranks:
        if is_kept:
            notes.append(f"{rank.name}: left up")
            continue
        _attempt(road, f"{rank.name}: stopping the server", partial(_stop, road, rank, notes))
    _attempt(road, "reading the end facts", lambda: _end_facts(road))
    detail = "; ".join(notes) or "nothing to stop"
    record = StageRecord(
        name="collect",
        status=StageStatus.PASSED.value,
        digest="",
        started_at=started_at,
        duration_s=round(road.tools.clock() - began, 3),
        detail=detail,
    )
    road.done.append(record)
    road.observer.on(
        StageEnded(where=road.where, stage="collect", status=record.status, detail=detail, duration_s=record.duration_s)
    )


def _attempt(road: Road, what: str, act: Callable[[], None]) -> None:
    try:
        act()
    except Gate0Error as exc:
        road.note(f"{what} failed: {exc.message}", is_warning=True)


def _save_log(road: Road, rank: Rank) -> None:
    mine = rank.runtime.find(label=(LABEL_RUN, road.run.id))
    reused = (rank.server,) if rank.is_reused and rank.server is not None else ()
    for server in (*mine, *reused):
        lines = rank.runtime.log_tail(server.id, 0)
        road.writer.write_text(f"container-{rank.index}.log", "\n".join(lines) + "\n")


def _save_metrics(road: Road) -> None:
    _attempt(road, "saving the metrics", lambda: save_metrics(road, "metrics-after.txt"))


def _stop(road: Road, rank: Rank, notes: list[str]) -> None:
    mine = rank.runtime.find(label=(LABEL_RUN, road.run.id))
    if not mine:
        notes.extend([f"{rank.name}: was up before, left up"] if rank.is_reused else [])
        return
    low = road.tools.memory_available(rank.box.host)
    for server in mine:
        rank.runtime.stop(server.id)
        rank.runtime.remove(server.id)
    before = rank.facts.memory_available_bytes if rank.facts is not None else None
    back = _watch_return(road, rank, before, low)
    if back is not None:
        road.memory_returned[rank.name] = asdict(back)
    notes.append(f"{rank.name}: stopped" + (f", {back.line}" if back is not None else ""))


def _watch_return(road: Road, rank: Rank, before: int | None, low: int | None) -> MemoryReturn | None:
    """Look until the memory is back or the deadline passes; None where the host does not tell."""
    began = road.tools.clock()
    while low is not None and (now := road.tools.memory_available(rank.box.host)) is not None:
        waited_s = road.tools.clock() - began
        found = memory_return(before_start_bytes=before, before_stop_bytes=low, after_stop_bytes=now, waited_s=waited_s)
        if found.is_back is not False or waited_s >= RETURN_DEADLINE_S:
            return found
        road.tools.sleep(RETURN_PERIOD_S)
    return None


def _end_facts(road: Road) -> None:
    hosts = []
    for rank in road.ranks:
        after = road.tools.read_facts(rank.box.host)
        known = next((dict(h) for h in road.run.hosts if h.get("name") == rank.name), {"name": rank.name})
        hosts.append({**known, "after": after.as_json()})
    if hosts:
        road.save(hosts=tuple(hosts), memory_returned=dict(road.memory_returned))


def _status_of(error: Gate0Error) -> RunStatus:
    if isinstance(error, Interrupted):
        return RunStatus.INTERRUPTED
    return RunStatus.GATE_FAILED if isinstance(error, RefusedError) else RunStatus.FAILED


def _error_json(error: Gate0Error) -> dict[str, Json]:
    found: dict[str, Json] = {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
    for name in ("cause", "server_exit_code", "log_tail"):
        value = getattr(error, name, None)
        if value is not None:
            found[name] = list(value) if isinstance(value, tuple) else value
    return found
