"""The same load through aiohttp: a second reader that has to agree with ours.

It is slower (its stamps are later by some ms with a hundred streams), but it shares no line of HTTP with `http1`: what
both say of a server is the server's. Where our reader meets a server or a proxy that it cannot read, it is the way
around.

aiohttp takes the framing off and keeps connections in a pool of its own. An `AiohttpConnection` is therefore a place
for one exchange at a time, not a socket; `AiohttpPool.open` puts one open connection into the pool for each. A
request's `sent_ns` is taken when aiohttp has its connection in hand, right before it writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from time import monotonic_ns
from types import SimpleNamespace

import aiohttp
from yarl import URL

from orchestrator.sweep.http1 import Chunk, End, Endpoint, Exchange, Meter, Response, connect_error

VERSION = aiohttp.__version__
IDLE_S = 75.0
NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)
"""Deadlines are ours: aiohttp's own default would end a request after 5 minutes."""


class AiohttpPool:
    """One session with all connections to one server; to be made inside a running loop."""

    def __init__(self, endpoint: Endpoint, meter: Meter) -> None:
        self._base = f"{'https' if endpoint.is_tls else 'http'}://{endpoint.authority}"
        self._meter = meter
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_create_end.append(_note_sent)
        tracing.on_connection_reuseconn.append(_note_sent)
        self._connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=IDLE_S, ssl=ssl.create_default_context() if endpoint.is_tls else True
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=NO_TIMEOUT,
            trace_configs=[tracing],
        )

    async def open(self, *, timeout_s: float) -> AiohttpConnection:
        """A place for exchanges, with a connection in the pool for it.

        Raises:
            OSError: Refused, unreachable, name unknown, certificate refused.
            TimeoutError: Not within `timeout_s`.
        """
        ask = aiohttp.ClientRequest("POST", URL(self._base), loop=asyncio.get_running_loop(), session=self._session)
        async with asyncio.timeout(timeout_s):
            connection = await self._connector.connect(ask, [], NO_TIMEOUT)
        connection.release()
        return AiohttpConnection(self._session, self._base, self._meter)

    async def close(self) -> None:
        await self._session.close()


async def _note_sent(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.sent_ns = monotonic_ns()


class AiohttpConnection:
    """One exchange at a time; the interface of `http1.Connection`."""

    def __init__(self, session: aiohttp.ClientSession, base: str, meter: Meter) -> None:
        self._session = session
        self._base = base
        self._meter = meter
        self._loop = asyncio.get_running_loop()
        self._exchange: Exchange | None = None
        self._finished: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_open = True
        self._forget()

    @property
    def is_usable(self) -> bool:
        """The last exchange left its connection in a state for another, and none runs."""
        return self._is_open and self._exchange is None

    def start(self, request: bytes, exchange: Exchange, *, timeout_s: float) -> asyncio.Future[None]:
        """Send a whole request as `http1.post_bytes` makes it. The future never fails: see `Exchange.end`."""
        assert self.is_usable, "one exchange at a time"
        self._exchange = exchange
        self._forget()
        self._finished = self._loop.create_future()
        self._timer = self._loop.call_later(timeout_s, self._stop, End.TIMEOUT)
        self._meter.in_flight += 1
        self._task = self._loop.create_task(self._run(request, exchange))
        return self._finished

    def cancel(self) -> None:
        """End a running exchange as CANCELLED and close."""
        self._stop(End.CANCELLED)

    def close(self) -> None:
        self._stop(End.CLOSED)

    def _forget(self) -> None:
        self._status = 0
        self._headers: dict[str, str] = {}
        self._headers_ns: int | None = None
        self._pieces: list[Chunk] = []

    def _stop(self, end: End, error: str | None = None) -> None:
        self._is_open = False
        self._finish(end, error)
        if self._task is not None:
            self._task.cancel()

    async def _run(self, request: bytes, exchange: Exchange) -> None:
        try:
            await self._ask(request, exchange)
            self._finish(End.COMPLETE)
        except aiohttp.ClientConnectorError as exc:
            self._finish(End.CONNECT, str(connect_error(exc)))
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError):
            self._finish(End.CLOSED)
        except aiohttp.ClientOSError as exc:
            self._finish(End.CLOSED, str(exc))
        except aiohttp.ClientError as exc:
            self._finish(End.BROKEN, f"not HTTP: {exc}")
        finally:
            self._finish(End.BROKEN)

    async def _ask(self, request: bytes, exchange: Exchange) -> None:
        target, headers, body = _parts(request)
        asking = self._session.post(
            URL(self._base + target, encoded=True),
            data=body,
            headers=headers,
            allow_redirects=False,
            trace_request_ctx=exchange,
        )
        async with asking as answer:
            self._headers_ns = monotonic_ns()
            self._status = answer.status
            self._headers = {name.lower(): value for name, value in answer.headers.items()}
            is_kept = self._headers.get("connection", "").lower() != "close"
            self._is_open = is_kept and answer.version is not None and answer.version >= aiohttp.HttpVersion11
            with self._watched(answer):
                async for piece in answer.content.iter_any():
                    self._note(piece)

    def _note(self, piece: bytes) -> None:
        if not piece:
            return
        self._pieces.append((monotonic_ns(), piece))
        self._meter.events += piece.count(b"data:")

    @contextlib.contextmanager
    def _watched(self, answer: aiohttp.ClientResponse) -> Iterator[None]:
        """Inside, framing that breaks ends the exchange as BROKEN.

        aiohttp (seen with 3.14) then closes the connection, but lets who reads the body wait for ever.
        """

        def lost(closed: asyncio.Future[None]) -> None:
            if not closed.cancelled():
                closed.exception()  # looked at, or asyncio complains
            if not answer.content.is_eof() and answer.content.exception() is None:
                with contextlib.suppress(RuntimeError):  # whoever still waits has read all that came
                    self._note(answer.content.read_nowait())
                self._stop(End.BROKEN, "not HTTP: the framing breaks in mid-answer")

        protocol = None if answer.connection is None else answer.connection.protocol
        closed = None if protocol is None else protocol.closed
        if closed is None:
            yield
            return
        closed.add_done_callback(lost)
        try:
            yield
        finally:
            closed.remove_done_callback(lost)

    def _finish(self, end: End, error: str | None = None) -> None:
        exchange, finished = self._exchange, self._finished
        if exchange is None or finished is None:
            return
        self._exchange = self._finished = None
        if self._timer is not None:
            self._timer.cancel()
        exchange.end, exchange.end_ns, exchange.error = end, monotonic_ns(), error
        exchange.response = Response(
            status=self._status,
            headers=self._headers,
            headers_ns=self._headers_ns,
            pieces=tuple(self._pieces),
            is_whole=end is End.COMPLETE,
        )
        self._is_open = self._is_open and end is End.COMPLETE
        self._meter.in_flight -= 1
        self._meter.done += 1
        self._meter.failed += end is not End.COMPLETE or self._status != 200
        if not finished.done():
            finished.set_result(None)


def _parts(request: bytes) -> tuple[str, dict[str, str], bytes]:
    """Target, headers (the length is aiohttp's to say) and body of a whole request."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    headers.pop("Content-Length", None)
    return first.split(" ")[1], headers, body
