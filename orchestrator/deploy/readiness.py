"""Waiting for a server's first token: with its log in view, and its death reported at once.

The deadline is one thing, silence another: a big model on a small box compiles and captures for many minutes and is
well; so what the log says decides how the wait is told, and only the deadline or a death ends it. Three looks in a row
that waiting will not change (another model is listed, the request is refused with a 4xx) end it too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.deploy.diagnosis import Diagnosis, diagnose
from orchestrator.deploy.probe import PatientProbe, Probe, ProbeResult, ProbeState
from orchestrator.deploy.runtime import IsCancelled, Runtime, Server, never
from orchestrator.deploy.watch import LogView, LogWatch, StageAt
from orchestrator.engines.engine import Traits
from orchestrator.errors import Interrupted, NotReady, ServerDied
from orchestrator.values import Clock, Sleep

DIED_AT_FIRST_REQUEST = "died_at_first_request"
_DOING = {
    "autotune": "autotuning",
    "compile": "compiling",
    "download": "downloading",
    "draft weights": "loading the draft model's weights",
    "graph capture": "capturing graphs",
    "kv cache": "sizing its KV cache",
    "ready": "ready by its own account",
    "slots": "making its slots",
    "warm-up": "warming up",
    "weights": "loading weights",
}
"""Stages as what a server is doing; others are doing words already ("starting the engine")."""

_SETTLED_LOOKS = 3
_TAIL_LINES = 40
_LAST_WORDS_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitProgress:
    """What to show while waiting. `stage` is the engine's own; `detail` its progress, or why nothing moves."""

    host: str
    stage: str
    detail: str
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """The first token came.

    Attributes:
        elapsed_s: From the beginning of the wait.
        first_token_s: Of the request that was answered, None when it was not measured.
        stages: What the log went through, seconds since the beginning.
    """

    elapsed_s: float
    first_token_s: float | None
    stages: tuple[StageAt, ...]


OnWait = Callable[[WaitProgress], None]


def wait_until_ready(
    runtime: Runtime,
    server_id: str,
    probe: Probe,
    *,
    traits: Traits,
    deadline_s: float,
    stall_s: float,
    host: str = "",
    on_progress: OnWait = lambda _: None,
    interval_s: float = 0.5,
    clock: Clock = time.monotonic,
    sleep: Sleep = time.sleep,
    is_cancelled: IsCancelled = never,
) -> Readiness:
    """Wait for the first token of the right model.

    Args:
        probe: One look at the server, see `probe.first_token_probe`.
        traits: The engine's log stages and symptoms.
        deadline_s: Longest wait.
        stall_s: Silence of the log after which "stalled" is said.
        on_progress: Called after every look.

    Raises:
        ServerDied: It ended, with exit code, last lines, diagnosis and hint.
        NotReady: The deadline passed, or the server answers and never will as declared.
        Interrupted: `is_cancelled` said so.
    """
    with LogWatch(runtime, server_id, traits.log_stages, clock=clock, timeout_s=deadline_s + 60.0) as watch:
        wait = _Wait(
            runtime,
            server_id,
            probe=PatientProbe(probe),
            watch=watch,
            traits=traits,
            host=host,
            stall_s=stall_s,
            clock=clock,
        )
        while True:
            readiness = wait.look(interval_s)
            on_progress(wait.progress())
            if readiness is not None:
                return readiness
            if is_cancelled():
                raise Interrupted(f"{wait.where}: stopped while it was {wait.doing}")
            if wait.elapsed_s >= deadline_s:
                raise wait.too_late()
            sleep(interval_s)


