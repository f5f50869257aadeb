"""What a target promises, held against the real HTTP target and against the fake that the gates' tests use."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import InputError
from orchestrator.gating.suite import SuiteOutcome, load_gates, load_suite, run_suite
from orchestrator.values import Secret
from orchestrator.wire.chat import Claims, Reply, Target
from orchestrator.wire.probe import Support, listed_models, probe
from orchestrator.wire.target import HttpTarget, base_url_of
from tests.contract.target_server import Faults, Served, serve
from tests.unit.gate_fakes import GOOD_CALL, FakeTarget, Truth, default_claims

Opener = Callable[..., AbstractContextManager[Target]]
ASK = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 64}
TOOLS = {**ASK, "tools": [{"type": "function"}], "tool_choice": "required"}


@contextmanager
def open_fake(truth: Truth | None = None, claims: Claims | None = None) -> Iterator[Target]:
    yield FakeTarget(truth, claims)


@contextmanager
def open_http(truth: Truth | None = None, claims: Claims | None = None) -> Iterator[Target]:
    with (
        serve(FakeTarget(truth, claims)) as served,
        HttpTarget(served.url, "fake", claims or default_claims()) as target,
    ):
        yield target


@pytest.fixture(params=[open_fake, open_http], ids=["fake", "http"])
def opened(request: pytest.FixtureRequest) -> Opener:
    opener: Opener = request.param
    return opener


@pytest.mark.parametrize("stream", [False, True])
def test_chat_gives_the_words_and_the_counts(opened: Opener, stream: bool) -> None:
    with opened() as target:
        reply = target.chat(ASK, stream=stream)

    assert (reply.text, reply.finish_reason, reply.error) == ("It is Paris", "stop", None)
    assert (reply.usage.prompt_tok, reply.usage.output_tok, reply.usage.cached_tok) == (18, 3, 0)
    assert (reply.events > 0) == stream


@pytest.mark.parametrize("stream", [False, True])
def test_chat_gives_tool_calls(opened: Opener, stream: bool) -> None:
    with opened() as target:
        reply = target.chat(TOOLS, stream=stream)

    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == [("c1", "get_weather", GOOD_CALL)]


@pytest.mark.parametrize("stream", [False, True])
def test_chat_gives_logprobs_with_alternatives(opened: Opener, stream: bool) -> None:
    with opened() as target:
        reply = target.chat({**ASK, "logprobs": True, "top_logprobs": 5}, stream=stream)

    assert [t.token for t in reply.logprobs] == ["It", "is", "Paris"]
    assert all(len(t.top) == 5 for t in reply.logprobs)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_gives_reasoning_apart(opened: Opener, stream: bool) -> None:
    with opened(Truth(thinks=3)) as target:
        reply = target.chat(ASK, stream=stream)

    assert (reply.reasoning, reply.text) == ("hm hm hm ", "It is Paris")


@pytest.mark.parametrize("stream", [False, True])
def test_refusal_is_a_reply_with_the_servers_words(opened: Opener, stream: bool) -> None:
    with opened(Truth(refuses_from=5)) as target:
        reply = target.chat(ASK, stream=stream)

    assert (reply.http_status, reply.is_ok) == (400, False)
    assert "18 tokens are too many" in str(reply.error)


def test_many_come_back_in_the_order_of_the_bodies(opened: Opener) -> None:
    bodies = [{**ASK, "messages": [{"role": "user", "content": q}]} for q in ("2+2", "the planet", "France", "2+2")]

    with opened() as target:
        replies = target.chat_many(bodies)

    assert [r.text for r in replies] == ["It is 4", "It is Earth", "It is Paris", "It is 4"]


def test_none_at_once_is_none(opened: Opener) -> None:
    with opened() as target:
        assert target.chat_many([]) == ()


def test_streams_say_when_their_first_token_came(opened: Opener) -> None:
    with opened() as target:
        replies = target.chat_many([ASK, ASK])

    assert all(r.first_token_s is not None and r.total_s is not None for r in replies)
    assert all((r.first_token_s or 0) <= (r.total_s or 0) for r in replies)


def test_known_path_gives_json_and_unknown_path_none(opened: Opener) -> None:
    with opened() as target:
        assert target.get_json("/v1/models") is not None
        assert target.get_json("/nothing/here") is None
        assert listed_models(target) == ("fake",)


def test_post_gives_the_status(opened: Opener) -> None:
    with opened(claims=default_claims(flush=("POST", "/reset"))) as target:
        assert (target.post("/reset"), target.post("/other")) == (200, 404)


def test_metrics_are_summed_by_name(opened: Opener) -> None:
    with opened(Truth(counters="both")) as target:
        target.chat(ASK)
        target.chat({**ASK, "messages": [{"role": "user", "content": "word " * 100}]})
        target.chat({**ASK, "messages": [{"role": "user", "content": "word " * 100}]})

        assert (target.metrics() or {})["fake:hits"] == 96.0


def test_absent_metrics_are_none(opened: Opener) -> None:
    with opened(Truth(hides="both", counters="none")) as target:
        assert target.metrics() is None


def test_labels_of_an_unknown_metric_are_none_at_all(opened: Opener) -> None:
    with opened() as target:
        assert target.metric_labels("fake:nothing") == ()


def test_tokens_are_counted_by_the_server_or_not_at_all(opened: Opener) -> None:
    with opened() as target:
        assert target.count_tokens("one two three") == 3
    with opened(Truth(can_count=False)) as target:
        assert target.count_tokens("one two three") is None


def test_claims_and_names_are_what_it_was_made_with(opened: Opener) -> None:
    with opened(claims=default_claims(slots=3)) as target:
        assert (target.model, target.claims.slots) == ("fake", 3)
        assert target.base_url.endswith("/v1")


def test_the_whole_suite_passes_on_a_good_server(opened: Opener) -> None:
    suite = load_suite("gate0", load_gates())
    params = {"concurrency": {"sample_s": 0.001}, "prefix_cache": {"prompt_tokens": 1000, "second_prompt_tokens": 700}}
    params["determinism"] = {"prompt_tokens": [300, 600]}  # type: ignore[dict-item]

    claims = default_claims(compared=({"path": "served_name", "declared": "fake", "agreement": "same"},))
    with opened(Truth(runs_at_once=8, hides="gauges"), claims) as target:
        results = run_suite(suite, target, overrides=params, optional=["concurrency"])

    good = {r.name: r.verdict.summary for r in results if r.verdict.status == "pass"}
    assert set(good) >= {i.gate.name for i in suite.items} - {"concurrency"}
    assert SuiteOutcome(suite=replace(suite, is_modified=True), results=results).passed


def test_probe_finds_what_the_server_takes(opened: Opener) -> None:
    with opened(Truth(refuses_fields=("min_tokens",), counters="both")) as target:
        found = probe(target)

    assert (found.engine, found.models, found.max_model_len, found.slots) == ("vllm", ("fake",), 32768, None)
    assert (found.has_metrics, found.can_count_tokens, found.problem) == (True, True, None)
    assert found.support["include_usage"] is Support.WORKS
    assert found.support["min_tokens"] is Support.REFUSED
    assert found.support["top_logprobs"] is Support.WORKS
    assert found.support["cached_tokens"] is Support.WORKS
    assert found.accepted["ignore_eos"]
    assert not found.accepted["min_tokens"]


def test_what_the_server_refuses_is_left_out_from_then_on(opened: Opener) -> None:
    body = {"messages": [{"role": "user", "content": "2+2"}], "max_tokens": 16, "cache_salt": "a"}
    truth = Truth(refuses_fields=("cache_salt",))
    with opened(truth) as target:
        refused = target.chat(body)
    with opened(truth, default_claims(refused=frozenset({"cache_salt"}))) as target:
        taken = target.chat(body)

    assert (refused.http_status, taken.http_status) == (400, 200)


def test_a_second_probe_asks_nothing_that_was_refused(opened: Opener) -> None:
    truth = Truth(refuses_fields=("cache_salt", "logprobs"), counters="both")
    with opened(truth) as target:
        first = probe(target)
    with opened(replace(truth, refuses_fields=())) as target:
        second = probe(target, earlier=first)

    assert first.refused == {"cache_salt", "logprobs", "top_logprobs"}
    assert second.refused == first.refused


def test_probe_of_a_broken_server_says_its_words(opened: Opener) -> None:
    with opened(Truth(breaks=503)) as target:
        found = probe(target)

    assert found.problem == "HTTP 503: broken on purpose"
    assert found.accepted == {}


def test_probe_asks_no_chat_of_an_embedding_server(opened: Opener) -> None:
    with opened(Truth(breaks=404), default_claims(task="embed")) as target:
        found = probe(target)

    assert (found.problem, dict(found.support)) == (None, {})
    assert found.as_json()["models"] == ["fake"]


# What only the wire can do.


@contextmanager
def over_wire(faults: Faults | None = None, **options: Any) -> Iterator[tuple[Served, HttpTarget]]:
    key = options.pop("key", None)
    with (
        serve(FakeTarget(), faults, key=key) as served,
        HttpTarget(served.url, "fake", default_claims(), **options) as t,
    ):
        yield served, t


def reply_with(faults: Faults, *, timeout_s: float = 20.0) -> Reply:
    with over_wire(faults) as (_, target):
        return target.chat(ASK, stream=True, timeout_s=timeout_s)


def test_model_and_temperature_are_filled_in_and_usage_is_asked_of_a_stream() -> None:
    with over_wire() as (served, target):
        target.chat(ASK)
        target.chat({**ASK, "temperature": 1, "model": "other"}, stream=True)

    assert (served.bodies[0]["model"], served.bodies[0]["temperature"]) == ("fake", 0)
    assert "stream" not in served.bodies[0]
    assert (served.bodies[1]["model"], served.bodies[1]["temperature"]) == ("other", 1)
    assert served.bodies[1]["stream_options"] == {"include_usage": True}


def test_key_goes_with_every_request_and_shows_nowhere() -> None:
    with over_wire(key="sk-very-secret", api_key=Secret("KEY", "sk-very-secret")) as (served, target):
        reply = target.chat(ASK)
        target.metrics()

    assert reply.is_ok
    assert {h.get("Authorization") for h in served.headers} == {"Bearer sk-very-secret"}
    assert "sk-very-secret" not in repr(target) + repr(vars(target))


def test_missing_key_is_the_servers_refusal() -> None:
    with over_wire(key="sk") as (_, target):
        reply = target.chat(ASK)

    assert (reply.http_status, reply.error) == (401, "Unauthorized")


def test_nobody_listening_is_a_reply_without_status() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        with HttpTarget(url, "fake", default_claims()) as target:
            reply = target.chat(ASK)

            assert (reply.http_status, reply.ended_properly) == (0, False)
            assert "ConnectError" in str(reply.error)
            assert (target.get_json("/x"), target.metrics(), target.post("/x"), target.count_tokens("a")) == (
                None,
                None,
                0,
                None,
            )


def test_stream_that_breaks_off_is_an_error() -> None:
    reply = reply_with(Faults(cut_after=2))

    assert (reply.text, reply.ended_properly) == ("It", False)
    assert "without a finish reason" in str(reply.error)


def test_stream_with_usage_but_without_done_is_an_answer_not_ended_properly() -> None:
    reply = reply_with(Faults(skip_done=True))

    assert (reply.is_ok, reply.ended_properly, reply.text) == (True, False, "It is Paris")


def test_error_inside_a_stream_is_the_servers_words() -> None:
    reply = reply_with(Faults(error_inside="engine died"))

    assert (reply.http_status, reply.error) == (200, "engine died")


def test_comments_are_no_tokens() -> None:
    reply = reply_with(Faults(comments=True))

    assert (reply.text, reply.events) == ("It is Paris", 7)


def test_deadline_holds_over_the_whole_stream_not_each_read() -> None:
    reply = reply_with(Faults(drip_s=0.1), timeout_s=0.25)

    assert not reply.is_ok
    assert "not finished in time" in str(reply.error)


def test_answer_that_is_no_json_is_an_error() -> None:
    with over_wire(Faults(body=b"<html>")) as (_, target):
        assert target.chat(ASK).error == "body is not JSON: <html>"


def test_stream_that_was_answered_whole_is_read_whole() -> None:
    body = b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'

    with over_wire(Faults(body=body)) as (_, target):
        reply = target.chat(ASK, stream=True)

    assert (reply.text, reply.events, reply.ended_properly) == ("hi", 0, True)


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("spark01:8000", "http://spark01:8000/v1"),
        ("http://spark01:8000", "http://spark01:8000/v1"),
        ("http://spark01:8000/", "http://spark01:8000/v1"),
        ("http://spark01:8000/v1/", "http://spark01:8000/v1"),
        ("https://box.ts.net/v1/chat/completions", "https://box.ts.net/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
        ("http://box/llm", "http://box/llm/v1"),
    ],
)
def test_address_is_brought_into_one_form(typed: str, url: str) -> None:
    assert base_url_of(typed) == url


@pytest.mark.parametrize("typed", ["", "ftp://x", "http://", "http://x:99999", "http://x:y"])
def test_no_address_is_the_users_mistake(typed: str) -> None:
    with pytest.raises(InputError, match="not a server's address"):
        base_url_of(typed)
