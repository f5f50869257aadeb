"""The mock's engine: what it shares, evicts, refuses and forgets, and whether its own figures are true."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from gates.effective import GATE
from orchestrator.engines.registry import load_engines
from orchestrator.gating.gate import Status
from orchestrator.mock.cache import PrefixCache
from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import Flavour, MockSettings
from orchestrator.pipeline.claims import metric_names
from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Reply
from orchestrator.wire.target import HttpTarget

FAST = MockSettings(step_s=0.0005)
DEADLINE_S = 20.0


def target_of(server: MockServer) -> HttpTarget:
    return HttpTarget(server.base_url, server.settings.model, Claims(engine="endpoint"))


def ask(text: str, tok: int = 5, **more: Json) -> dict[str, Json]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": tok, **more}


def words(n: int, first: str = "w0") -> str:
    return " ".join([first, *(f"w{i}" for i in range(1, n))])


def cached(replies: tuple[Reply, ...] | list[Reply]) -> list[int | None]:
    return [r.usage.cached_tok for r in replies]


@pytest.mark.parametrize(
    ("capacity", "prompts", "hits"),
    [
        (0, ["aaaa", "bbbb", "aaaa"], [0, 0, 3]),
        (8, ["aaaa", "bbbb", "aaaa"], [0, 0, 3]),
        (4, ["aaaa", "bbbb", "aaaa"], [0, 0, 0]),
        (6, ["aaaa", "bbbb", "aaaa"], [0, 0, 2]),
        (6, ["aaaa", "bbbb", "aaaa", "aaaa"], [0, 0, 2, 3]),
        (8, ["aaaa", "bbbb", "aaaa", "cccc", "aaaa", "bbbb"], [0, 0, 3, 0, 3, 0]),
        (2, ["aaaa", "aaaa"], [0, 2]),
    ],
)
def test_least_recently_used_blocks_go_first_and_the_tail_before_the_head(
    capacity: int, prompts: list[str], hits: list[int]
) -> None:
    cache, found = PrefixCache(2, capacity=capacity), []
    for prompt in prompts:
        tokens = [letter for letter in prompt for _ in range(2)]
        found.append(cache.find(tokens, "") // 2)
        cache.add(tokens, "")

    assert found == hits
    assert not capacity or cache.blocks <= capacity


def test_a_prompt_that_goes_on_begins_where_the_answer_before_ended() -> None:
    with MockServer(FAST) as server, target_of(server) as target:
        first = target.chat(ask(words(41), tok=16))
        history: list[Json] = [
            {"role": "user", "content": words(41)},
            {"role": "assistant", "content": first.text},
            {"role": "user", "content": "and then"},
        ]
        second = target.chat({"messages": history, "max_tokens": 1})

    assert (first.usage.prompt_tok, first.usage.cached_tok) == (48, 0)
    assert (second.usage.prompt_tok, second.usage.cached_tok) == (48 + 16 + 2 + 3, 64)


@pytest.mark.parametrize(("shares", "hits"), [(True, [0, 48, 48, 48]), (False, [0, 0, 0, 0])])
def test_a_prefix_that_is_being_computed_is_shared_or_not(shares: bool, hits: list[int]) -> None:
    settings = replace(FAST, ttft_s=0.3, shares_in_flight=shares)
    with MockServer(settings) as server, target_of(server) as target:
        at_once = target.chat_many([ask(words(57))] * 4)
        after = target.chat(ask(words(57)))

    assert sorted(cached(at_once), key=lambda n: n or 0) == hits
    assert after.usage.cached_tok == 48


def test_serial_prefills_wait_for_each_other() -> None:
    settings = replace(FAST, prefill_is_serial=True, prefill_tok_per_s=2000, shares_in_flight=False)
    with MockServer(settings) as server, target_of(server) as target:
        target.chat_many([ask(words(57))] * 3)
        truths = sorted(server.truths, key=lambda t: t.started_ns)

    # 64 tokens at 2000 a second.
    starts = [b.started_ns - a.started_ns for a, b in pairwise(truths)]
    assert len(starts) == 2
    assert all(gap >= 32_000_000 for gap in starts)
    assert all(t.first_ns - t.started_ns >= 32_000_000 for t in truths)


def test_nobody_gets_a_token_while_a_prefill_stalls_them() -> None:
    settings = replace(FAST, prefill_stalls=True, prefill_tok_per_s=2000, has_stamps=True)
    with MockServer(settings) as server, target_of(server) as target:
        replies = target.chat_many([ask(words(20, "a"), tok=1500), ask(words(393, "b"), tok=1)])
        short, long = sorted(server.truths, key=lambda t: t.output_tok)

    raw = replies[0].raw
    assert isinstance(raw, tuple)
    stamps = [int(str(e["mock_ns"])) for e in raw if isinstance(e, dict)]
    computed_ns = short.started_ns + 200_000_000
    assert long.last_ns > computed_ns
    assert [t for t in stamps if short.started_ns < t < computed_ns] == []


@pytest.mark.parametrize(
    ("flavour", "prefix"), [(Flavour.VLLM, "vllm:spec_decode"), (Flavour.LLAMACPP, "llamacpp:spec_decode")]
)
def test_speculation_counters_give_the_pattern_s_mean(flavour: Flavour, prefix: str) -> None:
    with MockServer(replace(FAST, flavour=flavour, tokens_pattern=(1, 4, 2, 3))) as server, target_of(server) as target:
        target.chat(ask("hi", tok=20), stream=True)
        found = target.metrics()

    assert found is not None
    names = ("num_drafts", "num_draft_tokens", "num_accepted_tokens", "num_accepted_tokens_per_pos")
    assert [found[f"{prefix}_{name}_total"] for name in names] == [8, 24, 12, 12]


@pytest.mark.parametrize(
    ("flavour", "changes", "status", "said"),
    [
        (
            Flavour.VLLM,
            {"rejected_tok": 3},
            Status.FAIL,
            "800 drafts were made while a text was copied, none was accepted",
        ),
        (
            Flavour.LLAMACPP,
            {"rejected_tok": 3},
            Status.FAIL,
            "800 drafts were made while a text was copied, none was acc",
        ),
        (Flavour.SGLANG, {"rejected_tok": 3}, Status.SKIP, "1 not confirmable"),
        (Flavour.VLLM, {"tokens_per_event": 2, "rejected_tok": 3}, Status.PASS, "1 same"),
        (Flavour.VLLM, {}, Status.FAIL, "the server's metrics count no drafts at all"),
    ],
)
def test_the_gate_tells_drafts_that_are_never_accepted(
    flavour: Flavour, changes: dict[str, Any], status: Status, said: str
) -> None:
    metrics = metric_names(load_engines()[flavour.value].traits.metrics)
    claims = Claims(engine=flavour.value, speculative=True, metrics=metrics)
    settings = replace(FAST, flavour=flavour, **changes)
    with MockServer(settings) as server, HttpTarget(server.base_url, settings.model, claims) as target:
        verdict = GATE.check(target, GATE.defaults)

    assert (verdict.status, said in verdict.summary) == (status, True), verdict.summary


def test_sglang_tells_its_accept_length() -> None:
    settings = replace(FAST, flavour=Flavour.SGLANG, tokens_pattern=(1, 4, 2, 3))
    with MockServer(settings) as server, target_of(server) as target:
        target.chat(ask("hi", tok=20))
        found = target.metrics()

    assert found is not None
    assert (found["sglang:spec_accept_length"], found["sglang:spec_accept_rate"]) == (2.5, 0.5)


def test_without_speculation_no_engine_counts_drafts() -> None:
    for flavour in Flavour:
        with MockServer(replace(FAST, flavour=flavour)) as server, target_of(server) as target:
            target.chat(ask("hi"))
            found = target.metrics()

        assert found is not None
        assert not [name for name in found if "spec" in name]


def test_vllm_counts_ends_by_reason_and_sums_its_own_times() -> None:
    settings = replace(FAST, answer_tok=3, ttft_s=0.01)
    with MockServer(settings) as server, target_of(server) as target:
        target.chat(ask("one"), stream=True)
        target.chat(ask("two", ignore_eos=True), stream=True)
        ends = target.metric_labels("vllm:request_success_total")
        found, truths = target.metrics(), server.truths

    assert [dict(e) for e in ends] == [{"finished_reason": "stop"}, {"finished_reason": "length"}]
    assert found is not None
    assert found["vllm:time_to_first_token_seconds_count"] == 2
    true_s = sum(t.first_ns - t.received_ns for t in truths) / 1e9
    assert found["vllm:time_to_first_token_seconds_sum"] == pytest.approx(true_s)
    assert found["vllm:time_to_first_token_seconds_sum"] >= 0.02


def test_kv_usage_and_capacity_are_told_where_there_is_one() -> None:
    with MockServer(replace(FAST, cache_blocks=100)) as server, target_of(server) as target:
        info = target.metric_labels("vllm:cache_config_info")[0]
        found = target.metrics()

    assert (info["num_gpu_blocks"], info["block_size"]) == ("100", "16")
    assert found is not None
    assert found["vllm:kv_cache_usage_perc"] == 0


def test_restart_forgets_counters_and_cache_and_has_a_new_birthday() -> None:
    with MockServer(replace(FAST, restarts_at=2)) as server, target_of(server) as target:
        target.chat(ask(words(57)))
        before = target.metrics()
        killed = target.chat(ask(words(57)))
        again = target.chat(ask(words(57)))
        after = target.metrics()

    assert before is not None
    assert after is not None
    assert killed.http_status == 0
    assert again.usage.cached_tok == 0
    assert before["vllm:prompt_tokens_total"] == after["vllm:prompt_tokens_total"] == 64
    assert after["process_start_time_seconds"] > before["process_start_time_seconds"]


def test_the_dead_stay_dead() -> None:
    with MockServer(replace(FAST, dies_at=1)) as server, target_of(server) as target:
        healthy = target.get_json("/v1/models")
        killed = target.chat(ask("hi"))
        port = int(server.base_url.split(":")[2].split("/")[0])

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)

    assert healthy is not None
    assert killed.http_status == 0


def test_loading_is_503_on_health_too_and_ends() -> None:
    with MockServer(replace(FAST, flavour=Flavour.LLAMACPP, loading_requests=2)) as server, target_of(server) as target:
        health = [target.get_json("/health"), target.get_json("/health"), target.get_json("/health")]
        reply = target.chat(ask("hi"))

    assert health == [None, None, {"status": "ok"}]
    assert reply.http_status == 200


def test_a_port_that_is_not_listened_on_yet_refuses() -> None:
    with MockServer(replace(FAST, listens_after_s=0.3)) as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline_s


def test_a_full_queue_sheds_the_rest() -> None:
    settings = replace(FAST, slots=1, sheds_beyond=1, shed_status=429, ttft_s=0.5)
    with MockServer(settings) as server, target_of(server) as target:
        replies = target.chat_many([ask(f"q{i}") for i in range(5)])
        shed = server.counters.shed

    assert sorted(r.http_status for r in replies) == [200, 200, 429, 429, 429]
    assert shed == 3


def test_sglang_has_its_own_paths() -> None:
    settings = replace(FAST, flavour=Flavour.SGLANG, slots=3, cache_blocks=10)
    with MockServer(settings) as server, target_of(server) as target:
        info = target.get_json("/server_info")
        target.chat(ask(words(57)))
        flushed = target.get_json("/flush_cache")
        reply = target.chat(ask(words(57)))

    assert isinstance(info, dict)
    assert (info["max_running_requests"], info["max_total_num_tokens"]) == (3, 160)
    assert flushed == {"success": True}
    assert reply.usage.cached_tok == 0


def test_not_a_number_in_the_metrics_harms_no_other() -> None:
    with MockServer(replace(FAST, has_nan=True)) as server, target_of(server) as target:
        reply = target.chat(ask("hi"), stream=True)
        found = target.metrics()

    assert reply.error is None
    assert found is not None
    assert "vllm:mock_ratio" not in found
    assert found["vllm:generation_tokens_total"] == 5


def test_reasoning_stands_in_whole_replies_too() -> None:
    with MockServer(replace(FAST, reasoning_tok=2)) as server, target_of(server) as target:
        replies = [target.chat(ask("hi"), stream=stream) for stream in (True, False)]

    assert [(len(r.reasoning.split()), len(r.text.split()), r.usage.reasoning_tok) for r in replies] == [(2, 3, 2)] * 2


def test_logprobs_are_there_when_asked_for() -> None:
    with MockServer(FAST) as server, target_of(server) as target:
        replies = [target.chat(ask("hi", logprobs=True), stream=stream) for stream in (True, False)]

    assert [[t.logprob for t in r.logprobs] for r in replies] == [[-0.125] * 5] * 2
