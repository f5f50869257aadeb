"""What real vLLM and llama-server sent, read as it should be. Origins: the README beside the captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.wire.chat import Reply
from orchestrator.wire.listing import Listed, find_listed
from orchestrator.wire.parse import load_json, read_body, read_stream
from orchestrator.wire.prometheus import parse_metrics, sum_by_name
from orchestrator.wire.sse import parse_all

ROOT = Path(__file__).resolve().parents[1] / "cases" / "wire"
ENGINES = ("vllm-0.32.0", "llamacpp-b10434")


def captures() -> list[Any]:
    found = []
    for engine in ENGINES:
        index: dict[str, dict[str, Any]] = json.loads((ROOT / engine / "index.json").read_text())
        for name, entry in index.items():
            if entry["path"] in ("/v1/chat/completions", "/v1/completions"):
                found.append(pytest.param(engine, name, entry, id=f"{engine}-{name}"))
    return found


def read(engine: str, name: str) -> Reply:
    entry = json.loads((ROOT / engine / "index.json").read_text())[name]
    raw = (ROOT / engine / entry["reply"]).read_bytes()
    if "event-stream" in entry["content_type"]:
        return read_stream(parse_all([raw]))
    return read_body(raw, http_status=entry["status"])


@pytest.mark.parametrize(("engine", "name", "entry"), captures())
def test_capture_is_an_answer_or_the_servers_words(engine: str, name: str, entry: dict[str, Any]) -> None:
    reply = read(engine, name)

    breaks = entry["status"] != 200 or name in ("engine-dies-stream", "error-in-stream")
    assert reply.http_status == entry["status"]
    assert bool(reply.error) == breaks
    assert breaks or reply.text or reply.tool_calls
    assert reply.error is None or not reply.error.startswith(("{", "event is not", "body "))


@pytest.mark.parametrize(("engine", "name", "entry"), captures())
def test_captured_stream_is_the_same_however_it_is_cut(engine: str, name: str, entry: dict[str, Any]) -> None:
    if not entry["reply"].endswith(".sse"):
        return
    raw = (ROOT / engine / entry["reply"]).read_bytes()

    whole = parse_all([raw])

    assert parse_all(raw[i : i + 7] for i in range(0, len(raw), 7)) == whole


@pytest.mark.parametrize(
    ("engine", "whole", "streamed"),
    [
        ("vllm-0.32.0", "cache-warm", "cache-warm-stream"),
        ("vllm-0.32.0", "completion", "completion-stream"),
        ("vllm-0.32.0", "tool-auto", "tool-auto-stream"),
        ("vllm-0.32.0", "tool-named", "tool-named-stream"),
        ("vllm-0.32.0", "tool-required", "tool-required-stream"),
        ("vllm-0.32.0", "tool-required-loose", "tool-required-loose-stream"),
        ("llamacpp-b10434", "completion", "completion-stream"),
        ("llamacpp-b10434", "tool-required", "tool-required-stream"),
    ],
)
def test_streamed_answer_reads_like_the_whole_one(engine: str, whole: str, streamed: str) -> None:
    a, b = read(engine, whole), read(engine, streamed)

    assert [(c.name, c.arguments) for c in a.tool_calls] == [(c.name, c.arguments) for c in b.tool_calls]
    assert (a.text, a.finish_reason, a.usage.output_tok) == (b.text, b.finish_reason, b.usage.output_tok)


@pytest.mark.parametrize(
    ("engine", "name", "cached"),
    [
        ("vllm-0.32.0", "cache-cold", 0),
        ("vllm-0.32.0", "cache-warm", 640),
        ("vllm-0.32.0", "cache-warm-stream", 640),
        ("vllm-0.32.0", "cache-salt-cold", 0),
        ("llamacpp-b10434", "cache-cold", 0),
        ("llamacpp-b10434", "cache-warm", 733),
        ("llamacpp-b10434", "cache-bypassed", 0),
        ("llamacpp-b10434", "chat-stream-no-usage", 36),
    ],
)
def test_cached_tokens_are_what_the_engine_said(engine: str, name: str, cached: int) -> None:
    assert read(engine, name).usage.cached_tok == cached


@pytest.mark.parametrize("name", ["chat-stream-token-ids", "chat-stream-emoji-token-ids", "tool-required-stream"])
def test_token_ids_are_as_many_as_usage_counts(name: str) -> None:
    reply = read("vllm-0.32.0", name)

    assert reply.token_ids is not None
    assert len(reply.token_ids) == reply.usage.output_tok


def test_logprobs_come_streamed_and_whole() -> None:
    for engine in ENGINES:
        for name in ("chat-logprobs", "chat-stream-logprobs"):
            logprobs = read(engine, name).logprobs
            assert len(logprobs) == 8
            assert all(t.top[0][1] >= t.top[-1][1] for t in logprobs)


def test_llama_server_ends_a_broken_stream_without_done_and_vllm_with_it() -> None:
    assert read("llamacpp-b10434", "error-in-stream").ended_properly is False
    assert read("vllm-0.32.0", "error-in-stream").ended_properly is True


def test_listings_tell_the_engine_and_the_length() -> None:
    vllm = load_json((ROOT / "vllm-0.32.0" / "models.json").read_bytes())
    llama = load_json((ROOT / "llamacpp-b10434" / "models.json").read_bytes())

    assert find_listed(vllm, "smollm2") == Listed(name="smollm2", max_model_len=8192, engine="vllm")
    found = find_listed(llama, "any name")
    assert found is not None
    assert (found.engine, found.max_model_len) == ("llamacpp", 4096)


def test_model_that_is_not_listed_among_several_is_not_found() -> None:
    assert find_listed({"data": [{"id": "a"}, {"id": "b"}]}, "c") is None


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("vllm-0.32.0", "vllm:prefix_cache_hits_total"),
        ("vllm-0.32.0", "vllm:num_requests_running"),
        ("llamacpp-b10434", "llamacpp:prompt_tokens_cached_total"),
        ("llamacpp-b10434", "llamacpp:requests_processing"),
    ],
)
def test_captured_metrics_have_what_the_gates_read(engine: str, name: str) -> None:
    assert name in sum_by_name(parse_metrics((ROOT / engine / "metrics.txt").read_text()))


def test_vllm_tells_its_cache_block_in_labels() -> None:
    samples = parse_metrics((ROOT / "vllm-0.32.0" / "metrics.txt").read_text())

    labels = [s.labels for s in samples if s.name == "vllm:cache_config_info"]
    assert [found["effective_attention_block_size"] for found in labels] == ["128"]