class _Wait:
    """The state of one wait."""

    def __init__(
        self,
        runtime: Runtime,
        server_id: str,
        *,
        probe: PatientProbe,
        watch: LogWatch,
        traits: Traits,
        host: str,
        stall_s: float,
        clock: Clock,
    ) -> None:
        self._runtime = runtime
        self._server_id = server_id
        self._probe = probe
        self._watch = watch
        self._traits = traits
        self._host = host
        self._stall_s = stall_s
        self._clock = clock
        self._begun_s = clock()
        self._name = server_id[:12]
        self._last: ProbeResult | None = None
        self._was_asked = False
        self._settled_looks = 0

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._begun_s

    @property
    def where(self) -> str:
        return f"{self._host}: {self._name}" if self._host else self._name

    @property
    def doing(self) -> str:
        stage = self._watch.view().stage or "starting"
        return _DOING.get(stage, stage)

    def look(self, wait_s: float) -> Readiness | None:
        """One look: Readiness when a token came, None to go on.

        Raises:
            ServerDied, NotReady: It cannot come any more.
        """
        server = self._runtime.get(self._server_id)
        if server is None or not server.is_running:
            raise self._died(server)
        self._name = server.name
        self._note(self._probe.look(wait_s=wait_s))
        if self._last is not None and self._last.state is ProbeState.ANSWERED:
            return Readiness(
                elapsed_s=self.elapsed_s, first_token_s=self._last.first_token_s, stages=self._watch.view().stages
            )
        if self._settled_looks >= _SETTLED_LOOKS:
            raise self._never_as_declared()
        return None

    def progress(self) -> WaitProgress:
        view = self._watch.view()
        return WaitProgress(
            host=self._host, stage=view.stage or "starting", detail=self._detail(view), elapsed_s=self.elapsed_s
        )

    def too_late(self) -> NotReady:
        view = self._watch.view()
        waited = f"{self.where}: no first token after {self.elapsed_s:.0f} s"
        if view.quiet_s >= self._stall_s:
            message = f"{waited}: no log line for {view.quiet_s:.0f} s, it was {self.doing}"
            hint = "look at its log with `gate0 logs`; a hang at this stage is rarely cured by more time"
        else:
            progress = f" ({view.progress})" if view.progress else ""
            message = f"{waited}: still {self.doing}{progress}, last log line {view.quiet_s:.0f} s ago"
            hint = "it moves: give it more time with `ready: {timeout_s: …}` in the profile"
        return NotReady(message, log_tail=self._tail(), hint=hint)

    def _note(self, result: ProbeResult | None) -> None:
        if result is None:
            return
        self._last = result
        self._was_asked = self._was_asked or result.state is ProbeState.BROKEN
        self._settled_looks = self._settled_looks + 1 if result.is_settled else 0

    def _detail(self, view: LogView) -> str:
        if view.quiet_s >= self._stall_s:
            return f"no log line for {view.quiet_s:.0f} s"
        if self._probe.is_waiting:
            return "waiting for the first token"
        if self._last is not None and self._last.state in (ProbeState.BROKEN, ProbeState.WRONG_MODEL):
            return self._last.detail
        return view.progress or ""

    def _died(self, server: Server | None) -> ServerDied:
        if self._probe.is_waiting:
            # The request that was under way breaks now; how, tells whether it was the first one that killed.
            self._note(self._probe.look(wait_s=_LAST_WORDS_S))
        tail = self._tail()
        exit_code = server.exit_code if server else None
        diagnosis = diagnose(
            self._runtime.log_tail(self._server_id, 0) or tail,
            exit_code,
            server.oom_killed if server else False,
            self._traits.symptoms,
        )
        cause = DIED_AT_FIRST_REQUEST if self._was_asked else diagnosis.cause if diagnosis else None
        return ServerDied(
            f"{self.where}: {self._how_it_died(server, diagnosis)}",
            exit_code=exit_code,
            log_tail=tail,
            cause=cause,
            hint=self._remedy(diagnosis),
        )

    def _how_it_died(self, server: Server | None, diagnosis: Diagnosis | None) -> str:
        when = "was healthy and died at its first request" if self._was_asked else f"died while {self.doing}"
        how = "it is gone" if server is None else f"exit code {server.exit_code}"
        why = f": {diagnosis.message}" if diagnosis else ""
        return f"{when} after {self.elapsed_s:.0f} s ({how}){why}"

    def _remedy(self, diagnosis: Diagnosis | None) -> str:
        if diagnosis is not None:
            return diagnosis.hint
        if self._was_asked:
            return "it loads and cannot compute: try it without speculation, with another attention backend or image"
        return "the last lines of its log are below; `gate0 logs` shows all"

    def _never_as_declared(self) -> NotReady:
        assert self._last is not None
        if self._last.state is ProbeState.WRONG_MODEL:
            hint = "set `served_name` in the profile to the name that the server gives"
        elif self._last.http_status in (401, 403):
            hint = "it wants an API key: `api_key: {secret: NAME}` under `serve` in the profile"
        else:
            hint = "it refuses a plain request of eight tokens: look at its log with `gate0 logs`"
        return NotReady(
            f"{self.where}: it answers, but not as declared: {self._last.detail}", log_tail=self._tail(), hint=hint
        )

    def _tail(self) -> tuple[str, ...]:
        return self._runtime.log_tail(self._server_id, _TAIL_LINES) or self._watch.view().lines[-_TAIL_LINES:]
