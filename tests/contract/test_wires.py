"""Three readers of one wire against bytes of every kind: what one makes of them, all make."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from orchestrator.sweep.connections import Connector
from orchestrator.sweep.http1 import End, Exchange, Meter, endpoint_of, post_bytes, response_of
from tests.contract.readers import ALL, CLOSE, KEEP, LONG_S, OURS, READERS, RESET, connected, run, serving

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
FIVE = HEAD + b"Content-Length: 5\r\n\r\n"


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Bytes of a server and what it does then, and what a reader must make of them.

    `is_usable` None: not said, for who takes a connection from a pool does not know.
    """

    said: bytes
    then: str = KEEP
    ends: tuple[End, ...] = (End.COMPLETE,)
    status: int = 200
    body: bytes = b"hello"
    is_whole: bool = True
    is_usable: bool | None = None
    readers: tuple[str, ...] = ALL


CUT = (End.CLOSED,)
TO_THE_END = (End.CLOSED, End.COMPLETE)
BAD = (End.BROKEN,)
WIRES = {
    "whole": Wire(said=CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", is_usable=True),
    "of known length": Wire(said=FIVE + b"hello", is_usable=True),
    "told to close": Wire(said=HEAD + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", is_usable=False),
    "HTTP/1.0": Wire(said=b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", is_usable=False),
    "until it closes": Wire(said=HEAD + b"\r\nhello", then=CLOSE, ends=TO_THE_END),
    "cut between chunks": Wire(said=CHUNKED + b"5\r\nhello\r\n", then=CLOSE, ends=CUT, is_whole=False, is_usable=False),
    "cut in a chunk": Wire(
        said=CHUNKED + b"5\r\nhe", then=CLOSE, ends=CUT, body=b"he", is_whole=False, is_usable=False
    ),
    "reset in a chunk": Wire(
        said=CHUNKED + b"5\r\nhe", then=RESET, ends=CUT, body=b"he", is_whole=False, is_usable=False
    ),
    "too short": Wire(said=FIVE + b"hell", then=CLOSE, ends=CUT, body=b"hell", is_whole=False, is_usable=False),
    "half a head": Wire(
        said=b"HTTP/1.1 200 OK\r\nContent-Ty", then=CLOSE, ends=CUT, status=0, body=b"", is_whole=False
    ),
    "nothing": Wire(said=b"", then=CLOSE, ends=CUT, status=0, body=b"", is_whole=False, is_usable=False),
    "nothing, reset": Wire(said=b"", then=RESET, ends=CUT, status=0, body=b"", is_whole=False, is_usable=False),
    "not HTTP": Wire(said=b"SSH-2.0-Mock\r\n", ends=BAD, status=0, body=b"", is_whole=False, is_usable=False),
    "bad header": Wire(
        said=b"HTTP/1.1 200 OK\r\nCont ent: x\r\nContent-Length: 2\r\n\r\nok",
        ends=BAD,
        status=0,
        body=b"",
        is_whole=False,
        is_usable=False,
    ),
    "bad chunk": Wire(said=CHUNKED + b"5\r\nhello\r\nzz\r\n", ends=BAD, is_whole=False, is_usable=False, readers=OURS),
    "more behind the end": Wire(said=FIVE + b"helloHTTP/1.1 200 OK\r\n", is_usable=False, readers=OURS),
    "more behind the end, pooled": Wire(said=FIVE + b"helloHTTP/1.1 200 OK\r\n"),
    "interim": Wire(said=b"HTTP/1.1 100 Continue\r\n\r\n" + FIVE + b"hello", is_usable=True),
    "no content": Wire(said=b"HTTP/1.1 204 No Content\r\n\r\n", status=204, body=b"", is_usable=True),
    "redirect": Wire(
        said=b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", status=302, body=b""
    ),
    "said to be compressed": Wire(said=HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"),
    "hangs": Wire(said=CHUNKED, ends=(End.TIMEOUT,), body=b"", is_whole=False, is_usable=False),
}


@pytest.mark.parametrize(("name", "reader"), [(n, r) for n, w in WIRES.items() for r in w.readers])
def test_every_reader_makes_the_same_of_the_bytes(name: str, reader: str) -> None:
    wire = WIRES[name]

    async def work() -> tuple[Exchange, bool, Meter]:
        exchange = Exchange(scheduled_ns=0)
        timeout_s = 0.2 if End.TIMEOUT in wire.ends else LONG_S
        async with serving(wire.said, wire.then) as url, connected(reader, url) as (connector, connection):
            await connection.start(post_bytes(endpoint_of(url), "/x", b"{}"), exchange, timeout_s=timeout_s)
            return exchange, connection.is_usable, connector.meter

    exchange, is_usable, meter = run(work)

    response = response_of(exchange)
    assert (exchange.end in wire.ends, response.status, response.body) == (True, wire.status, wire.body), exchange
    assert response.is_whole is wire.is_whole
    assert wire.is_usable in {None, is_usable}
    assert (meter.in_flight, meter.done) == (0, 1)


@pytest.mark.parametrize("reader", ALL)
def test_cancel_ends_at_once_what_runs_and_what_has_come_stays(reader: str) -> None:
    async def work() -> tuple[Exchange, bool, Meter]:
        exchange = Exchange(scheduled_ns=0)
        async with serving(CHUNKED + b"5\r\ndata:\r\n", KEEP) as url, connected(reader, url) as (connector, connection):
            done = connection.start(post_bytes(endpoint_of(url), "/x", b"{}"), exchange, timeout_s=LONG_S)
            while not connector.meter.events:
                await asyncio.sleep(0)
            connection.cancel()
            await done
            connection.cancel()
            return exchange, connection.is_usable, connector.meter

    exchange, is_usable, meter = run(work)

    assert (exchange.end, is_usable) == (End.CANCELLED, False)
    response = response_of(exchange)
    assert (response.status, response.body, response.is_whole) == (200, b"data:", False)
    assert (meter.in_flight, meter.done, meter.failed) == (0, 1, 1)


@pytest.mark.parametrize("reader", ALL)
def test_nobody_listening_is_said_in_the_systems_words(reader: str) -> None:
    async def work(port: int) -> None:
        async with connected(reader, f"http://127.0.0.1:{port}/v1"):
            pass

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError) as refused:
            run(lambda: work(unused.getsockname()[1]))

    assert str(refused.value) == f"[Errno {errno.ECONNREFUSED}] Connection refused"


@pytest.mark.parametrize("reader", ALL)
def test_connection_can_be_had_again_after_close(reader: str) -> None:
    async def work() -> list[End | None]:
        ends = []
        async with serving(FIVE + b"hello", KEEP) as url:
            connector = Connector(endpoint_of(url), Meter(), **READERS[reader])
            for _ in range(2):
                exchange, connection = Exchange(scheduled_ns=0), await connector.open()
                await connection.start(post_bytes(endpoint_of(url), "/x", b"{}"), exchange, timeout_s=LONG_S)
                await connector.close()
                assert not connection.is_usable
                ends.append(exchange.end)
        return ends

    assert run(work) == [End.COMPLETE] * 2


@pytest.mark.parametrize("reader", ALL)
def test_closed_connector_ends_what_is_in_flight(reader: str) -> None:
    async def work() -> Exchange:
        exchange = Exchange(scheduled_ns=0)
        async with serving(CHUNKED, KEEP) as url:
            connector = Connector(endpoint_of(url), Meter(), **READERS[reader])
            connection = await connector.open()
            done = connection.start(post_bytes(endpoint_of(url), "/x", b"{}"), exchange, timeout_s=LONG_S)
            await connector.close()
            await done
        return exchange

    assert run(work).end is End.CLOSED


BIG = b"x" * 8_000_000


@pytest.mark.parametrize("reader", ALL)
def test_request_longer_than_the_sockets_hold_is_sent_in_parts(reader: str) -> None:
    received = bytearray()

    async def work() -> Exchange:
        loop, exchange = asyncio.get_running_loop(), Exchange(scheduled_ns=0)
        with listening() as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            async with connected(reader, url) as (_, connection):
                server, _ = await loop.sock_accept(listener)
                request = post_bytes(endpoint_of(url), "/x", BIG)
                done = connection.start(request, exchange, timeout_s=LONG_S)
                with server:
                    while not received.endswith(BIG):
                        received.extend(await loop.sock_recv(server, 1_000_000))
                    await loop.sock_sendall(server, FIVE + b"hello")
                    await done
                    assert connection.is_usable
        return exchange

    exchange = run(work)

    assert (exchange.end, response_of(exchange).body) == (End.COMPLETE, b"hello")
    assert bytes(received.partition(b"\r\n\r\n")[2]) == BIG


@pytest.mark.parametrize("reader", OURS)
def test_answer_before_the_request_was_read_leaves_no_usable_connection(reader: str) -> None:
    async def work() -> tuple[Exchange, bool]:
        loop, exchange = asyncio.get_running_loop(), Exchange(scheduled_ns=0)
        with listening() as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            async with connected(reader, url) as (_, connection):
                server, _ = await loop.sock_accept(listener)
                with server:
                    done = connection.start(post_bytes(endpoint_of(url), "/x", BIG), exchange, timeout_s=LONG_S)
                    await loop.sock_sendall(server, b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
                    await done
                    return exchange, connection.is_usable

    exchange, is_usable = run(work)

    assert (exchange.end, response_of(exchange).status, is_usable) == (End.COMPLETE, 413, False)


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    """A listener whose connections hold little that was not read."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        listener.setblocking(False)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener
