"""Raw reads to a request's record, by case files: tests/cases/workload/streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.records.record import Failure, RequestRecord
from orchestrator.sweep.timing import Answer, Expected, request_record

CASES = sorted((Path(__file__).parents[1] / "cases" / "workload" / "streams").glob("*.json"))
SEND_NS, END_NS = 3, 99


def read_case(case: dict[str, Any], pieces: list[tuple[int, bytes]] | None = None) -> RequestRecord:
    told = dict(case.get("answer", {}))
    failure = told.pop("transport_failure", None)
    whole = [(t, text.encode()) for t, text in case["chunks"]]
    answer = Answer(
        repeat=0,
        index=0,
        scheduled_ns=1,
        sent_ns=SEND_NS,
        end_ns=END_NS,
        pieces=whole if pieces is None else pieces,
        transport_failure=None if failure is None else Failure(failure),
        **{"status": 200, "content_type": "text/event-stream", "is_whole": True, **told},
    )
    return request_record(answer)


def test_there_are_cases() -> None:
    assert len(CASES) > 30


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_stream_reads_as_its_case_says(path: Path) -> None:
    case = json.loads(path.read_text())

    plain = json.loads(json.dumps(read_case(case).as_json()))

    assert {key: plain[key] for key in case["expect"]} == case["expect"]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_reads_of_one_byte_change_no_count(path: Path) -> None:
    case = json.loads(path.read_text())
    bytewise = [(t, bytes([b])) for t, text in case["chunks"] for b in text.encode()]

    cut, whole = read_case(case, bytewise), read_case(case)

    assert cut == whole


def test_expectations_are_written_beside_what_was_seen() -> None:
    answer = Answer(repeat=2, index=3, scheduled_ns=1)

    record = request_record(answer, Expected(prompt_tok=128, cached_tok=16, nonce="a b"))

    assert (record.repeat, record.index) == (2, 3)
    assert (record.expected_prompt_tok, record.expected_cached_tok, record.nonce) == (128, 16, "a b")


def test_whose_request_it_was_is_written_down() -> None:
    answer = Answer(
        repeat=0, index=0, scheduled_ns=1, ready_ns=2, phase="prime", lane="chat", track=7, turn=3, stamp_lag_ns=9
    )

    record = request_record(answer, Expected(asked_output_tok=64, shared_tok=32))

    assert (record.phase, record.lane, record.track, record.turn) == ("prime", "chat", 7, 3)
    assert (record.ready_ns, record.stamp_lag_ns) == (2, 9)
    assert (record.asked_output_tok, record.shared_tok) == (64, 32)


def test_stamp_lag_is_that_of_the_read_with_the_first_token() -> None:
    role, token = (
        b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
    )
    answer = Answer(
        repeat=0,
        index=0,
        scheduled_ns=1,
        status=200,
        content_type="text/event-stream",
        pieces=[(5, role), (7, token), (9, token)],
        read_lags_ns={5: 50, 7: 70, 9: 90},
    )

    assert request_record(answer).stamp_lag_ns == 70


def finished(*deltas: dict[str, str], reason: str) -> Answer:
    chunks = [{"choices": [{"delta": d}]} for d in deltas] + [{"choices": [{"delta": {}, "finish_reason": reason}]}]
    text = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
    return Answer(
        repeat=0,
        index=0,
        scheduled_ns=1,
        status=200,
        content_type="text/event-stream",
        pieces=[(5, text.encode())],
        is_whole=True,
    )


THOUGHT, SAID = {"reasoning": "hm"}, {"content": "yes"}
FREE, WHOLE = Expected(is_length_fixed=False), Expected(is_length_fixed=False, must_finish=True)


@pytest.mark.parametrize(
    ("answer", "expected", "failure"),
    [
        (finished(THOUGHT, reason="length"), FREE, Failure.CUT_REASONING),
        (finished(THOUGHT, reason="length"), WHOLE, Failure.CUT_REASONING),
        (finished(THOUGHT, reason="length"), Expected(), None),
        (finished(THOUGHT, reason="stop"), WHOLE, None),
        (finished(THOUGHT, SAID, reason="length"), FREE, None),
        (finished(THOUGHT, SAID, reason="length"), WHOLE, Failure.CUT),
        (finished(SAID, reason="length"), WHOLE, Failure.CUT),
        (finished(SAID, reason="length"), Expected(must_finish=True), None),
        (finished(SAID, reason="stop"), WHOLE, None),
    ],
)
def test_an_answer_cut_by_its_limit_fails_where_it_has_to_end_by_itself(
    answer: Answer, expected: Expected, failure: Failure | None
) -> None:
    assert request_record(answer, expected).failure == failure


def test_long_error_is_kept_short() -> None:
    answer = Answer(repeat=0, index=0, scheduled_ns=1, status=500, pieces=[(5, b"x" * 5000)], is_whole=True)

    assert len(request_record(answer).error or "") <= 500
