"""A whole road in memory: fake hosts, fake runtimes, a fake server, and cells that take no time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.deploy.own_flags import Subject
from orchestrator.deploy.runtime import IsCancelled, Runtime
from orchestrator.deploy.seen_files import Seen
from orchestrator.engines.flags.model import Catalogue
from orchestrator.engines.registry import load_engines
from orchestrator.errors import LockHeld
from orchestrator.fleet.facts import HostFacts
from orchestrator.fleet.facts.model import Memory
from orchestrator.fleet.host import Host
from orchestrator.gating.suite import Suite, adjust_suite, load_gates, load_suite
from orchestrator.pipeline.events import Cancel, Event, StageBegan
from orchestrator.pipeline.road import Box, Job, Options, Road, Tools
from orchestrator.pipeline.run import new_run, resumed, travel
from orchestrator.profile.model import ModelRef, Profile, Serve
from orchestrator.records.record import RequestRecord, RunRecord
from orchestrator.records.store import RunWriter, Store
from orchestrator.sweep.lengths import fixed
from orchestrator.sweep.runner import CellProgress, Lap, LoadTarget
from orchestrator.sweep.workload import Cell, Workload
from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Target
from tests.contract.fakes import FakeHost
from tests.contract.runtime_fakes import FakeRuntime
from tests.unit.gate_fakes import FakeTarget, Truth

IMAGE = "vllm/vllm-openai:v0.31.0"
GIB = 1 << 30
S = 1_000_000_000


def profile(**changes: Any) -> Profile:
    """A vLLM profile that the fake server fulfils."""
    base = Profile(
        name="fake",
        engine="vllm",
        image=IMAGE,
        model=ModelRef(repo="some/model"),
        served_name="fake",
        port=8000,
        serve=Serve(max_model_len=32768, max_num_seqs=8, prefix_caching=True, memory_fraction=0.5),
    )
    return replace(base, **changes)


QUICK = Workload(name="quick", concurrency=(1, 2), repeats=1, output_tokens=(fixed(8),), order="listed")


@dataclass
class World:
    """What the road meets. Change a field before `go`."""

    folder: Path
    profile: Profile = field(default_factory=profile)
    truth: Truth = field(default_factory=Truth)
    hosts: tuple[str, ...] = ("spark01",)
    options: Options = field(default_factory=Options)
    suite: Suite | None = None
    workloads: tuple[Workload, ...] = (QUICK,)
    runtimes: dict[str, FakeRuntime] = field(default_factory=dict)
    on_event: Callable[[Event], None] = lambda _: None
    on_cell: Callable[[Cell], None] = lambda _: None
    targets: list[FakeTarget] = field(default_factory=list)
    locked: list[str] = field(default_factory=list)
    lock_error: LockHeld | None = None
    cell_failure: str | None = None
    cells_run: list[str] = field(default_factory=list)
    span_s: Callable[[Cell, int], float] = lambda _, __: 1.0
    ttft_s: Callable[[Cell], float] = lambda _: 0.1
    failed: Callable[[Cell], float] = lambda _: 0.0
    calibration: Mapping[str, Json] | None = None
    own_flags: Callable[[Runtime, Subject, IsCancelled], Catalogue] | None = None
    look_in_image: Callable[[Runtime, Subject, Sequence[str], IsCancelled], Mapping[str, Seen]] | None = None
    on_host: Callable[[FakeHost], object] = lambda _: None
    events: list[Event] = field(default_factory=list)
    cancel: Cancel = field(default_factory=Cancel)
    available_bytes: int = 100 * GIB
    memory: list[int] = field(default_factory=lambda: [100 * GIB])
    time_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("spark01", "spark02"):
            self.runtimes.setdefault(name, FakeRuntime(images={IMAGE: "sha256:aaaa"}, has_gpu=True))

    @property
    def runtime(self) -> FakeRuntime:
        return self.runtimes["spark01"]

    @property
    def stages(self) -> list[str]:
        return [e.stage for e in self.events if isinstance(e, StageBegan)]

    def on(self, event: Event) -> None:
        self.events.append(event)
        self.on_event(event)

    def road(self, earlier: RunRecord | None = None) -> Road:
        job = self.job()
        run = resumed(earlier, job) if earlier else new_run(job, f"run-{len(list(self.folder.iterdir()))}")
        return Road(
            job, self.tools(), writer=RunWriter(self.folder / run.id), observer=self, cancel=self.cancel, run=run
        )

    def go(self, earlier: RunRecord | None = None) -> Road:
        """Travel once; the road tells how it ended."""
        return self.go_on(self.road(earlier))

    def go_on(self, road: Road) -> Road:
        """Travel this road."""
        travel(road)
        return road

    def job(self) -> Job:
        gates = load_gates()
        suite = self.suite or adjust_suite(load_suite("quick", gates=gates), params={}, optional=["tool_call"])
        return Job(
            profile=self.profile,
            profile_json={},
            profile_source="",
            digest=f"declared-{self.profile.serve.max_num_seqs}",
            engine=load_engines()[self.profile.engine],
            boxes=tuple(Box(host=self._host(name)) for name in self.hosts),
            suite=suite,
            workloads=self.workloads,
            env={},
            options=self.options,
        )

    def _host(self, name: str) -> FakeHost:
        host = FakeHost(name)
        self.on_host(host)
        return host

    def tools(self) -> Tools:
        return Tools(
            open_runtime=lambda _, host: self.runtimes[host.name],
            open_target=self._target,
            read_facts=self._facts,
            quick_facts=self._facts,
            other_facts=lambda host: HostFacts(host=host.name, read_at="2026-11-30T06:00:01Z", watchdogs=("earlyoom",)),
            memory_available=lambda _: self.memory[0] if len(self.memory) == 1 else self.memory.pop(0),
            sample=lambda _, has_gpu: {"memory": {"available_bytes": self.memory[0]}},
            lock=self._lock,
            cell_runner=lambda: nullcontext(self._run_cell),
            sweep_turn=nullcontext,
            engines=load_engines(),
            clock=lambda: self.time_s,
            sleep=self._sleep,
            calibration=lambda: self.calibration,
            own_flags=self.own_flags,
            look_in_image=self.look_in_image,
        )

    def _target(self, url: str, model: str, claims: Claims, key: object) -> Target:
        target = FakeTarget(self.truth, claims)
        self.targets.append(target)
        return target

    def _facts(self, host: Host) -> HostFacts:
        memory = Memory(total_bytes=121 * GIB, available_bytes=self.available_bytes)
        return HostFacts(
            host=host.name, read_at="2026-11-30T06:00:00Z", home="/home/me", memory=memory, listening=(22,)
        )

    def _sleep(self, seconds: float) -> None:
        self.time_s += seconds

    @contextlib.contextmanager
    def _lock(self, host: Host, run_id: str, why: str, force: bool, notice: object) -> Iterator[None]:
        if self.lock_error is not None:
            raise self.lock_error
        self.locked.append(host.name)
        try:
            yield
        finally:
            self.locked.remove(host.name)

    def _run_cell(
        self, load: LoadTarget, cell: Cell, repeat: int, show: Callable[[CellProgress], None], stop: Callable[[], bool]
    ) -> Lap:
        self.on_cell(cell)
        self.cells_run.append(cell.id)
        request = RequestRecord(
            repeat=repeat,
            index=0,
            scheduled_ns=0,
            sent_ns=0,
            first_token_ns=round(self.ttft_s(cell) * S),
            end_ns=round(self.span_s(cell, repeat) * S),
            output_tok=cell.output_tok,
            prompt_tok=128,
        )
        if self.cell_failure is not None:
            why = f"server says {self.cell_failure}"
            request = RequestRecord(
                repeat=repeat, index=0, scheduled_ns=0, sent_ns=0, failure=self.cell_failure, error=why
            )
        n, broken = cell.requests_per_repeat, replace(request, failure="http_5xx", first_token_ns=None)
        lost = round(self.failed(cell) * n)
        requests = tuple(replace(broken if i < lost else request, index=i) for i in range(n))
        span_s = self.span_s(cell, repeat)
        self.time_s += span_s
        record = {"repeat": repeat, "span_ns": [0, round(span_s * S)], "duration_s": span_s}
        return Lap(record=record, requests=requests)


def stored(world: World) -> Any:
    """The newest run as it is on disk."""
    good, bad = Store(world.folder).runs()
    assert bad == ()
    return good[-1]
