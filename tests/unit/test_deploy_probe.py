"""One look at a server: what it says, and what is made of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from orchestrator.deploy.probe import PatientProbe, ProbeResult, ProbeState, first_token_probe
from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Reply, Usage

VLLM = Claims(engine="vllm")
OK = Reply(http_status=200, text="OK", first_token_s=0.2)


@dataclass
class OneReply:
    """A target that lists these models and answers everything with one reply."""

    reply: Reply = OK
    models: Json = None
    model: str = "qwen"
    claims: Claims = VLLM
    base_url: str = "http://box:8000/v1"
    asked: list[Mapping[str, Json]] = field(default_factory=list)

    def chat(self, body: Mapping[str, Json], *, stream: bool = False, timeout_s: float = 600.0) -> Reply:
        self.asked.append(body)
        return self.reply

    def chat_many(
        self, bodies: Sequence[Mapping[str, Json]], *, stream: bool = True, timeout_s: float = 600.0
    ) -> tuple[Reply, ...]:
        return tuple(self.chat(body) for body in bodies)

    def get_json(self, path: str, *, timeout_s: float = 10.0) -> Json:
        return self.models if path == "/v1/models" else None

    def post(self, path: str, *, timeout_s: float = 30.0) -> int:
        return 404

    def metrics(self) -> Mapping[str, float] | None:
        return None

    def count_tokens(self, text: str) -> int | None:
        return None

    def close(self) -> None:
        pass


def listed(*names: str) -> Json:
    return {"object": "list", "data": [{"id": name} for name in names]}


def look(target: OneReply) -> ProbeResult:
    return first_token_probe(lambda: target)()


def test_listed_and_answering_is_answered_with_its_time() -> None:
    result = look(OneReply(models=listed("qwen", "other")))

    assert (result.state, result.first_token_s) == (ProbeState.ANSWERED, 0.2)


@pytest.mark.parametrize(
    "reply",
    [
        replace(OK, text="", reasoning="hm", first_token_s=None),
        replace(OK, text="", first_token_s=None, usage=Usage(output_tok=1)),
    ],
    ids=["only reasoning", "only counted"],
)
def test_any_token_is_a_token(reply: Reply) -> None:
    assert look(OneReply(reply=reply, models=listed("qwen"))).state is ProbeState.ANSWERED


def test_another_model_is_named_and_not_asked() -> None:
    target = OneReply(models=listed("llama"))

    result = look(target)

    assert (result.state, result.detail) == (ProbeState.WRONG_MODEL, "`qwen` is not listed, these are: llama")
    assert target.asked == []


@pytest.mark.parametrize(
    ("models", "reply", "state", "status", "is_settled"),
    [
        (None, Reply(http_status=0, error="connection refused"), ProbeState.REFUSED, None, False),
        (None, Reply(http_status=503, error="Loading model"), ProbeState.LOADING, 503, False),
        (listed("qwen"), Reply(http_status=503, error="Loading model"), ProbeState.LOADING, 503, False),
        (None, Reply(http_status=401, error="no key"), ProbeState.BROKEN, 401, True),
        (listed("qwen"), Reply(http_status=400, error="no template"), ProbeState.BROKEN, 400, True),
        (listed("qwen"), Reply(http_status=0, error="broke"), ProbeState.BROKEN, 0, False),
        (listed("qwen"), Reply(http_status=500, error="dead"), ProbeState.BROKEN, 500, False),
        (listed("qwen"), Reply(http_status=200), ProbeState.BROKEN, 200, False),
        (listed("qwen"), Reply(http_status=200, text="O", error="died"), ProbeState.BROKEN, 200, False),
    ],
    ids=["refused", "loading", "listed, loading", "no key", "refused request", "broke", "error", "empty", "cut off"],
)
def test_what_is_no_token_is_told_apart(
    models: Json, reply: Reply, state: ProbeState, status: int | None, is_settled: bool
) -> None:
    result = look(OneReply(reply=reply, models=models))

    assert (result.state, result.http_status, result.is_settled) == (state, status, is_settled)


def test_a_server_without_a_model_list_is_judged_by_its_token() -> None:
    assert look(OneReply(models={"object": "error"})).state is ProbeState.ANSWERED


def test_an_embedding_server_is_ready_when_it_is_listed() -> None:
    target = OneReply(models=listed("qwen"), claims=Claims(engine="vllm", task="embed"))

    assert look(target).state is ProbeState.ANSWERED
    assert target.asked == []


def test_the_target_is_made_once_at_the_first_look() -> None:
    made: list[OneReply] = []

    def make() -> OneReply:
        made.append(OneReply(models=listed("qwen")))
        return made[-1]

    probe = first_token_probe(make)
    before = len(made)
    probe()
    probe()

    assert (before, len(made)) == (0, 1)


def test_a_probe_that_takes_long_is_waited_for_without_standing_still() -> None:
    may_answer = threading.Event()

    def slow() -> ProbeResult:
        may_answer.wait(10)
        return ProbeResult(state=ProbeState.ANSWERED)

    patient = PatientProbe(slow)
    first = patient.look(wait_s=0.01)
    was_waiting = patient.is_waiting
    may_answer.set()
    second = patient.look(wait_s=10)

    assert (first, was_waiting) == (None, True)
    assert second == ProbeResult(state=ProbeState.ANSWERED)


def test_what_a_probe_raises_is_raised_where_it_is_waited_for() -> None:
    def broken() -> ProbeResult:
        raise ValueError("no such port")

    with pytest.raises(ValueError, match="no such port"):
        PatientProbe(broken).look(wait_s=10)
