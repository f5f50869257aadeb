"""Waiting for the first token: with a clock that the test moves, a fake runtime and probes that answer as told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from orchestrator.deploy.probe import ProbeResult, ProbeState
from orchestrator.deploy.readiness import Readiness, WaitProgress, wait_until_ready
from orchestrator.deploy.runtime import LABEL_RUN, ServerSpec
from orchestrator.deploy.watch import StageAt
from orchestrator.engines.engine import LogStage, Symptom, Traits
from orchestrator.errors import Interrupted, NotReady, ServerDied
from tests.contract.runtime_fakes import FakeRuntime

REFUSED = ProbeResult(state=ProbeState.REFUSED)
ANSWERED = ProbeResult(state=ProbeState.ANSWERED, http_status=200, first_token_s=0.25)
BROKEN = ProbeResult(state=ProbeState.BROKEN, detail="connection broke", http_status=0)
TRAITS = Traits(
    log_stages=(
        LogStage(pattern=r"Loading weights(: (?P<progress>\d+%))?", stage="weights"),
        LogStage(pattern=r"torch\.compile", stage="compile"),
    ),
    symptoms=(
        Symptom(
            cause="unknown_flag",
            pattern=r"unrecognized arguments: (?P<flag>\S+)",
            message="it does not know {flag}",
            hint="remove `{flag}`",
        ),
    ),
)


@dataclass
class Stage:
    """A server, a clock that only `sleep` moves, and what happens at which second."""

    runtime: FakeRuntime = field(default_factory=lambda: FakeRuntime(images={"i": "sha256:aa"}))
    now_s: float = 0.0
    events: dict[float, Callable[[], None]] = field(default_factory=dict)
    shown: list[WaitProgress] = field(default_factory=list)
    is_cancelled: bool = False

    def __post_init__(self) -> None:
        self.server = self.runtime.start(ServerSpec(name="serve", image="i", labels={LABEL_RUN: "r"}))

    def at(self, second: float, *lines: str) -> None:
        self.events[second] = lambda: self.runtime.write(self.server.id, *lines)

    def dies_at(self, second: float, exit_code: int, *last_words: str) -> None:
        self.events[second] = lambda: self.runtime.die(self.server.id, exit_code, last_words=last_words)

    def cancel(self) -> None:
        self.is_cancelled = True

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        for due in sorted(second for second in self.events if second <= self.now_s):
            self.events.pop(due)()
        self.runtime.settle(followers=1)

    def wait(self, *results: ProbeResult, deadline_s: float = 100.0, stall_s: float = 30.0) -> Readiness:
        """Wait with a probe that gives these results, the last one for ever."""
        left = list(results)
        return wait_until_ready(
            self.runtime,
            self.server.id,
            lambda: left.pop(0) if len(left) > 1 else left[0],
            traits=TRAITS,
            deadline_s=deadline_s,
            stall_s=stall_s,
            host="spark01",
            on_progress=self.shown.append,
            interval_s=1.0,
            clock=lambda: self.now_s,
            sleep=self.sleep,
            is_cancelled=lambda: self.is_cancelled,
        )


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_ready_is_when_a_token_came(stage: Stage) -> None:
    readiness = stage.wait(REFUSED, REFUSED, ANSWERED)

    assert (readiness.elapsed_s, readiness.first_token_s) == (2.0, 0.25)


def test_the_stages_are_kept_with_their_times(stage: Stage) -> None:
    stage.at(1, "Loading weights: 10%", "Loading weights: 90%")
    stage.at(3, "torch.compile takes a while")

    readiness = stage.wait(*[REFUSED] * 5, ANSWERED)

    assert readiness.stages == (StageAt(stage="weights", at_s=1.0), StageAt(stage="compile", at_s=3.0))


def test_progress_shows_the_stage_and_its_own_figure(stage: Stage) -> None:
    stage.at(1, "Loading weights: 62%")

    stage.wait(REFUSED, REFUSED, ANSWERED)

    assert stage.shown[1] == WaitProgress(host="spark01", stage="weights", detail="62%", elapsed_s=1.0)


def test_silence_is_said_while_waiting_and_does_not_end_the_wait(stage: Stage) -> None:
    readiness = stage.wait(*[REFUSED] * 50, ANSWERED)

    assert readiness.elapsed_s == 50.0
    assert stage.shown[40].detail == "no log line for 40 s"


def test_a_death_is_reported_with_exit_code_last_words_cause_and_remedy(stage: Stage) -> None:
    stage.at(1, "Loading weights")
    stage.dies_at(3, 2, "usage: vllm", "error: unrecognized arguments: --fast")

    with pytest.raises(ServerDied) as death:
        stage.wait(REFUSED)

    error = death.value
    assert (error.server_exit_code, error.cause, error.hint) == (2, "unknown_flag", "remove `--fast`")
    assert error.log_tail == ("Loading weights", "usage: vllm", "error: unrecognized arguments: --fast")
    assert error.message == (
        "spark01: serve: died while loading weights after 3 s (exit code 2): it does not know --fast"
    )


def test_an_unknown_death_has_no_cause_and_still_a_hint(stage: Stage) -> None:
    stage.dies_at(1, 1, "bye")

    with pytest.raises(ServerDied) as death:
        stage.wait(REFUSED)

    assert death.value.cause is None
    assert death.value.hint is not None


def test_a_server_that_vanished_is_a_death_without_an_exit_code(stage: Stage) -> None:
    stage.at(1, "Loading weights")
    stage.events[2] = lambda: stage.runtime.vanish(stage.server.id)

    with pytest.raises(ServerDied) as death:
        stage.wait(REFUSED)

    assert (death.value.server_exit_code, death.value.log_tail) == (None, ("Loading weights",))


def test_healthy_and_dead_at_the_first_request_is_its_own_cause(stage: Stage) -> None:
    stage.dies_at(3, 1, "AssertionError")

    with pytest.raises(ServerDied, match="was healthy and died at its first request") as death:
        stage.wait(REFUSED, BROKEN, REFUSED)

    assert death.value.cause == "died_at_first_request"


def test_at_the_deadline_a_moving_log_reads_still_compiling(stage: Stage) -> None:
    stage.at(9, "torch.compile takes a while")

    with pytest.raises(NotReady, match="no first token after 10 s: still compiling, last log line 1 s ago") as late:
        stage.wait(REFUSED, deadline_s=10)

    assert late.value.log_tail == ("torch.compile takes a while",)
    assert "timeout_s" in (late.value.hint or "")


def test_at_the_deadline_a_silent_log_reads_stalled(stage: Stage) -> None:
    stage.at(1, "torch.compile takes a while")

    with pytest.raises(NotReady, match="no log line for 49 s, it was compiling"):
        stage.wait(REFUSED, deadline_s=50)


@pytest.mark.parametrize(
    ("result", "hint"),
    [
        (ProbeResult(state=ProbeState.WRONG_MODEL, detail="`a` is not listed, these are: b"), "served_name"),
        (ProbeResult(state=ProbeState.BROKEN, detail="no chat template", http_status=400), "gate0 logs"),
        (ProbeResult(state=ProbeState.BROKEN, detail="no key", http_status=401), "api_key"),
    ],
)
def test_what_waiting_will_not_change_ends_the_wait_early(stage: Stage, result: ProbeResult, hint: str) -> None:
    with pytest.raises(NotReady, match=result.detail) as refusal:
        stage.wait(result)

    assert stage.now_s == 2.0
    assert hint in (refusal.value.hint or "")


def test_a_passing_refusal_does_not_end_the_wait(stage: Stage) -> None:
    wrong = ProbeResult(state=ProbeState.WRONG_MODEL)

    assert stage.wait(wrong, wrong, REFUSED, wrong, wrong, ANSWERED).elapsed_s == 5.0


def test_cancelling_ends_the_wait(stage: Stage) -> None:
    stage.events[2] = stage.cancel

    with pytest.raises(Interrupted):
        stage.wait(REFUSED)

    assert stage.now_s == 2.0


def test_no_follower_is_left_behind(stage: Stage) -> None:
    stage.wait(ANSWERED)

    assert stage.runtime.followers == 0
