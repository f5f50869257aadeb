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


def test_long_error_is_kept_short() -> None:
    answer = Answer(repeat=0, index=0, scheduled_ns=1, status=500, pieces=[(5, b"x" * 5000)], is_whole=True)

    assert len(request_record(answer).error or "") <= 500
