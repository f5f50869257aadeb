"""The road, stage by stage: `preflight -> pull -> start -> ready -> effective -> gates -> sweeps`, one function each.

A stage reads and changes the Road and returns what it has to say. On `--resume` the stages that ask the box always run
again (they are cheap, and the box may have changed); pull and start find their work done by digest; gates and sweeps
keep what was finished under the same identity (`serving_identity`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from orchestrator.deploy.launch import command_line
from orchestrator.deploy.memory import GIB
from orchestrator.deploy.probe import first_token_probe
from orchestrator.deploy.readiness import WaitProgress, wait_until_ready
from orchestrator.deploy.runtime import LABEL_PROFILE, PullProgress, Server
from orchestrator.errors import Gate0Error, InputError, RuntimeFailure, ServerDied, TargetError
from orchestrator.pipeline.advising import say_remarks, warn_of_weights
from orchestrator.pipeline.attached_host import look_at_host
from orchestrator.pipeline.claims import base_url, claims_of, load_target, serving_identity
from orchestrator.pipeline.death import find_death
from orchestrator.pipeline.events import StageMoved
from orchestrator.pipeline.gating import gate_server, needs_regate, regate_after_sweep
from orchestrator.pipeline.named_files import check_on_host
from orchestrator.pipeline.own_list import check_own_list
from orchestrator.pipeline.preparing import (
    command_of,
    complete_facts,
    each_rank,
    facts_of,
    host_json,
    judge_rank,
    label,
    look_at_all,
    prepare,
    server_identity,
    server_of,
    spec_of,
    translate,
)
from orchestrator.pipeline.reading_back import context_words, note_differences, read_back
from orchestrator.pipeline.road import Rank, Road
from orchestrator.pipeline.telemetry import Telemetry
from orchestrator.profile.model import GeneratedKey
from orchestrator.sweep.room import require_room
from orchestrator.values import Json, Secret, redact
from orchestrator.wire.chat import Target
from orchestrator.wire.probe import listed_models, probe

WATCH_PERIOD_S = 2.0
LOOK_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOutcome:
    """What a stage has to say. `is_skipped`: its work was found done."""

    detail: str
    output: Mapping[str, Json] = field(default_factory=dict)
    is_skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A named piece of the road. `identity` gives what its result depends on."""

    name: str
    act: Callable[[Road], StageOutcome]
    identity: Callable[[Road], Json]


def preflight(road: Road) -> StageOutcome:
    """Ask each host what it is and has, and refuse what cannot work before anything is started."""
    look_at_all(road)
    for rank in road.ranks:
        prepare(road, rank)
    road.image_digest = road.head.runtime.image_digest(spec_of(road.head).image)
    label(road)
    say_remarks(road)
    warn_of_weights(road)
    found = [(rank, judge_rank(road, rank)) for rank in road.ranks]
    for rank, verdict in found:
        if verdict.reuses is None:
            translate(road, rank)
        for warning in verdict.warnings:
            road.note(road.said_of(rank, warning), is_warning=True)
    road.save(
        hosts=tuple(host_json(rank) for rank in road.ranks),
        runtime=road.head.runtime.facts().kind,
        command=tuple(command_line(spec_of(rank), road.job.profile.runtime) for rank in road.ranks),
        added=tuple({"words": list(a.words), "reason": a.reason} for a in command_of(road.head).added),
    )
    for rank, verdict in found:
        verdict.raise_for_problems(rank.name)
    if found[0][1].reuses is None:
        check_on_host(road)
    free = min((f for r in road.ranks if (f := facts_of(r).memory_available_bytes) is not None), default=None)
    parts = [f"{free / GIB:.1f} GiB available" if free is not None else "host answers", *found[0][1].memory.lines]
    return StageOutcome(detail="; ".join(parts))


