"""The timed part: c users against one server, closed loop or all at once.

Before the clock starts the bodies are bytes, the connections are open, and the garbage collector is frozen and off.
After it stops the raw exchanges are handed back; nothing is parsed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic_ns

from orchestrator.sweep.http1 import Connection, End, Endpoint, Exchange, Meter, open_connection

LAG_PERIOD_S = 0.02
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One repeat as it happened. `exchanges` in the order of the requests; times monotonic ns.

    Attributes:
        span_ns: First byte sent to last response ended. None when nothing was sent.
        lags_ns: How late this process woke from each of its regular short sleeps: the delay that a stamp may carry.
        cpu_s: Processor time of this process in the repeat.
    """

    exchanges: tuple[Exchange, ...]
    span_ns: tuple[int, int] | None
    lags_ns: tuple[int, ...]
    cpu_s: float


class Load:
    """Sends prepared requests to one server and stamps the answers.

    Args:
        request_timeout_s: Each request's own deadline, from its first byte.
    """

    def __init__(self, endpoint: Endpoint, *, request_timeout_s: float, meter: Meter | None = None) -> None:
        self._endpoint = endpoint
        self._timeout_s = request_timeout_s
        self._connections: set[Connection] = set()
        self._is_cancelled = False
        self.meter = meter or Meter()

    def cancel(self) -> None:
        """Stop sending and end what is in flight, now. A later `run` sends nothing."""
        self._is_cancelled = True
        for connection in tuple(self._connections):
            connection.cancel()

    @property
    def is_cancelled(self) -> bool:
        return self._is_cancelled

    async def run(self, requests: Sequence[bytes], *, concurrency: int) -> Repeat:
        """Keep `concurrency` requests in flight until all are answered; with as many requests as users: a batch.

        A failed request is an exchange with its `end`; it is not sent again, and its user takes the next one.
        """
        users = min(concurrency, len(requests))
        ready = await self._open(users)
        # What was never sent keeps scheduled_ns 0 and no end: the caller leaves it out.
        exchanges = [Exchange(scheduled_ns=0) for _ in requests]
        jobs = iter(zip(requests, exchanges, strict=True))
        lag = _LagMeter()
        with _quiet_collector():
            cpu_start = time.process_time()
            lag.start()
            start_ns = monotonic_ns()
            async with asyncio.TaskGroup() as group:
                for connection in ready:
                    group.create_task(self._user(jobs, connection, start_ns))
            lag.stop()
            cpu_s = time.process_time() - cpu_start
        self._close_all()
        return Repeat(exchanges=tuple(exchanges), span_ns=_span(exchanges), lags_ns=tuple(lag.lags_ns), cpu_s=cpu_s)

    async def _open(self, users: int) -> list[Connection | None]:
        """Connections for all users; None where it failed: that user tries again when its turn comes, on the record."""

        async def one(place: int) -> None:
            with contextlib.suppress(OSError):
                found[place] = await self._connect()

        found: list[Connection | None] = [None] * users
        async with asyncio.TaskGroup() as group:
            for place in range(users):
                group.create_task(one(place))
        return found

    async def _connect(self) -> Connection:
        connection = await open_connection(self._endpoint, self.meter, timeout_s=CONNECT_TIMEOUT_S)
        self._connections.add(connection)
        return connection

    async def _user(self, jobs: Iterator[tuple[bytes, Exchange]], connection: Connection | None, free_ns: int) -> None:
        for request, exchange in jobs:
            if self._is_cancelled:
                return
            exchange.scheduled_ns = free_ns
            if connection is None or not connection.is_usable:
                connection = await self._reconnect(connection, exchange)
            if connection is not None:
                await connection.start(request, exchange, timeout_s=self._timeout_s)
            free_ns = exchange.end_ns or monotonic_ns()

    async def _reconnect(self, old: Connection | None, exchange: Exchange) -> Connection | None:
        """A new connection; None, and a CONNECT failure in `exchange`, when there is none to be had."""
        if old is not None:
            self._connections.discard(old)
        try:
            connection = await self._connect()
        except OSError as exc:  # TimeoutError is one
            exchange.end, exchange.end_ns = End.CONNECT, monotonic_ns()
            exchange.error = str(exc) or f"no connection within {CONNECT_TIMEOUT_S:.0f} s"
            self.meter.done += 1
            self.meter.failed += 1
            return None
        if self._is_cancelled:
            connection.close()
            exchange.end, exchange.end_ns = End.CANCELLED, monotonic_ns()
            return None
        return connection

    def _close_all(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()


class _LagMeter:
    """Wakes every `LAG_PERIOD_S` and notes how late it was."""

    def __init__(self) -> None:
        self.lags_ns: list[int] = []
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._due_ns = 0

    def start(self) -> None:
        self._due_ns = monotonic_ns() + int(LAG_PERIOD_S * 1e9)
        self._handle = self._loop.call_later(LAG_PERIOD_S, self._wake)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _wake(self) -> None:
        self.lags_ns.append(max(0, monotonic_ns() - self._due_ns))
        self.start()


@contextlib.contextmanager
def _quiet_collector() -> Iterator[None]:
    """No garbage collection inside: a full one stops every stream's stamp for tens of ms."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def _span(exchanges: Sequence[Exchange]) -> tuple[int, int] | None:
    sent = [e.sent_ns for e in exchanges if e.sent_ns is not None]
    ended = [e.end_ns for e in exchanges if e.sent_ns is not None and e.end_ns is not None]
    return (min(sent), max(ended)) if sent and ended else None
