"""HTTP/1.1 for load: bytes out, bytes in, a stamp on each read.

Theory of operation. An engine step delivers one token to every stream at once, so whatever a client does per token
delays the stamp of the next stream's token: at 256 streams and 180 microseconds a token (httpx, measured) the last one
is stamped 46 ms late, more than a decode step. So `Connection.data_received` does three things only: it appends
`(monotonic_ns, bytes)`, lets the C parser look for the end of the message, and counts events for the progress line.
Headers, chunked framing, SSE and JSON are taken apart by `read_response` and `sweep.timing` when nothing is timed.

The request is one ready-made byte string. The transport's write buffer limit is zero, which makes uvloop hand the bytes
to the kernel inside `write` instead of at the end of the loop's turn: the stamp that follows is then the first byte's.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic_ns
from typing import cast
from urllib.parse import urlsplit

import httptools

from orchestrator.errors import InputError
from orchestrator.values import Secret

Chunk = tuple[int, bytes]
"""When a read returned (monotonic ns), and what it returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to connect, and what to say in the request line. `prefix` is the base URL's path, `/v1`."""

    host: str
    port: int
    is_tls: bool
    prefix: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_tls else 80) else f"{host}:{self.port}"


def endpoint_of(base_url: str) -> Endpoint:
    """Take `http://host:port/v1` apart.

    Raises:
        InputError: If it is not an http or https URL with a host.
    """
    parts = urlsplit(base_url)
    try:
        port = parts.port
    except ValueError as exc:
        raise InputError(f"url {base_url!r}: {exc}", hint="expected http://HOST:PORT/v1") from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InputError(f"url {base_url!r} is not an http or https address", hint="expected http://HOST:PORT/v1")
    is_tls = parts.scheme == "https"
    return Endpoint(
        host=parts.hostname, port=port or (443 if is_tls else 80), is_tls=is_tls, prefix=parts.path.rstrip("/")
    )


