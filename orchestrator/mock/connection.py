"""The mock's side of HTTP/1.1: one client's connection, and what all connections have in common."""

from __future__ import annotations

import asyncio
import socket
import struct
from time import monotonic_ns
from typing import cast

import httptools

from orchestrator.mock.ask import Refused, read_ask
from orchestrator.mock.control import control_answer
from orchestrator.mock.engine import StepEngine
from orchestrator.mock.exposition import metrics_text
from orchestrator.mock.settings import Fault, Framing, MockSettings
from orchestrator.mock.stream import Stream
from orchestrator.mock.told import error_json

EARLY_FAULTS = {
    Fault.HTTP_400: 400,
    Fault.HTTP_404: 404,
    Fault.HTTP_429: 429,
    Fault.HTTP_500: 500,
    Fault.HTTP_503: 503,
}
RECEIVED_HEADER = b"X-Mock-Received-Ns"
OPEN_PATHS = frozenset({"/health", "/v1/models", "/metrics"})
GENERATING = frozenset({"/v1/chat/completions", "/v1/completions"})


class Site:
    """The engine, the connections that talk to it, and the end of both."""

    def __init__(self, settings: MockSettings) -> None:
        self.settings = settings
        self.engine = StepEngine(settings)
        self.connections: set[MockConnection] = set()
        self.is_dead = asyncio.Event()

    def arrive(self) -> bool:
        """A generation is asked for; False: this one killed the server, or restarted it."""
        self.engine.arrived += 1
        if self.engine.arrived == self.settings.dies_at:
            self.is_dead.set()  # the connections drop when the port is closed: who comes again is refused
            return False
        if self.engine.arrived == self.settings.restarts_at:
            self.drop_all()
            self.engine.restart()
            return False
        return True

    def drop_all(self) -> None:
        for connection in tuple(self.connections):
            connection.drop()


class MockConnection(asyncio.Protocol):
    """One client: parse, route, write. One request at a time, as HTTP/1.1 without pipelining."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._engine = site.engine
        self._settings = site.settings
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._stream: Stream | None = None
        self._received_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Zero: the bytes leave inside `write`, so a chunk's own stamp is taken just before the kernel gets it.
        # uvloop's transports are no subclass of asyncio's: nothing here can be checked with isinstance.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._site.connections.add(self)
        if self._settings.fault is Fault.REFUSE or self._site.is_dead.is_set():
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._site.connections.discard(self)
        if self._stream is not None:
            self._stream.is_gone = True

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.drop()

    def on_message_begin(self) -> None:
        self._path = b""
        self._body: list[bytes] = []
        self._key = b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            self._key = value.removeprefix(b"Bearer ")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        # Only the stamp now: one request's handling is not to count as the next one's time on the way.
        self._received_ns = monotonic_ns()
        self._engine.soon(self._route)

    def _route(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        path = self._path.decode("latin-1").split("?")[0]
        method = self._parser.get_method().decode()
        key = self._settings.api_key
        if key is not None and path not in OPEN_PATHS and self._key.decode("latin-1") != key.value:
            self.refuse(401, "Invalid API Key")
        elif (path in GENERATING or path == "/health") and self._engine.is_loading():
            self.refuse(503, "Loading model")
        elif method == "POST" and path in GENERATING:
            self._generate(path, b"".join(self._body))
        else:
            self._control(method, path)

    def begin(self, length: int | None) -> None:
        self.write(stream_head(self._settings, self._received_ns, length))

    def write(self, piece: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._settings.is_split:
            for i in range(len(piece)):
                self._transport.write(piece[i : i + 1])
        else:
            self._transport.write(piece)

    def finish(self) -> None:
        is_stream = self._stream is not None and self._stream.ask.is_streamed
        self._stream = None
        is_framed_by_close = is_stream and self._settings.framing is Framing.CLOSE
        if (self._settings.closes or self._settings.hangs_up or is_framed_by_close) and self._transport is not None:
            self._transport.close()

    def drop(self, *, is_reset: bool = False) -> None:
        if self._transport is None:
            return
        if is_reset:
            # Closing with unsent data thrown away is what the peer sees as a reset.
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.close()

    def refuse(self, status: int, message: str) -> None:
        self.reply_json(status, error_json(status, message, self._settings))

    def reply_json(self, status: int, body: bytes) -> None:
        self._reply(status, body, "application/json")

    def _reply(self, status: int, body: bytes, kind: str) -> None:
        closing = "Connection: close\r\n" if self._settings.closes else ""
        head = f"HTTP/1.1 {status} Mock\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{closing}\r\n"
        self.write(head.encode() + body)

    def _generate(self, path: str, body: bytes) -> None:
        settings = self._settings
        if not self._site.arrive():
            return
        try:
            ask = read_ask(path, body, settings)
        except Refused as refusal:
            self.refuse(refusal.status, refusal.message)
            return
        if self._engine.is_full:
            self._engine.counters.shed += 1
            self.refuse(settings.shed_status, "too many requests wait already")
            return
        stream = self._engine.submit(ask, self, received_ns=self._received_ns)
        if stream.fault in EARLY_FAULTS:
            self.refuse(EARLY_FAULTS[stream.fault], "refused as told")
            return
        self._stream = stream
        # With a Content-Length the head waits until all is known that the body will say.
        if ask.is_streamed and settings.framing is not Framing.LENGTH:
            self.begin(None)
        self._engine.queue(stream)

    def _control(self, method: str, path: str) -> None:
        if method == "GET" and path == "/metrics":
            self._reply(200, metrics_text(self._engine).encode(), "text/plain; version=0.0.4")
            return
        try:
            answer = control_answer(self._engine, method, path, b"".join(self._body))
        except Refused as refusal:
            self.refuse(refusal.status, refusal.message)
            return
        if answer is None:
            self.refuse(404, f"{method} {path}: not found")
        else:
            self.reply_json(200, answer)


def stream_head(settings: MockSettings, received_ns: int, length: int | None) -> bytes:
    """Headers of a stream; with stamps also when the whole request was there."""
    lines = [b"HTTP/1.1 %d Mock" % settings.ok_status, b"Cache-Control: no-cache"]
    if settings.content_type:
        lines.append(b"Content-Type: " + settings.content_type.encode())
    if settings.closes or settings.framing is Framing.CLOSE:
        lines.append(b"Connection: close")
    if settings.has_stamps:
        lines.append(b"%s: %d" % (RECEIVED_HEADER, received_ns))
    if length is not None:
        lines.append(b"Content-Length: %d" % length)
    elif settings.framing is Framing.CHUNKED:
        lines.append(b"Transfer-Encoding: chunked")
    return b"\r\n".join(lines) + b"\r\n\r\n"