def pull(road: Road) -> StageOutcome:
    """Have the image on every host, and its own flag list checked before anything is started from it."""
    profile = road.job.profile

    def one(rank: Rank, road: Road) -> None:
        def show(progress: PullProgress) -> None:
            road.cancel.check()
            share = progress.done_bytes / progress.total_bytes if progress.total_bytes else None
            text = road.said_of(rank, f"{progress.status}, {progress.layers_done}/{progress.layers} layers")
            road.observer.on(StageMoved(where=road.where, stage="pull", text=text, share=share))

        image = spec_of(rank).image
        before = rank.runtime.image_digest(image)
        found = rank.runtime.pull(image, profile.pull, show)
        digests[rank.index] = found
        had[rank.index] = before == found

    digests: dict[int, str] = {}
    had: dict[int, bool] = {}
    each_rank(road, one)
    if len(set(digests.values())) > 1:
        shown = ", ".join(f"{road.ranks[i].name} {d[:19]}" for i, d in sorted(digests.items()))
        raise RuntimeFailure(
            f"the hosts hold different images for {profile.image}: {shown}",
            hint="pin the image by digest (`image: name@sha256:…`), or set `pull: always`",
        )
    road.image_digest = digests[0]
    road.save(image=profile.image, image_digest=road.image_digest)
    here = all(had.values())
    check_own_list(road, is_new=not here)
    return StageOutcome(
        detail=f"{'already there' if here else 'pulled'}, {road.image_digest[:19]}",
        output={"image_digest": road.image_digest},
        is_skipped=here,
    )


def start(road: Road) -> StageOutcome:
    """Start each rank, or find that the same digest runs already; replace only what gate0 owns."""
    identity = label(road)

    def one(rank: Rank, road: Road) -> None:
        verdict = judge_rank(road, rank)  # again: a pull may have taken minutes, or brought another image
        has_fresh_key = isinstance(road.job.profile.serve.api_key, GeneratedKey)
        if verdict.reuses is not None and not has_fresh_key:
            rank.server, rank.is_reused = verdict.reuses, True
            return
        verdict.raise_for_problems(rank.name)
        if rank.command is rank.declared:
            translate(road, rank)
        for server in verdict.replaces if verdict.reuses is None else (verdict.reuses,):
            _replace(road, rank, server)
        road.cancel.check()
        rank.server = rank.runtime.start(spec_of(rank))
        started = rank.server
        detail = {"host": rank.name, "server": started.id, "name": started.name, "started_at": started.started_at}
        road.writer.append_event("started", detail)

    each_rank(road, one)
    reused = all(rank.is_reused for rank in road.ranks)
    detail = "the same digest runs already" if reused else f"started {server_of(road.head).name}"
    return StageOutcome(detail=detail, output={"server_digest": identity}, is_skipped=reused)


def ready(road: Road) -> StageOutcome:
    """Wait for the first token from the right model, and say meanwhile what the engine is doing."""
    job, head = road.job, road.head
    server = server_of(head)
    complete_facts(road)
    url = base_url(road)
    target = road.tools.open_target(url, road.run.served_name, claims_of(job, None), job.api_key)
    road.use_target(target)
    road.save(base_url=url)

    def show(progress: WaitProgress) -> None:
        text = road.said_of(head, f"{progress.stage} {progress.detail}".rstrip())
        road.observer.on(StageMoved(where=road.where, stage="ready", text=text))

    others = _Others(road)
    try:
        found = wait_until_ready(
            head.runtime,
            server.id,
            first_token_probe(lambda: target),
            traits=job.engine.traits,
            deadline_s=job.profile.ready.timeout_s,
            stall_s=job.profile.ready.stall_s,
            host=head.name,
            on_progress=show,
            clock=road.tools.clock,
            sleep=road.tools.sleep,
            is_cancelled=lambda: road.cancel.is_set() or others.has_death(),
        )
    except Gate0Error as exc:
        if others.death is not None:
            raise others.death from exc
        raise
    detail = f"first token after {found.elapsed_s:.1f} s"
    return StageOutcome(
        detail=detail, output={"elapsed_s": found.elapsed_s, "stages": [asdict(stage) for stage in found.stages]}
    )


