"""Cells and requests of the figures' cases, written in ms and with what follows from the rest left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.records.record import CellRecord, RequestRecord

CASES = Path(__file__).parents[1] / "cases" / "figures"
MS = 1_000_000
STAMPS = {
    "scheduled": "scheduled_ns",
    "ready": "ready_ns",
    "sent": "sent_ns",
    "first_event": "first_event_ns",
    "answer": "first_answer_ns",
    "end": "end_ns",
}


def cell_of(raw: Mapping[str, Any]) -> CellRecord:
    """`spans_ms` instead of `spans_ns`; a closed cell of one user unless told otherwise."""
    given = dict(raw)
    spans = tuple((round(a * MS), round(b * MS)) for a, b in given.pop("spans_ms", [(0, 1000)]))
    base: dict[str, Any] = {
        "id": "c",
        "workload": "w",
        "kind": "closed",
        "concurrency": 1,
        "prompt_tok": 100,
        "output_tok": 10,
        "repeats": 1,
        "requests_per_repeat": 1,
        "digest": "d",
        "duration_s": 1.0,
    }
    return CellRecord(**{**base, "spans_ns": spans, **given})


def requests_of(raws: list[dict[str, Any]]) -> list[RequestRecord]:
    """Each raw request as often as its `times` say, `every` ms later."""
    found: list[RequestRecord] = []
    for raw in raws:
        given = dict(raw)
        times, every = given.pop("times", 1), given.pop("every", 0)
        found += [request_of({"index": len(found) + i, **given}, i * every) for i in range(times)]
    return found


def request_of(raw: Mapping[str, Any], later_ms: float = 0) -> RequestRecord:
    """Due, ready and sent at once, ended with its last event, unless told otherwise. A failure has no events by itself.

    `events`: `[[ms, tokens], …]`, or `{"from", "n", "step", "tok"}`.
    """
    given = dict(raw)
    events = given.pop("events", [])
    if isinstance(events, dict):
        events = [[events["from"] + i * events["step"], events["tok"]] for i in range(events["n"])]
    stamps = {key: given.pop(key, None) for key in STAMPS}
    is_ready_given = "ready" in raw
    sent = stamps["sent"] if stamps["sent"] is not None else stamps["scheduled"] or 0
    scheduled = stamps["scheduled"] if stamps["scheduled"] is not None else (0 if is_ready_given else sent)
    first = events[0][0] if events else None
    ready = stamps["ready"] if is_ready_given else scheduled
    times = {
        "scheduled_ns": scheduled,
        "ready_ns": ready,
        "sent_ns": sent,
        "first_event_ns": stamps["first_event"] if stamps["first_event"] is not None else first,
        "first_token_ns": first,
        "first_answer_ns": stamps["answer"] if stamps["answer"] is not None else first,
        "last_token_ns": events[-1][0] if events else None,
        "end_ns": stamps["end"] if stamps["end"] is not None else (events[-1][0] if events else sent),
    }
    counts = [n for _, n in events]
    base: dict[str, Any] = {
        "repeat": 0,
        "index": 0,
        "prompt_tok": 100,
        "output_tok": None if not counts or None in counts else sum(counts),
        "http_status": 200,
        "events": tuple((round((t + later_ms) * MS), n) for t, n in events),
        **{name: None if t is None else round((t + later_ms) * MS) for name, t in times.items()},
    }
    return RequestRecord(**{**base, **given})


def look_up(document: Any, path: str) -> Any:
    """`a.b.0.c` in nested mappings and lists; None below a None."""
    for part in path.split("."):
        if document is None:
            raise KeyError(f"{path}: {part} is below a null")
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document
