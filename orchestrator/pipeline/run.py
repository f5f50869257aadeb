"""Travel one road: the stages in order, `collect` whatever happened, and nothing of ours left behind.

The record is written before the first stage and after each one: a killed run is resumed from what is on disk.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial

from orchestrator.deploy.memory import MemoryReturn, memory_return
from orchestrator.deploy.runtime import LABEL_RUN
from orchestrator.errors import Gate0Error, Interrupted, RefusedError, StoreError
from orchestrator.pipeline.attached_host import close_runtimes, save_log
from orchestrator.pipeline.claims import vantage_of
from orchestrator.pipeline.events import StageBegan, StageEnded
from orchestrator.pipeline.road import Job, Rank, Road
from orchestrator.pipeline.stages import ATTACH, DEPLOY, GATES, SWEEPS, WATCHED, Stage, save_metrics
from orchestrator.records.aside import log_files, set_aside
from orchestrator.records.record import RunRecord, RunStatus, StageRecord, StageStatus
from orchestrator.records.store import Store
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
        hosts=_hosts(job),
        vantage=vantage_of(job),
        image=profile.image,
        model=profile.model.display,
        served_name=profile.served_name or profile.model.display,
        suite=job.suite.name if job.options.is_gated else None,
        is_suite_unmodified=not job.suite.is_modified and job.suite.is_shipped,
        is_ungated=not job.options.is_gated,
        workloads=tuple(w.name for w in job.workloads),
    )


def _hosts(job: Job) -> tuple[dict[str, Json], ...]:
    boxes = ((job.evidence,) if job.evidence else ()) if job.profile.attach is not None else job.boxes
    return tuple({"name": b.host.name, "address": b.host.address, "rank": i} for i, b in enumerate(boxes))


def resumed(run: RunRecord, job: Job) -> RunRecord:
    """The same record for one more attempt: everything that this attempt declares anew is the present job's."""
    return replace(
        new_run(job, run.id),
        created_at=run.created_at,
        attempts=run.attempts + 1,
        duration_s=run.duration_s,
        stages=run.stages,
        gates=run.gates,
        gates_digest=run.gates_digest,
        hosts=run.hosts,
        memory_returned=run.memory_returned,
    )


def stages_for(job: Job) -> tuple[Stage, ...]:
    """The visible tuple: what this job's road consists of, `collect` aside."""
    way = DEPLOY if job.profile.attach is None else ATTACH if job.evidence is None else WATCHED
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
    is_held = False
    try:
        with ExitStack() as stack:
            _lock_all(road, stack)
            is_held = True
            if road.run.attempts > 1:
                _take_up(road)
            earlier_s = road.run.duration_s
            road.save()
            road.error = _inside_lock(road, stack)
    except Gate0Error as exc:
        road.error = exc
    finally:
        if not road.cancel.is_set():  # a request that was left to its fate may still be on its way
            road.use_target(None)
        if is_held or road.run.attempts == 1:  # without the lock, an existing record is somebody else's
            earlier_s = road.run.duration_s
            _save_end(road, is_bug=sys.exc_info()[1] is not None, duration_s=earlier_s + road.tools.clock() - began)
    return road.run


def _lock_all(road: Road, stack: ExitStack) -> None:
    for box in road.job.boxes:
        why = f"{road.job.profile.name}, run {road.run.id}"
        lock = road.tools.lock(box.host, road.run.id, why, road.job.options.force, road.note)
        stack.enter_context(lock)


def _take_up(road: Road) -> None:
    """Under the lock: the record as it is on disk now, and the earlier attempts' logs kept under their own names."""
    on_disk = Store(road.writer.directory.parent).find(str(road.writer.directory)).run
    road.adopt(resumed(on_disk, road.job))
    set_aside(road.writer.directory, log_files(road.writer.directory), attempt=on_disk.attempts)


def _save_end(road: Road, *, is_bug: bool, duration_s: float) -> None:
    """Write how it ended. What cannot be written any more (disk full) becomes the road's error if there was none."""
    status = RunStatus.PASSED if road.error is None else _status_of(road.error)
    problem = None if road.error is None else _error_json(road.error)
    if is_bug:
        status, problem = RunStatus.FAILED, {"kind": "bug", "message": "gate0 itself failed", "hint": None}
    try:
        road.save(status=status.value, error=problem, duration_s=round(duration_s, 3))
    except StoreError as exc:
        road.error = road.error or exc


