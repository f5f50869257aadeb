"""One road: a profile on one host group, what is known of it so far, and the tools it travels with.

The values are frozen; `Road` alone changes while it travels. Everything that touches the world comes in through
`Tools`, so that the whole road runs in a test against fakes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from orchestrator.deploy.runtime import IsCancelled, Runtime, Server, ServerSpec
from orchestrator.engines.engine import Engine, EngineCommand, Placement
from orchestrator.engines.rules.answering import PastRun
from orchestrator.errors import Gate0Error, StoreError
from orchestrator.fleet.host import Host
from orchestrator.pipeline.events import Cancel, Notice, Observer
from orchestrator.pipeline.samples import Samples
from orchestrator.profile.model import Profile
from orchestrator.records.record import GateRecord, RunRecord, StageRecord
from orchestrator.records.store import RunWriter
from orchestrator.values import Clock, Json, Secret, Sleep, utc_now
from orchestrator.wire.chat import Claims, Target

if TYPE_CHECKING:
    # A deploy dials its host before these are read.
    from orchestrator.deploy.own_flags import Subject
    from orchestrator.deploy.seen_files import Seen
    from orchestrator.engines.flags.model import Catalogue, Chosen
    from orchestrator.fleet.facts import HostFacts
    from orchestrator.gating.suite import Suite
    from orchestrator.profile.loading import Loaded
    from orchestrator.sweep.outcome import Lap
    from orchestrator.sweep.spec import CellProgress, LoadTarget
    from orchestrator.sweep.workload import Cell, Workload
    from orchestrator.wire.probe import Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One host of the group. `link_address`: its own address on the link between the hosts."""

    host: Host
    link_address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line asked for beside the profile.

    `tools`: what it says of them, over the profile. `budget_s`: no repeat of a sweep begins later than this after the
    sweep began; None: no limit. `going_on`: how the command line goes on although a gate said no; None: it cannot.
    """

    keep: bool = False
    ungated: bool = False
    force: bool = False
    deploy_only: bool = False
    is_gated: bool = True
    tools: bool | None = None
    budget_s: float | None = None
    going_on: str | None = "`--ungated` sweeps all the same and marks every figure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be done: fixed before the first stage.

    Attributes:
        profile_json: As resolved, secrets as references. profile_source: the file's text.
        env: The profile's environment with secrets resolved.
        api_key: Resolved or generated; None: the server has none.
        digest: Identity of what is declared (profile digest), for labels and the run's name.
        past_runs: Earlier runs of this profile, whose gates may answer an advisory; oldest first.
        loaded: Where each part of the profile was written; None: not known.
        evidence: The host behind an attached server, to be looked at; nothing is locked, started or stopped there.
    """

    profile: Profile
    profile_json: Mapping[str, Json]
    profile_source: str
    digest: str
    engine: Engine
    boxes: tuple[Box, ...]
    suite: Suite
    workloads: tuple[Workload, ...]
    env: Mapping[str, str | Secret]
    api_key: Secret | None = None
    options: Options = field(default_factory=Options)
    invocation: tuple[str, ...] = ()
    git_revision: str | None = None
    tool_version: str = ""
    evidence: Box | None = None
    loaded: Loaded | None = None
    past_runs: tuple[PastRun, ...] = ()

    @property
    def host_names(self) -> list[str]:
        """All hosts that the record names."""
        return [box.host.name for box in (*self.boxes, *((self.evidence,) if self.evidence else ()))]

    @property
    def where(self) -> str:
        """The host group's name; of an attached server its address."""
        if self.profile.attach is not None:
            return urlsplit(self.profile.attach).netloc or self.profile.attach
        return "+".join(box.host.name for box in self.boxes)


