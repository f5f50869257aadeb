"""The event-stream parser, on case files cut in every way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.wire.sse import ChunkIndex, SseEvent, SseParser, parse_all
from tests.unit.wire_cases import cases

CASES = cases("sse")


@pytest.mark.parametrize(("name", "case"), CASES, ids=[n for n, _ in CASES])
def test_stream_in_one_piece_gives_its_events(name: str, case: dict[str, Any]) -> None:
    parser = SseParser()

    events = parser.feed(case["stream"].encode()) + parser.close()

    assert [plain(e) for e in events] == case["events"]
    assert parser.comments == case["comments"]


@pytest.mark.parametrize(("name", "case"), CASES, ids=[n for n, _ in CASES])
def test_stream_byte_by_byte_gives_the_same_events(name: str, case: dict[str, Any]) -> None:
    raw = case["stream"].encode()

    events = parse_all(raw[i : i + 1] for i in range(len(raw)))

    assert [plain(e) for e in events] == case["events"]


@settings(max_examples=200)
@given(
    case=st.sampled_from([c for _, c in CASES]),
    cuts=st.lists(st.integers(min_value=0, max_value=60), max_size=8),
)
def test_any_split_gives_the_same_events(case: dict[str, Any], cuts: list[int]) -> None:
    raw = case["stream"].encode()
    edges = sorted({0, len(raw), *(c for c in cuts if c < len(raw))})
    chunks = [raw[a:b] for a, b in pairwise(edges)]

    events = parse_all(chunks)

    assert [plain(e) for e in events] == case["events"]


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_no_bytes_break_the_parser(chunks: list[bytes]) -> None:
    events = parse_all(chunks)

    assert all(0 < e.end <= sum(map(len, chunks)) for e in events)


def test_event_is_stamped_by_the_chunk_that_completed_it() -> None:
    chunks = [b"data: a\n", b"\ndata: b\n\nda", b"ta: c\r\n\r", b"\n"]

    index = ChunkIndex(map(len, chunks))

    assert [index.chunk_of(e) for e in parse_all(chunks)] == [1, 1, 2]


def test_event_of_another_stream_has_no_chunk() -> None:
    with pytest.raises(IndexError, match="byte 9, the stream has 3"):
        ChunkIndex([3]).chunk_of(SseEvent(b"a", 9))


def test_event_name_is_kept() -> None:
    assert [e.event for e in parse_all([b"event: error\ndata: a\n\ndata: b\n\n"])] == ["error", ""]


def plain(event: SseEvent) -> dict[str, Any]:
    return {"data": event.data.decode(), "end": event.end, "is_complete": event.is_complete}