def reach(road: Road) -> StageOutcome:
    """Find the attached server: it answers, and lists a model."""
    url = base_url(road)
    claims, key = claims_of(road.job, None), road.job.api_key
    target = road.tools.open_target(url, road.job.profile.served_name or "", claims, key)
    road.use_target(target)
    names = listed_models(target)
    if names is None:
        raise _unlisted(target, url, key)
    wanted = road.job.profile.served_name
    if wanted is not None and wanted not in names:
        raise InputError(f"{url} serves no {wanted!r}", hint=f"it lists: {', '.join(names) or 'nothing'}")
    if wanted is None and not names:
        raise TargetError(f"{url} lists no model", hint="name it with `--model`")
    road.save(served_name=wanted or names[0], model=wanted or names[0], base_url=url)
    road.use_target(road.tools.open_target(url, road.run.served_name, claims, key))
    return StageOutcome(detail=f"serves {', '.join(names)}")


def look(road: Road) -> StageOutcome:
    """Look at the host behind the attached server: its facts, its container. Nothing is touched there."""
    return StageOutcome(detail=look_at_host(road))


def _unlisted(target: Target, url: str, key: Secret | None) -> TargetError:
    """Why nothing came: a request tells a refused connection, an unknown name, a missing key and a wrong path apart."""
    hints = {
        0: "is the address right, and is the server up?",
        401: "it wants a key: `--api-key NAME`, or in a profile `serve: {api_key: {secret: NAME}}`",
        503: "is it still loading? Its log says so; wait, then run the same line again",
    }
    hints[403] = hints[401]
    reply = target.chat({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}, timeout_s=LOOK_S)
    if reply.is_ok:
        return TargetError(
            f"{url} answers requests but not GET /v1/models", hint="gate0 reads there what is served: let it through"
        )
    words = redact(" ".join((reply.error or "no words").split()), () if key is None else (key,))[:200]
    said = words if reply.http_status == 0 else f"HTTP {reply.http_status}: {words}"
    other = "is it an OpenAI-compatible server, and is its base URL http://host:port/v1?"
    return TargetError(f"{url} does not answer GET /v1/models: {said}", hint=hints.get(reply.http_status, other))


def effective(road: Road) -> StageOutcome:
    """Ask the server what it is and takes, and set what it tells of its settings beside what is declared."""
    assert road.target is not None
    found = probe(road.target, road.job.engine.traits)
    known = road.tools.engines.get(found.engine)
    if road.job.engine.name == "endpoint" and known is not None:
        road.job = replace(road.job, engine=known)
        found = probe(road.target, known.traits, earlier=found)
    read = read_back(road, found)
    if read.drafts:
        found = replace(found, capacity=replace(found.capacity, is_speculative=True))
    claims = claims_of(road.job, found, exposed=road.target.metrics() or {}, compared=read.rows)
    road.use_target(road.tools.open_target(base_url(road), road.run.served_name, claims, road.job.api_key))
    slots = found.slots if found.slots is not None else claims.slots
    source = "server" if found.slots is not None else "declared" if slots is not None else "unknown"
    road.save(
        engine=road.job.engine.name,
        capabilities=found.as_json(),
        engine_version=found.version,
        slots=slots,
        slots_source=source,
        effective=read.as_json(),
    )
    road.capabilities = found
    note_differences(road, read)
    words = [f"{road.job.engine.name} {found.version or 'of unknown version'}"]
    words.append(f"{slots} slots ({source})" if slots is not None else "slots unknown")
    words += context_words(road.job.profile.serve.max_model_len, read.context_tok or found.max_model_len)
    words += [f"declared and running: {read.counted}"] if read.counted else []
    return StageOutcome(detail=", ".join(words))


def gates(road: Road) -> StageOutcome:
    """Gate 0. Verdicts of an earlier attempt stand when nothing they depend on has changed."""
    with road.tools.sweep_turn(), Telemetry(road):
        kept = gate_server(road, serving_identity(road))
    counts = {s: sum(g.status == s for g in road.verdicts) for s in ("pass", "unstable", "fail", "error", "skip")}
    detail = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    return StageOutcome(detail=detail, is_skipped=kept)


def sweeps(road: Road) -> StageOutcome:
    """The measurement, cell by cell, then the coherence questions once more."""
    from orchestrator.pipeline.sweeping import sweep_cells  # brings numpy and httpx, which no start should wait for

    assert road.target is not None
    require_room(road.job.workloads, road.target.claims.max_model_len)
    save_metrics(road, "metrics-before.txt")
    with Telemetry(road):
        measured, kept = sweep_cells(road, load_target(road), serving_identity(road))
        if measured or needs_regate(road):
            with road.tools.sweep_turn():
                regate_after_sweep(road)
    words = [f"{measured} cell{'' if measured == 1 else 's'} measured"]
    words += [f"{kept} kept from an earlier attempt"] if kept else []
    invalid = invalid_cells(road)
    words += [f"{invalid} of all invalid: a guard was broken"] if invalid else []
    return StageOutcome(detail=", ".join(words), is_skipped=measured == 0)


def invalid_cells(road: Road) -> int:
    """Cells of the record, of this attempt and earlier ones, that broke a guard."""
    found = (road.writer.find_cell(w.name, cell.id) for w in road.job.workloads for cell in w.cells())
    return sum(stored is not None and not stored.cell.is_valid for stored in found)


def save_metrics(road: Road, name: str) -> None:
    """The engine's metrics as they are now, one `name value` a line; nothing when it has none."""
    samples = road.target.metrics() if road.target is not None else None
    if samples:
        road.writer.write_text(name, "".join(f"{metric} {value!r}\n" for metric, value in sorted(samples.items())))


def _serving(road: Road) -> Json:
    return serving_identity(road)


DEPLOY = (
    Stage(name="preflight", act=preflight, identity=lambda road: {"profile": road.job.digest, "where": road.where}),
    Stage(
        name="pull", act=pull, identity=lambda road: {"image": road.job.profile.image, "pull": road.job.profile.pull}
    ),
    Stage(name="start", act=start, identity=server_identity),
    Stage(name="ready", act=ready, identity=server_identity),
    Stage(name="effective", act=effective, identity=server_identity),
)
ATTACH = (
    Stage(name="reach", act=reach, identity=lambda road: {"url": road.job.profile.attach}),
    Stage(name="effective", act=effective, identity=lambda road: {"url": road.job.profile.attach}),
)
WATCHED = (
    ATTACH[0],
    Stage(name="look", act=look, identity=lambda road: {"hosts": road.job.host_names}),
    ATTACH[1],
)
"""The road to an attached server whose host is named for evidence."""
GATES = Stage(name="gates", act=gates, identity=_serving)
SWEEPS = Stage(
    name="sweeps",
    act=sweeps,
    identity=lambda road: {
        "serving": serving_identity(road),
        "cells": [cell.load_digest() for w in road.job.workloads for cell in w.cells()],
    },
)


def _replace(road: Road, rank: Rank, server: Server) -> None:
    """Remove one of gate0's own servers, its log kept in this run's record."""
    of = server.labels.get(LABEL_PROFILE, "unknown profile")
    road.note(road.said_of(rank, f"replaces {server.name} ({of})"))
    road.writer.write_text(f"replaced-{server.name}.log", "\n".join(rank.runtime.log_tail(server.id, 0)) + "\n")
    rank.runtime.stop(server.id)
    rank.runtime.remove(server.id)


class _Others:
    """The other ranks while rank 0 is waited for; a death there ends the wait."""

    def __init__(self, road: Road) -> None:
        self._road = road
        self._looked_s = road.tools.clock()
        self.death: ServerDied | None = None

    def has_death(self) -> bool:
        """Look at them, at most every WATCH_PERIOD_S."""
        now = self._road.tools.clock()
        if self.death is None and now - self._looked_s >= WATCH_PERIOD_S:
            self._looked_s = now
            for rank in self._road.ranks[1:]:
                doing = f"as rank {rank.index} while rank 0 was waited for"
                self.death = self.death or find_death(rank, self._road.job.engine.traits.symptoms, doing)
        return self.death is not None
