"""The mock as an HTTP server: in this process (`MockServer`), or in its own (`python -m orchestrator.mock`)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from types import TracebackType
from typing import Self, cast

import httptools

from orchestrator.errors import BoxError
from orchestrator.mock.ask import Refused, read_ask
from orchestrator.mock.control import control_answer
from orchestrator.mock.counters import Counters, Truth
from orchestrator.mock.engine import StepEngine, Stream
from orchestrator.mock.exposition import metrics_text
from orchestrator.mock.settings import Fault, Framing, MockSettings
from orchestrator.mock.told import error_json

START_TIMEOUT_S = 10.0
BACKLOG = 1024
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
        self._loop = asyncio.get_running_loop()
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
        # Only the stamp now: the answering comes when all sockets that are ready have been read, so that one request's
        # handling is not counted as the next one's time on the way.
        self._received_ns = monotonic_ns()
        self._loop.call_soon(self._route)

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


def new_loop() -> asyncio.AbstractEventLoop:
    """A uvloop where there is one."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def serve(
    settings: MockSettings, host: str = "127.0.0.1", port: int = 0, *, on_ready: Callable[[str], None] = print
) -> None:
    """Answer until the process is told to stop (Ctrl-C), or until `dies_at`.

    `on_ready` gets the base URL once the port is its own.

    Raises:
        BoxError: If the address cannot be listened on.
    """
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(settings, host, port, on_ready=lambda url, _: on_ready(url), stop=asyncio.Event()))


async def _serve(
    settings: MockSettings,
    host: str,
    port: int,
    *,
    on_ready: Callable[[str, StepEngine], None],
    stop: asyncio.Event,
    tls: ssl.SSLContext | None = None,
) -> None:
    loop = asyncio.get_running_loop()
    site = Site(settings)
    listener = _bound(host, port)
    scheme = "http" if tls is None else "https"
    url = f"{scheme}://{host}:{listener.getsockname()[1]}/v1"
    with contextlib.closing(listener):
        if settings.listens_after_s:
            # Bound, but not listened on: the kernel refuses, as where a server still starts.
            on_ready(url, site.engine)
            await _first_of(stop, timeout_s=settings.listens_after_s)
        server = await loop.create_server(lambda: MockConnection(site), sock=listener, backlog=BACKLOG, ssl=tls)
        try:
            if not settings.listens_after_s:
                on_ready(url, site.engine)
            await _first_of(stop, site.is_dead)
        finally:
            site.engine.stop()
            server.close()
            listener.close()
            await asyncio.sleep(0)  # the loop closes what it listened on in its next turn
            site.drop_all()


def _bound(host: str, port: int) -> socket.socket:
    """
    Raises:
        BoxError: The address is taken, or none of this machine's.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with contextlib.ExitStack() as on_failure:
            listener = on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            on_failure.pop_all()
    except (OSError, OverflowError) as exc:
        raise BoxError(f"the mock cannot listen on {host}:{port}: {exc}", hint="choose another --port") from exc
    return listener


async def _first_of(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    _, pending = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()


class MockServer:
    """The mock in a thread of this process: `with MockServer(MockSettings()) as server: server.base_url`.

    Args:
        tls: A server context: the mock then speaks HTTPS.
    """

    def __init__(self, settings: MockSettings | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.settings = settings or MockSettings()
        self._tls = tls
        self.base_url = ""
        self._engine: StepEngine | None = None
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._run, name="gate0-mock", daemon=True)

    @property
    def counters(self) -> Counters:
        """What the server itself counted, since its last restart."""
        assert self._engine is not None
        return self._engine.counters

    @property
    def truths(self) -> tuple[Truth, ...]:
        """Of every stream that had a token and ended, in the order of their ends."""
        assert self._engine is not None
        return tuple(self._engine.truths)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise BoxError(f"the mock did not listen within {START_TIMEOUT_S:.0f} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # One that was told to die has closed its loop by itself.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_TIMEOUT_S)

    def _run(self) -> None:
        def note(url: str, engine: StepEngine) -> None:
            self.base_url, self._engine = url, engine
            self._ready.set()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(_serve(self.settings, "127.0.0.1", 0, on_ready=note, stop=self._stop, tls=self._tls))
