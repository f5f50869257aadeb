"""The mock as our own control client sees it: each flavour's paths, counts and habits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.mock.cache import PrefixCache
from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import Flavour, MockSettings
from orchestrator.values import Json
from orchestrator.wire.chat import Claims
from orchestrator.wire.target import HttpTarget

FAST = MockSettings(step_s=0.0005)
FLAVOURS = pytest.mark.parametrize("flavour", list(Flavour))
TOOL: Json = {"type": "function", "function": {"name": "note", "parameters": {"type": "object"}}}


def target_of(server: MockServer) -> HttpTarget:
    return HttpTarget(server.base_url, server.settings.model, Claims(engine="endpoint"))


def ask(text: str, **more: Json) -> dict[str, Json]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 5, **more}


@FLAVOURS
@pytest.mark.parametrize("stream", [True, False])
def test_a_word_is_a_token_and_the_template_seven(flavour: Flavour, stream: bool) -> None:
    with MockServer(replace(FAST, flavour=flavour)) as server, target_of(server) as target:
        reply = target.chat(ask("one two three"), stream=stream)

    assert reply.error is None
    assert (reply.usage.prompt_tok, reply.usage.output_tok, reply.usage.cached_tok) == (10, 5, 0)
    assert len(reply.text.split()) == 5


@FLAVOURS
def test_tokenizer_counts_words(flavour: Flavour) -> None:
    with MockServer(replace(FAST, flavour=flavour)) as server, target_of(server) as target:
        assert target.count_tokens("one two three") == 3


@FLAVOURS
def test_second_time_is_cached_in_whole_blocks(flavour: Flavour) -> None:
    text = " ".join(f"w{i}" for i in range(60))
    with MockServer(replace(FAST, flavour=flavour)) as server, target_of(server) as target:
        cached = [target.chat(ask(text)).usage.cached_tok for _ in range(2)]

    assert cached == [0, 64]


def test_cold_fields_give_a_cold_run() -> None:
    text = " ".join(f"w{i}" for i in range(60))
    with MockServer(FAST) as server, target_of(server) as target:
        target.chat(ask(text))
        cached = [target.chat(ask(text, **f)).usage.cached_tok for f in ({"cache_salt": "x"}, {"cache_prompt": False})]

    assert cached == [0, 0]


def test_streamed_tool_call_has_arguments_that_parse() -> None:
    with MockServer(FAST) as server, target_of(server) as target:
        replies = [target.chat(ask("note it", tools=[TOOL]), stream=stream) for stream in (True, False)]

    for reply in replies:
        assert [c.name for c in reply.tool_calls] == ["note"]
        assert set(json.loads(reply.tool_calls[0].arguments)) == {"note"}
        assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("flavour", "names"),
    [
        (Flavour.VLLM, ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")),
        (Flavour.SGLANG, ("sglang:prompt_tokens_total", "sglang:generation_tokens_total")),
        (Flavour.LLAMACPP, ("llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total")),
    ],
)
def test_metrics_count_under_the_engines_names(flavour: Flavour, names: tuple[str, str]) -> None:
    with MockServer(replace(FAST, flavour=flavour)) as server, target_of(server) as target:
        target.chat(ask("one two three"))
        samples = target.metrics()

    assert samples is not None
    assert [samples[name] for name in names] == [10, 5]


def test_llama_server_tells_its_slots_and_the_others_do_not() -> None:
    with MockServer(replace(FAST, flavour=Flavour.LLAMACPP, slots=3)) as server, target_of(server) as target:
        props, slots = target.get_json("/props"), target.get_json("/slots")
    with MockServer(FAST) as server, target_of(server) as target:
        assert target.get_json("/props") is None

    assert isinstance(props, dict)
    assert props["total_slots"] == 3
    assert isinstance(slots, list)
    assert len(slots) == 3


def test_requests_beyond_the_slots_wait_their_turn() -> None:
    with MockServer(replace(FAST, slots=2)) as server, target_of(server) as target:
        replies = target.chat_many([ask(f"q{i}") for i in range(6)])
        most = server.counters.most_running

    assert [r.error for r in replies] == [None] * 6
    assert most == 2


def test_sglang_refuses_token_ids_with_streamed_chat() -> None:
    with MockServer(replace(FAST, flavour=Flavour.SGLANG)) as server, target_of(server) as target:
        reply = target.chat(ask("hi", return_token_ids=True), stream=True)

    assert reply.http_status == 400


def test_prompt_beyond_the_context_is_refused() -> None:
    with MockServer(replace(FAST, max_model_len=20)) as server, target_of(server) as target:
        reply = target.chat(ask("w " * 30))

    assert (reply.http_status, "20" in (reply.error or "")) == (400, True)


def test_cache_always_leaves_a_token_to_compute() -> None:
    cache = PrefixCache(4)
    prompt = [f"w{i}" for i in range(8)]
    cache.add(prompt, "")

    assert (cache.find(prompt, ""), cache.find([*prompt, "x"], ""), cache.find(prompt, "salt")) == (4, 8, 0)