RunCell: TypeAlias = "Callable[[LoadTarget, Cell, int, Callable[[CellProgress], None], Callable[[], bool]], Lap]"
"""Runs one repeat (by its number) of one cell, shows its progress, and asks whether it should stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The edge: made by the composition root, or by a test.

    `calibration`: what is known of this machine's clock. `own_flags` reads an image's own flag list, `look_in_image`
    says whether files are in it; None: nobody does.
    """

    open_runtime: Callable[[Profile, Host], Runtime]
    open_target: Callable[[str, str, Claims, Secret | None], Target]
    read_facts: Callable[[Host], HostFacts]
    quick_facts: Callable[[Host], HostFacts]
    other_facts: Callable[[Host], HostFacts]
    memory_available: Callable[[Host], int | None]
    sample: Callable[[Host, bool], Mapping[str, Json]]
    lock: Callable[[Host, str, str, bool, Callable[[str], None]], AbstractContextManager[Any]]
    cell_runner: Callable[[], AbstractContextManager[RunCell]]
    sweep_turn: Callable[[], AbstractContextManager[Any]]
    engines: Mapping[str, Engine]
    clock: Clock
    sleep: Sleep
    calibration: Callable[[], Mapping[str, Json] | None] = lambda: None
    own_flags: Callable[[Runtime, Subject, IsCancelled], Catalogue] | None = None
    look_in_image: Callable[[Runtime, Subject, Sequence[str], IsCancelled], Mapping[str, Seen]] | None = None


@dataclass(slots=True, kw_only=True)
class Rank:
    """One rank of the engine while the road is travelled.

    `declared`: the command line as it follows from the profile alone; `command`: as this host, in its present state,
    gets it (a `memory_gib` is a fraction of what is free now). Identities are made from the first.
    """

    index: int
    box: Box
    runtime: Runtime
    facts: HostFacts | None = None
    rest: Future[HostFacts] | None = None
    placement: Placement | None = None
    declared: EngineCommand | None = None
    command: EngineCommand | None = None
    spec: ServerSpec | None = None
    server: Server | None = None
    is_reused: bool = False

    @property
    def name(self) -> str:
        return self.box.host.name


class Road:
    """The state of one journey. `run` is the record so far; `save` writes it.

    `chosen`: the flag list that its words are held against: the image's own, once it was read; None: the shipped one.
    """

    def __init__(
        self, job: Job, tools: Tools, *, writer: RunWriter, observer: Observer, cancel: Cancel, run: RunRecord
    ) -> None:
        self.job = job
        self.tools = tools
        self.writer = writer
        self.observer = observer
        self.cancel = cancel
        self.previous: Mapping[str, StageRecord] = {}
        self.adopt(run)
        self.done: list[StageRecord] = []
        self.ranks: list[Rank] = []
        self.target: Target | None = None
        self.chosen: Chosen | None = None
        self.samples = Samples()
        self.verdicts: list[GateRecord] = []
        self.image_digest: str | None = None
        self.capabilities: Capabilities | None = None
        self.memory_returned: dict[str, Json] = {}
        self.endings: list[str] = []
        self.collect_began = (utc_now(), tools.clock())
        self.error: Gate0Error | None = None

    @property
    def where(self) -> str:
        return self.job.where

    @property
    def head(self) -> Rank:
        """Rank 0: the one that answers HTTP."""
        return self.ranks[0]

    def use_target(self, target: Target | None) -> None:
        """Talk to the server through this one from now on; the one before is closed."""
        if self.target is not None:
            self.target.close()
        self.target = target

    def said_of(self, rank: Rank, text: str) -> str:
        """The text; with the host's name in front where several form one engine, and `where` alone cannot tell."""
        return text if len(self.job.boxes) == 1 else f"{rank.name}: {text}"

    def note(self, text: str, *, is_warning: bool = False) -> None:
        """Say it, and write it down if that can still be done: a note never ends anything."""
        self.observer.on(Notice(where=self.where, text=text, is_warning=is_warning))
        with suppress(StoreError):
            self.writer.append_event("notice", {"text": text, "warning": is_warning})

    def adopt(self, run: RunRecord) -> None:
        """Go on with this record, as it is on disk now."""
        self.run = run
        stages = (StageRecord.from_json(s) for s in run.stages)
        self.previous = {stage.name: stage for stage in stages}

    def save(self, **changes: Any) -> None:
        """Change the record and write it."""
        stages: Sequence[Any] = [s.as_json() for s in self._stages()]
        self.run = replace(self.run, updated_at=utc_now(), stages=tuple(stages), **changes)
        self.writer.write_run(self.run)

    def _stages(self) -> list[StageRecord]:
        """This attempt's stages, then what an earlier attempt knows of those not reached yet."""
        seen = {s.name for s in self.done}
        return [*self.done, *(s for name, s in self.previous.items() if name not in seen)]
