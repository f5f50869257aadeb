"""Three readers of one wire, ours, the audited one and aiohttp, against the mock: what one says, all say."""

from __future__ import annotations

import socket
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from time import time_ns
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

import orchestrator.sweep.audited as audited_module
from orchestrator.errors import InputError
from orchestrator.mock.server import MockServer
from orchestrator.mock.settings import Fault, Flavour, MockSettings
from orchestrator.records.record import RequestRecord
from orchestrator.sweep.audited import READ_BYTES, SO_TIMESTAMPNS, AuditedConnection, kernel_stamp_ns
from orchestrator.sweep.child import answer_of
from orchestrator.sweep.connections import AnyConnection, Connector
from orchestrator.sweep.http1 import Connection, Exchange, Meter, endpoint_of, post_bytes
from orchestrator.sweep.timing import request_record
from tests.contract.readers import ALL, KEEP, LONG_S, connected, needs_linux, run, serving
from tests.contract.test_load_contract import self_signed

FAST = MockSettings(step_s=0.0005)


def ask_mock(
    settings: MockSettings,
    reader: str,
    *,
    text: str = "a b c",
    timeout_s: float = LONG_S,
    tls: ssl.SSLContext | None = None,
) -> list[Exchange]:
    """Two requests, one after the other, on one connection for as long as it serves."""
    body = orjson.dumps(
        {
            "model": FAST.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 12,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )

    async def work(url: str) -> list[Exchange]:
        request = post_bytes(endpoint_of(url), "/chat/completions", body)
        exchanges = [Exchange(scheduled_ns=0), Exchange(scheduled_ns=0)]
        async with connected(reader, url) as (connector, first):
            await first.start(request, exchanges[0], timeout_s=timeout_s)
            second = first if first.is_usable else await connector.open()
            await second.start(request, exchanges[1], timeout_s=timeout_s)
        return exchanges

    with MockServer(settings, tls=tls) as server:
        return run(lambda: work(server.base_url))


def record_of(exchange: Exchange) -> RequestRecord:
    return request_record(answer_of(exchange, repeat=0, index=0, epoch_ns=0))


@pytest.mark.parametrize("reader", ALL)
@pytest.mark.parametrize(
    ("changes", "failure", "output_tok", "events"),
    [
        ({}, None, 12, 12),
        ({"flavour": Flavour.LLAMACPP}, None, 12, 12),
        ({"flavour": Flavour.SGLANG}, None, 12, 12),
        ({"tokens_per_event": 5}, None, 12, 3),
        ({"reports_usage": False}, None, None, 12),
        ({"has_role_chunk": False}, None, 12, 12),
        ({"is_crlf": True, "has_keepalives": True}, None, 12, 12),
        ({"is_split": True}, None, 12, 12),
        ({"closes": True}, None, 12, 12),
        ({"closes": True, "is_split": True}, None, 12, 12),
        ({"fault": Fault.HTTP_400}, "http_400", None, 0),
        ({"fault": Fault.HTTP_404}, "http_4xx", None, 0),
        ({"fault": Fault.HTTP_500}, "http_5xx", None, 0),
        ({"fault": Fault.STREAM_ERROR}, "stream_error", None, 6),
        ({"fault": Fault.NO_DONE}, "no_done", 12, 12),
        ({"fault": Fault.CLOSE_EARLY}, "closed_early", None, 6),
        ({"fault": Fault.MALFORMED}, "malformed", 12, 12),
        # aiohttp loses what comes in one read with the break.
        ({"fault": Fault.NOT_HTTP, "step_s": 0.05}, "malformed", None, 6),
        ({"fault": Fault.NO_TOKENS}, "no_tokens", 0, 0),
        ({"fault": Fault.HANG}, "timeout", None, 6),
    ],
    ids=str,
)
def test_every_reader_finds_what_the_mock_did(
    reader: str, changes: dict[str, Any], failure: str | None, output_tok: int | None, events: int
) -> None:
    timeout_s = 0.3 if failure == "timeout" else LONG_S

    records = [record_of(e) for e in ask_mock(replace(FAST, **changes), reader, timeout_s=timeout_s)]

    assert [(r.failure, r.output_tok, len(r.events)) for r in records] == [(failure, output_tok, events)] * 2


@pytest.mark.parametrize("reader", ALL)
def test_stamps_stand_in_the_order_of_what_happened(reader: str) -> None:
    for r in map(record_of, ask_mock(replace(FAST, ttft_s=0.002), reader)):
        stamps = [r.sent_ns, r.headers_ns, r.first_event_ns, r.first_token_ns, r.last_token_ns, r.end_ns]
        known = [s for s in stamps if s is not None]
        assert len(known) == 6
        assert known == sorted(known)
        assert (r.first_token_ns or 0) - (r.sent_ns or 0) >= 2_000_000


@pytest.mark.parametrize("reader", ALL)
def test_long_prompt_arrives_whole(reader: str) -> None:
    words = "river " * 40_000

    records = [record_of(e) for e in ask_mock(replace(FAST, prefix_caching=False), reader, text=words)]

    assert {(r.failure, r.prompt_tok) for r in records} == {(None, 40_000 + 7)}


@needs_linux
def test_each_read_of_an_audited_connection_has_its_lag() -> None:
    for exchange in ask_mock(replace(FAST, ttft_s=0.05), "audited"):
        lags = [
            (t, lag) for (t, _), lag in zip(exchange.chunks, exchange.kernel_lags_ns, strict=True) if lag is not None
        ]
        assert lags
        assert exchange.sent_ns is not None
        # Not before the request was sent: 1 ms is for the two clocks' reading.
        assert all(0 <= lag <= t - exchange.sent_ns + 1_000_000 for t, lag in lags)


@pytest.mark.parametrize("reader", ["own", "aiohttp"])
def test_no_other_reader_notes_lags(reader: str) -> None:
    assert [e.kernel_lags_ns for e in ask_mock(FAST, reader)] == [[], []]


def wait_for_stamps(server: socket.socket, client: socket.socket) -> None:
    """The kernel begins to stamp a little after the first socket has asked it to."""
    for _ in range(100_000):
        server.send(b"?")
        if kernel_stamp_ns(client.recvmsg(READ_BYTES, 64)[1]) is not None:
            return
    pytest.fail("no stamps")


@needs_linux
def test_stamp_of_a_read_is_that_of_its_newest_packet() -> None:
    with socket.socket() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client.connect(listener.getsockname())
        client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        server, _ = listener.accept()
        with server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wait_for_stamps(server, client)
            server.send(b"older")
            assert client.recv(READ_BYTES, socket.MSG_PEEK) == b"older"
            between_ns = time_ns()
            server.send(b"newer")
            while len(client.recv(READ_BYTES, socket.MSG_PEEK)) < 10:
                pass
            read, ancillary, _, _ = client.recvmsg(READ_BYTES, 64)

    assert read == b"oldernewer"
    assert between_ns <= (kernel_stamp_ns(ancillary) or 0) <= time_ns()


async def open_at(url: str, audit_every: int, n: int) -> list[type[AnyConnection]]:
    connector = Connector(endpoint_of(url), Meter(), audit_every=audit_every)
    kinds = [type(await connector.open()) for _ in range(n)]
    await connector.close()
    return kinds


@needs_linux
@pytest.mark.parametrize(
    ("audit_every", "audited"), [(0, [0, 0, 0, 0]), (1, [1, 1, 1, 1]), (2, [1, 0, 1, 0]), (3, [1, 0, 0, 1])]
)
def test_first_of_every_few_connections_is_audited(audit_every: int, audited: list[int]) -> None:
    async def work() -> list[type[AnyConnection]]:
        async with serving(b"", KEEP) as url:
            return await open_at(url, audit_every, 4)

    assert run(work) == [AuditedConnection if a else Connection for a in audited]


@pytest.mark.parametrize(
    ("name", "value"),
    [("sys", SimpleNamespace(platform="darwin")), ("SO_TIMESTAMPNS", 9999)],
    ids=["not Linux", "refused by the kernel"],
)
def test_without_stamps_an_audited_connection_is_a_plain_one(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(audited_module, name, value)

    async def work() -> list[type[AnyConnection]]:
        async with serving(b"", KEEP) as url:
            return await open_at(url, 1, 1)

    assert run(work) == [Connection]


@pytest.mark.parametrize("reader", ALL)
def test_tls_is_read_by_all_and_audited_by_none(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, authority = self_signed(tmp_path)
    with monkeypatch.context() as trusting:
        trusting.setenv("SSL_CERT_FILE", str(authority))
        exchanges = ask_mock(FAST, reader, tls=context)
    with pytest.raises(OSError, match="certificate"):
        ask_mock(FAST, reader, tls=context)

    assert [(record_of(e).failure, record_of(e).output_tok, e.kernel_lags_ns) for e in exchanges] == [
        (None, 12, [])
    ] * 2


ENDPOINT = endpoint_of("http://127.0.0.1:1/v1")


def test_unknown_backend_is_refused() -> None:
    with pytest.raises(InputError, match="backend 'curl' is not known") as refused:
        Connector(ENDPOINT, Meter(), backend="curl")

    assert refused.value.hint == "expected one of: own, aiohttp"


def test_missing_aiohttp_is_said_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "orchestrator.sweep.aiohttp_backend", raising=False)
    monkeypatch.setitem(sys.modules, "aiohttp", None)

    with pytest.raises(InputError, match="backend 'aiohttp' needs aiohttp") as refused:
        Connector(ENDPOINT, Meter(), backend="aiohttp")

    assert refused.value.hint == "pip install 'gate0[aiohttp]'"


def test_too_old_an_aiohttp_is_refused_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.sweep.aiohttp_backend.VERSION", "3.12.15")

    with pytest.raises(InputError, match=r"needs aiohttp 3\.13 or newer, found 3\.12\.15"):
        Connector(ENDPOINT, Meter(), backend="aiohttp")