def post_bytes(endpoint: Endpoint, path: str, body: bytes, *, api_key: Secret | None = None) -> bytes:
    """A whole POST request, ready for the wire. `path` follows the endpoint's prefix (`/chat/completions`).

    Raises:
        InputError: If the API key holds a character that cannot stand in a header.
    """
    key = "" if api_key is None else api_key.value
    if not key.isascii() or any(c in key for c in "\r\n"):
        raise InputError(
            f"the API key `{api_key.name if api_key else ''}` holds a character that no header can carry",
            hint="look for a line break or a pasted quote in its value",
        )
    lines = [
        f"POST {endpoint.prefix}{path} HTTP/1.1",
        f"Host: {endpoint.authority}",
        "User-Agent: gate0",
        "Accept: text/event-stream, application/json",
        "Accept-Encoding: identity",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class End(StrEnum):
    """How an exchange ended. CLOSED: the server hung up; whether too early, the framing decides (`Response`)."""

    COMPLETE = "complete"
    CLOSED = "closed"
    BROKEN = "broken"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    CONNECT = "connect"


@dataclass(slots=True)
class Meter:
    """Counts for the progress line. `events` may be off by one at a split read: nothing is derived from it."""

    events: int = 0
    in_flight: int = 0
    done: int = 0
    failed: int = 0


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and the raw bytes that answered it; all times monotonic ns.

    Attributes:
        ready_ns: When it was free to go; later than `scheduled_ns` where a cap made it wait.
        kernel_lags_ns: Beside `chunks`, on an audited connection only: how long the bytes had lain in the kernel when
            the read returned. None where the kernel gave no stamp.
        response: The answer already taken apart, by a backend that hands out no raw bytes.
    """

    scheduled_ns: int
    ready_ns: int | None = None
    sent_ns: int | None = None
    end_ns: int | None = None
    end: End | None = None
    error: str | None = None
    chunks: list[Chunk] = field(default_factory=list)
    kernel_lags_ns: list[int | None] = field(default_factory=list)
    response: Response | None = None

    def forget(self) -> None:
        """As before it was sent."""
        self.sent_ns = self.end_ns = self.end = self.error = self.response = None
        self.chunks.clear()
        self.kernel_lags_ns.clear()


class Connection(asyncio.Protocol):
    """One keep-alive connection that carries one exchange at a time."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._finished: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_usable = False
        self._is_write_paused = False

    @property
    def is_usable(self) -> bool:
        """Open, and the last exchange left it in a state for another."""
        return self._is_usable and self._exchange is None

    def start(self, request: bytes, exchange: Exchange, *, timeout_s: float) -> asyncio.Future[None]:
        """Stamp the request, hand it to the kernel, and give what to wait for. The future never fails: see `end`.

        The stamp comes before the write: a long body takes several writes, and a process that is descheduled between
        the two then makes a latency too long, never too short.
        """
        assert self._transport is not None
        assert self.is_usable, "one exchange at a time"
        self._exchange = exchange
        self._finished = self._loop.create_future()
        self._timer = self._loop.call_later(timeout_s, self._finish, End.TIMEOUT)
        self._meter.in_flight += 1
        exchange.sent_ns = monotonic_ns()
        self._transport.write(request)
        return self._finished

    def cancel(self) -> None:
        """End a running exchange as CANCELLED and close."""
        self._finish(End.CANCELLED)
        self.close()

    def close(self) -> None:
        self._is_usable = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's: nothing here can be checked with isinstance.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._is_usable = True

    def data_received(self, data: bytes) -> None:
        now = monotonic_ns()
        exchange = self._exchange
        if exchange is None:  # nobody asked: a proxy's 408 before it hangs up
            self.close()
            return
        exchange.chunks.append((now, data))
        self._meter.events += data.count(b"data:")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as exc:
            exchange.error = f"not HTTP: {exc}"
            self._finish(End.BROKEN)
            self.close()

    def on_message_begin(self) -> None:
        if self._exchange is None:  # bytes behind the end of an answer: the connection is out of step
            self.close()

    def on_message_complete(self) -> None:
        """Called by the parser, inside `feed_data`."""
        if self._parser.get_status_code() < 200:
            return
        # A server that answered before it read the whole request has left the connection out of step.
        keep = self._parser.should_keep_alive() and not self._is_write_paused
        self._finish(End.COMPLETE)
        if not keep:
            self.close()

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_usable = False
        if self._exchange is not None and exc is not None:
            self._exchange.error = str(exc)
        self._finish(End.CLOSED)

    def _finish(self, end: End) -> None:
        exchange, finished = self._exchange, self._finished
        if exchange is None or finished is None:
            return
        self._exchange = self._finished = None
        if self._timer is not None:
            self._timer.cancel()
        exchange.end = end
        exchange.end_ns = exchange.chunks[-1][0] if end is End.COMPLETE else monotonic_ns()
        self._meter.in_flight -= 1
        self._meter.done += 1
        self._meter.failed += end is not End.COMPLETE or self._parser.get_status_code() != 200
        if not finished.done():
            finished.set_result(None)
        if end is End.TIMEOUT:
            self.close()


def connect_error(exc: OSError) -> OSError:
    """The same failure in the system's words: each event loop and library has its own for a refused connection."""
    cause: OSError = getattr(exc, "os_error", exc)  # aiohttp wraps it
    if isinstance(cause, ssl.SSLError | socket.gaierror) or not cause.errno:
        return cause
    return OSError(cause.errno, os.strerror(cause.errno))


async def open_connection(
    endpoint: Endpoint, meter: Meter, *, timeout_s: float, is_audited: bool = False
) -> Connection:
    """Connect (and shake hands, with TLS). Where the kernel gives no stamps, an audited one is a plain one.

    Raises:
        OSError: Refused, unreachable, name unknown, certificate refused.
        TimeoutError: Not within `timeout_s`.
    """
    context = ssl.create_default_context() if endpoint.is_tls else None
    async with asyncio.timeout(timeout_s):
        if is_audited:
            from orchestrator.sweep.audited import open_audited

            if (audited := await open_audited(endpoint, meter)) is not None:
                return audited
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(meter), endpoint.host, endpoint.port, ssl=context
        )
    return connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer taken apart: framing removed, each piece of the body with the stamp of the read that brought it.

    Attributes:
        status: 0 when not even a status line came.
        headers: Names in lower case.
        is_whole: The framing says that the body ended (or the server closed and that is the framing).
    """

    status: int
    headers: Mapping[str, str]
    headers_ns: int | None
    pieces: tuple[Chunk, ...]
    is_whole: bool

    @property
    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)


def read_response(chunks: Sequence[Chunk]) -> Response:
    """Take apart what one exchange read; bytes that are not HTTP end it as not whole."""
    reader = _Reader()
    for now, chunk in chunks:
        reader.now_ns = now
        try:
            reader.parser.feed_data(chunk)
        except httptools.HttpParserError:
            reader.is_broken = True
            break
    is_framed = "content-length" in reader.headers or "chunked" in reader.headers.get("transfer-encoding", "")
    is_whole = reader.is_done or (reader.headers_ns is not None and not is_framed and not reader.is_broken)
    return Response(
        status=reader.status,
        headers=reader.headers,
        headers_ns=reader.headers_ns,
        pieces=tuple(reader.pieces),
        is_whole=is_whole,
    )


def response_of(exchange: Exchange) -> Response:
    """The answer of an exchange, from whichever backend."""
    return exchange.response or read_response(exchange.chunks)


class _Reader:
    """The parser's callbacks for `read_response`.

    An interim answer (1xx) is forgotten when the next begins; bytes behind the end of the answer are not looked at.
    """

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.now_ns = 0
        self.is_broken = self.is_done = False
        self.on_message_begin()

    def on_message_begin(self) -> None:
        if self.is_done:
            return
        self.headers: dict[str, str] = {}
        self.headers_ns: int | None = None
        self.status = 0
        self.pieces: list[Chunk] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_done:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if not self.is_done:
            self.headers_ns = self.now_ns
            self.status = self.parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if not self.is_done:
            self.pieces.append((self.now_ns, body))

    def on_message_complete(self) -> None:
        self.is_done = self.status >= 200