def _inside_lock(road: Road, stack: ExitStack) -> Gate0Error | None:
    """Take the stages; whatever happens, even a fault of our own, every rank's server is looked after."""
    error: Gate0Error | None = None
    kept = threading.Event()
    with ExitStack() as ends:
        ends.callback(_finish, road)
        try:
            for index, box in enumerate(road.job.boxes):
                runtime = road.tools.open_runtime(road.job.profile, box.host)
                stack.callback(runtime.close)
                rank = Rank(index=index, box=box, runtime=runtime)
                road.ranks.append(rank)
                ends.callback(_close_rank, road, rank, kept)
            if road.job.evidence is not None:
                ends.callback(_attempt, road, "saving the server's log", partial(save_log, road))
                stack.callback(close_runtimes, road)
            for stage in stages_for(road.job):
                _take(road, stage)
            if road.job.options.keep:
                kept.set()
        except Gate0Error as exc:
            error = exc
        finally:
            road.observer.on(StageBegan(where=road.where, stage="collect"))
            road.collect_began = (utc_now(), road.tools.clock())
            _attempt(road, "saving the metrics", lambda: save_metrics(road, "metrics-after.txt"))
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
        _put_down(road, record, is_failing=sys.exc_info()[1] is not None)


def _put_down(road: Road, record: StageRecord, *, is_failing: bool) -> None:
    """Say and write how a stage ended; a full disk must not hide why the stage failed."""
    road.done.append(record)
    ended = StageEnded(
        where=road.where, stage=record.name, status=record.status, detail=record.detail, duration_s=record.duration_s
    )
    road.observer.on(ended)
    try:
        road.save()
    except StoreError:
        if not is_failing:
            raise


def _close_rank(road: Road, rank: Rank, kept: threading.Event) -> None:
    """Save the rank's log, then stop what this run started there, even when the log could not be saved."""
    try:
        _attempt(road, f"{rank.name}: saving the log", partial(_save_log, road, rank))
    finally:
        if kept.is_set():
            road.endings.append(road.said_of(rank, "left up"))
        else:
            _attempt(road, f"{rank.name}: stopping the server", partial(_stop, road, rank))


def _finish(road: Road) -> None:
    """The end facts, and the `collect` stage's record."""
    _attempt(road, "reading the end facts", lambda: _end_facts(road))
    started_at, began = road.collect_began
    record = StageRecord(
        name="collect",
        status=StageStatus.PASSED.value,
        digest="",
        started_at=started_at,
        duration_s=round(road.tools.clock() - began, 3),
        detail="; ".join(sorted(road.endings)) or "nothing to stop",
    )
    _put_down(road, record, is_failing=True)


def _attempt(road: Road, what: str, act: Callable[[], None]) -> None:
    try:
        act()
    except Gate0Error as exc:
        road.note(f"{what} failed: {exc.message}", is_warning=True)


def _save_log(road: Road, rank: Rank) -> None:
    mine = rank.runtime.find(label=(LABEL_RUN, road.run.id))
    reused = (rank.server,) if rank.is_reused and rank.server is not None else ()
    for server in {s.id: s for s in (*mine, *reused)}.values():
        is_present = rank.server is None or server.id == rank.server.id
        name = f"container-{rank.index}.log" if is_present else f"container-{rank.index}-{server.id[:12]}.log"
        road.writer.write_text(name, "\n".join(rank.runtime.log_tail(server.id, 0)) + "\n")


def _stop(road: Road, rank: Rank) -> None:
    mine = rank.runtime.find(label=(LABEL_RUN, road.run.id))
    if not mine:
        road.endings.extend([road.said_of(rank, "was up before, left up")] if rank.is_reused else [])
        return
    low = road.tools.memory_available(rank.box.host)
    for server in mine:
        rank.runtime.stop(server.id)
        rank.runtime.remove(server.id)
    before = rank.facts.memory_available_bytes if rank.facts is not None else None
    back = _watch_return(road, rank, before, low)
    if back is not None:
        road.memory_returned[rank.name] = asdict(back)
    road.endings.append(road.said_of(rank, "stopped" + (f", {back.line}" if back is not None else "")))


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
