"""What makes a cell invalid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.records.record import RequestRecord
from orchestrator.sweep.guards import LAG_FLOOR_MS, GuardInput, broken_guards
from orchestrator.sweep.lengths import fixed
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.workload import Kind, Workload

MS = 1_000_000
GOOD = RequestRecord(
    repeat=0,
    index=0,
    scheduled_ns=0,
    http_status=200,
    events=((0, 1), (20 * MS, 1), (40 * MS, 1)),
    prompt_tok=128,
    expected_prompt_tok=128,
    output_tok=3,
    cached_tok=0,
    expected_cached_tok=0,
    finish_reason="length",
)
WORKLOAD = Workload(name="w", kinds=(Kind.BATCH,), output_tokens=(fixed(3),), concurrency=(2,), repeats=1)
CELL = GuardInput(
    cell=WORKLOAD.cells()[0],
    target=LoadTarget(base_url="http://127.0.0.1:1/v1", model="m"),
    laps=({"repeat": 0},),
    requests=(GOOD, GOOD),
)


def broken(cell: GuardInput) -> dict[str, str]:
    return {g.name: g.message for g in broken_guards(cell)}


def with_one(**changes: object) -> GuardInput:
    return replace(CELL, requests=(GOOD, replace(GOOD, **changes)))  # type: ignore[arg-type]


def test_clean_cell_breaks_nothing() -> None:
    assert broken(CELL) == {}


@pytest.mark.parametrize(
    ("prompt_tok", "names"), [(130, []), (126, []), (131, ["prompt_length"]), (125, ["prompt_length"])]
)
def test_prompt_may_be_two_percent_off(prompt_tok: int, names: list[str]) -> None:
    assert list(broken(with_one(prompt_tok=prompt_tok))) == names


def test_worst_prompt_is_named() -> None:
    assert "asked 128 tokens, the server counted 900" in broken(with_one(prompt_tok=900))["prompt_length"]


def test_uncounted_prompt_is_no_offence() -> None:
    assert broken(with_one(prompt_tok=None)) == {}


def test_short_answer_breaks_a_fixed_length() -> None:
    assert "asked 3 tokens, got 2" in broken(with_one(output_tok=2))["output_length"]


def test_short_answer_is_fine_when_the_model_may_stop() -> None:
    assert broken(replace(with_one(output_tok=2), cell=replace(WORKLOAD, ignore_eos=False).cells()[0])) == {}


@pytest.mark.parametrize(("cached_tok", "names"), [(16, []), (17, ["cached_tokens"])])
def test_one_cache_unit_more_than_expected_is_allowed(cached_tok: int, names: list[str]) -> None:
    assert list(broken(with_one(cached_tok=cached_tok))) == names


def test_template_before_the_nonce_may_be_cached() -> None:
    assert broken(with_one(cached_tok=48, expected_cached_tok=32)) == {}


def test_untold_cache_is_no_offence() -> None:
    assert broken(with_one(cached_tok=None)) == {}


def test_any_failure_is_an_offence_with_its_class_and_words() -> None:
    message = broken(with_one(failure="http_400", error="too long"))["failures"]

    assert message == "1 of 2 requests failed: http_400 1 (too long)"


def test_failed_request_is_judged_for_nothing_else() -> None:
    assert list(broken(with_one(failure="timeout", output_tok=1, prompt_tok=1))) == ["failures"]


def test_request_that_was_never_sent_is_an_offence() -> None:
    assert "not_sent 1" in broken(replace(CELL, cell=replace(WORKLOAD, concurrency=(3,)).cells()[0]))["failures"]


@pytest.mark.parametrize(("lag_ms", "names"), [(LAG_FLOOR_MS, []), (LAG_FLOOR_MS + 1, ["client_lag"]), (None, [])])
def test_client_may_not_lag_behind_short_gaps(lag_ms: float | None, names: list[str]) -> None:
    assert list(broken(replace(CELL, lag_ms_p99=lag_ms))) == names


def test_long_gaps_bear_a_tenth_of_themselves_as_lag() -> None:
    slow = replace(GOOD, events=((0, 1), (400 * MS, 1), (800 * MS, 1)))

    assert broken(replace(CELL, requests=(slow, slow), lag_ms_p99=39.0)) == {}
    assert list(broken(replace(CELL, requests=(slow, slow), lag_ms_p99=41.0))) == ["client_lag"]
