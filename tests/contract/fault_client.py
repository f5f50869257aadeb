"""Single requests against the mock by the sweep's own reader, and where in the raw reads its tokens really stood."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic_ns
from typing import Any

import orjson
import yaml

from orchestrator.mock.counters import Truth
from orchestrator.mock.frames import line_end
from orchestrator.mock.reading import with_values
from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import MockSettings
from orchestrator.records.record import RequestRecord
from orchestrator.sweep.child import answer_of
from orchestrator.sweep.http1 import (
    Connection,
    End,
    Endpoint,
    Exchange,
    Meter,
    endpoint_of,
    open_connection,
    post_bytes,
    read_response,
)
from orchestrator.sweep.timing import Expected, request_record

CASES = Path(__file__).parents[1] / "cases" / "faults"
STAMP = re.compile(rb'"mock_ns": ?"(\d{19})"')
PATHS = {"chat": "/chat/completions", "completions": "/completions"}
MAX_TOK = 8
WORDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCase:
    """One file of tests/cases/faults.

    Attributes:
        number: Of the faults of other tools that it stands for.
        level: `request`: the settings and one client show it. `cell`: it takes a load; `claim` says what is right, and
            `tests.contract.test_fault_cells` checks it.
        workload, target, is_counted, lies: Of a whole cell, see `tests.contract.truth_client.TruthCase`.
        variants: Names -> switches over `settings`; each is run, and has to give the same.
        times, at_once: So many requests, one after the other on one connection, or each on its own.
        expect: Of each request, or of each in turn (at once: in the order of their first tokens); or of the one cell.
    """

    name: str
    number: tuple[int, ...]
    symptom: str
    level: str = "request"
    claim: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    ask: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)
    times: int = 1
    at_once: int = 0
    timeout_s: float = 20.0
    expect: Mapping[str, Any] | Sequence[Mapping[str, Any]] = ()
    workload: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    is_counted: bool = True
    lies: Sequence[str] = ()

    @property
    def expectations(self) -> Sequence[Mapping[str, Any]]:
        n = self.at_once or self.times
        return [self.expect] * n if isinstance(self.expect, Mapping) else self.expect

    def settings_of(self, variant: str) -> MockSettings:
        return with_values(MockSettings(has_stamps=True), {**self.settings, **self.variants[variant]})


def read_case(path: Path) -> FaultCase:
    raw = yaml.safe_load(path.read_text())
    number = raw.pop("number")
    return FaultCase(name=path.stem, number=tuple(number) if isinstance(number, list) else (number,), **raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request: the record, and the truth that is found without the code under test.

    Attributes:
        token_reads_ns: For each event with tokens, the stamp of the read that brought its last byte.
        truth: What the mock says of the stream; None where it sent no token.
    """

    record: RequestRecord
    token_reads_ns: Sequence[int]
    truth: Truth | None


def run_case(case: FaultCase, variant: str) -> list[Seen]:
    """All requests of a case, against a mock of its own."""
    settings = case.settings_of(variant)
    with MockServer(settings) as server:
        endpoint = endpoint_of(server.base_url)
        bodies = [_request(case, endpoint, i) for i in range(case.at_once or case.times)]
        exchanges = asyncio.run(_exchange(endpoint, bodies, case))
        truths = server.truths
    seen = [_seen(e, case, settings, truths) for e in exchanges]
    if case.at_once:
        seen.sort(key=lambda s: s.record.first_token_ns or monotonic_ns())
    return seen


def _request(case: FaultCase, endpoint: Endpoint, index: int) -> bytes:
    ask = dict(case.ask)
    path, words = ask.get("endpoint", "chat"), [f"w{i}" for i in range(ask.get("words", WORDS))]
    if "salt_each" in ask:
        words[0] = ask["salt_each"][index]
    text = " ".join(words + ([f"end{index}"] if ask.get("tail") else []))
    body: dict[str, Any] = {
        "model": "mock-model",
        "max_tokens": ask.get("max_tokens", MAX_TOK),
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": ask.get("ignore_eos", True),
    }
    body |= {"messages": [{"role": "user", "content": text}]} if path == "chat" else {"prompt": text}
    body |= ask.get("body", {})
    return post_bytes(endpoint, PATHS[path], orjson.dumps({k: v for k, v in body.items() if v is not None}))


async def _exchange(endpoint: Endpoint, requests: Sequence[bytes], case: FaultCase) -> list[Exchange]:
    if case.at_once:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_one(endpoint, r, None, case.timeout_s)) for r in requests]
        return [task.result()[0] for task in tasks]
    exchanges = []
    connection: Connection | None = None
    for request in requests:
        exchange, connection = await _one(endpoint, request, connection, case.timeout_s)
        exchanges.append(exchange)
    if connection is not None:
        connection.close()
    return exchanges


async def _one(
    endpoint: Endpoint, request: bytes, connection: Connection | None, timeout_s: float
) -> tuple[Exchange, Connection | None]:
    exchange = Exchange(scheduled_ns=monotonic_ns())
    try:
        if connection is None or not connection.is_usable:
            connection = await open_connection(endpoint, Meter(), timeout_s=timeout_s)
    except OSError as exc:
        exchange.end, exchange.end_ns, exchange.error = End.CONNECT, monotonic_ns(), str(exc)
        return exchange, None
    if connection.is_usable:
        await connection.start(request, exchange, timeout_s=timeout_s)
    else:
        exchange.end, exchange.end_ns = End.CLOSED, monotonic_ns()
    return exchange, connection


def _seen(exchange: Exchange, case: FaultCase, settings: MockSettings, truths: Sequence[Truth]) -> Seen:
    asked = case.ask.get("max_tokens", MAX_TOK)
    record = request_record(
        answer_of(exchange, repeat=0, index=0, epoch_ns=0), Expected(asked_output_tok=asked, **case.expected)
    )
    pieces = read_response(exchange.chunks).pieces
    body = b"".join(piece for _, piece in pieces)
    stamps = {int(m.group(1)) for m in STAMP.finditer(body)}
    truth = next((t for t in truths if t.first_ns in stamps), None)
    return Seen(record=record, token_reads_ns=_token_reads(pieces, body, settings, truth), truth=truth)


def _token_reads(
    pieces: Sequence[tuple[int, bytes]], body: bytes, settings: MockSettings, truth: Truth | None
) -> list[int]:
    """By the stamps inside the events alone: which read brought the end of each event with tokens."""
    if truth is None:
        return []
    # An event is complete with the first byte of its blank line's end.
    blank = (line_end(settings) * 2)[: -1 if settings.is_crlf else None]
    matches = list(STAMP.finditer(body))
    first = next(i for i, m in enumerate(matches) if int(m.group(1)) == truth.first_ns)
    ends = [body.index(blank, m.end()) + len(blank) for m in matches[first : first + truth.events]]
    return [_stamp_at(pieces, end) for end in ends]


def _stamp_at(pieces: Sequence[tuple[int, bytes]], end: int) -> int:
    at = 0
    for t_ns, piece in pieces:
        at += len(piece)
        if at >= end:
            return t_ns
    raise AssertionError("an event ends behind the body")


def all_cases() -> list[FaultCase]:
    return [read_case(path) for path in sorted(CASES.glob("*.yaml"))]
