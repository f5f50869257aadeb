"""Prompts of a wanted length, and evidence of a bounded one."""

from __future__ import annotations

import json

import pytest

from orchestrator.gating.evidence import HEAD_CHARS, TAIL_CHARS, WHOLE_CHARS, bounded, excerpt, exchange
from orchestrator.gating.prompts import fact_of, fresh_nonce, station_log
from orchestrator.gating.sizing import longest_prompt, measure, text_of
from orchestrator.wire.chat import Reply, TokenLogprob
from tests.unit.gate_fakes import FakeTarget, Truth, default_claims


@pytest.mark.parametrize("tokens", [60, 300, 5000, 20000])
def test_text_is_as_long_as_the_server_counts_and_never_longer(tokens: int) -> None:
    target = FakeTarget()

    sized = text_of(target, measure(target, nonce="n"), tokens, nonce="n", seed=1)

    assert sized.tok == len(sized.text.split())
    assert tokens - 25 <= sized.tok <= tokens


def test_without_a_tokenizer_one_request_tells_the_ratio() -> None:
    target = FakeTarget(Truth(can_count=False))

    ruler = measure(target, nonce="n")
    sized = text_of(target, ruler, 5000, nonce="n", seed=1)

    assert sized.tok is None
    assert 4500 <= len(sized.text.split()) <= 5000


def test_template_overhead_is_usage_less_the_tokenizers_count() -> None:
    assert measure(FakeTarget(Truth(head=33)), nonce="n").overhead_tok == 33


def test_server_that_counts_nothing_gets_a_careful_guess() -> None:
    ruler = measure(FakeTarget(Truth(can_count=False, breaks=500)), nonce="n")

    assert (ruler.tok_per_word, ruler.overhead_tok) == (1.6, None)


@pytest.mark.parametrize(
    ("declared", "listed", "longest"), [(4096, None, 3900), (4096, 2048, 1852), (None, 2048, 1852), (None, None, None)]
)
def test_longest_prompt_is_the_shorter_of_declared_and_listed(
    declared: int | None, listed: int | None, longest: int | None
) -> None:
    target = FakeTarget(Truth(listed_len=listed), default_claims(max_model_len=declared))

    assert longest_prompt(target, output_tok=36, reserve_tok=160) == longest


def test_same_seed_gives_the_same_text_after_another_nonce() -> None:
    a, b = station_log(200, nonce="n1", seed=5), station_log(200, nonce="n2", seed=5)

    assert a.split()[0] == "n1"
    assert a.split()[1:] == b.split()[1:]
    assert station_log(200, nonce="n1", seed=6) != a


def test_fact_is_in_the_text_and_its_question_does_not_give_it_away() -> None:
    fact = fact_of(3)

    assert fact.answer in station_log(100, nonce="n", seed=3, fact=fact)
    assert fact.answer not in fact.question
    assert fact_of(3) == fact != fact_of(4)


def test_nonces_are_not_repeated() -> None:
    assert len({fresh_nonce() for _ in range(100)}) == 100


def test_short_text_is_kept_whole() -> None:
    assert excerpt("a" * WHOLE_CHARS) == "a" * WHOLE_CHARS


def test_long_text_is_kept_as_digest_head_and_tail() -> None:
    found = excerpt("a" * 5000 + "b" * 5000)

    assert isinstance(found, dict)
    assert (found["chars"], found["head"], found["tail"]) == (10000, "a" * HEAD_CHARS, "b" * TAIL_CHARS)


def test_every_long_text_in_a_request_is_bounded() -> None:
    body = {"messages": [{"role": "user", "content": "x" * 100_000}], "max_tokens": 8}

    assert len(json.dumps(bounded(body))) < 1200


def test_exchange_keeps_sixteen_logprobs_and_the_servers_words() -> None:
    token = TokenLogprob(token="a", logprob=-0.1, top=(("a", -0.1),))
    shown = exchange("cold", {"max_tokens": 1}, Reply(http_status=400, error="no", logprobs=(token,) * 50), tok=5)

    assert (shown["label"], shown["tok"]) == ("cold", 5)
    reply = shown["reply"]
    assert isinstance(reply, dict)
    assert reply["error"] == "no"
    assert len(reply["logprobs"]) == 16
