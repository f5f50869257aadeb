"""Chunks, bodies and whole streams of the engines, on case files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from orchestrator.wire.parse import read_body, read_chunk, read_stream
from orchestrator.wire.prometheus import parse_metrics, sum_by_name
from orchestrator.wire.sse import parse_all
from tests.unit.wire_cases import cases, seen

EVENTS, BODIES, STREAMS, METRICS = (cases(f) for f in ("events", "bodies", "streams", "metrics"))


@pytest.mark.parametrize(("name", "case"), EVENTS, ids=[n for n, _ in EVENTS])
def test_chunk_reads_as_its_delta(name: str, case: dict[str, Any]) -> None:
    delta = read_chunk(case["chunk"])

    found = {k: getattr(delta, k) for k in case["delta"]}
    found |= {"usage": asdict(delta.usage)} if delta.usage is not None else {}
    found |= {"token_ids": list(delta.token_ids)} if delta.token_ids is not None else {}
    assert {k: found[k] for k in case["delta"]} == case["delta"]


@pytest.mark.parametrize(("name", "case"), BODIES, ids=[n for n, _ in BODIES])
def test_body_reads_as_its_reply(name: str, case: dict[str, Any]) -> None:
    reply = read_body(case["body"].encode(), http_status=case["status"])

    assert seen(reply, case["reply"]) == case["reply"]
    assert reply.http_status == case["status"]


@pytest.mark.parametrize(("name", "case"), STREAMS, ids=[n for n, _ in STREAMS])
def test_stream_reads_as_its_reply(name: str, case: dict[str, Any]) -> None:
    reply = read_stream(parse_all([case["stream"].encode()]))

    assert seen(reply, case["reply"]) == case["reply"]


@pytest.mark.parametrize(("name", "case"), METRICS, ids=[n for n, _ in METRICS])
def test_metrics_add_up_over_labels(name: str, case: dict[str, Any]) -> None:
    samples = parse_metrics(case["text"])

    assert sum_by_name(samples) == {k: float(v) for k, v in case["sums"].items()}
    for metric, labels in case["labels"].items():
        assert [s.labels for s in samples if s.name == metric] == labels


def test_long_error_is_shortened_with_its_length() -> None:
    reply = read_body(b"x" * 5000, http_status=500)

    assert reply.error is not None
    assert reply.error.endswith("… (5000 characters)")
