"""The timed part: lanes of requests against one server, each sent when its discipline says.

Before the clock starts the bodies are bytes, the connections are open, and the garbage collector is frozen and off.
After it stops the raw exchanges stand in their shots; nothing is parsed here but the answers that a conversation's next
turn is made of.

A closed lane has users who go through its tracks one request at a time. An open lane starts each track at its own time
on one absolute clock: behind schedule it sends late, it never skips and never moves the schedule. With a cap the due
requests wait in the order they were due, and the record keeps both moments (`scheduled_ns`, `ready_ns`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic_ns

from orchestrator.sweep.connections import CONNECT_TIMEOUT_S, AnyConnection, Connector
from orchestrator.sweep.http1 import End, Endpoint, Exchange, Meter
from orchestrator.sweep.pool import Pool
from orchestrator.sweep.waits import Gate, Waits

LAG_PERIOD_S = 0.02
LAG_PERIOD_NS = round(LAG_PERIOD_S * 1e9)
LEAD_NS = 50_000_000
"""An open lane's connection is taken so long before its request is due."""
HANGUP_NS = 300_000_000
"""News that a connection was closed before the request comes within a round trip; what ends later ended the request."""


@dataclass(slots=True, eq=False)
class Shot:
    """One request. `request` None: it is made by `build` from the track's exchanges so far; where that gives None the
    track ends: a conversation whose answer did not come has no next turn.
    """

    exchange: Exchange
    request: bytes | None = None
    build: Callable[[Sequence[Exchange]], bytes | None] | None = None
    think_ns: int = 0


@dataclass(slots=True, eq=False)
class TrackRun:
    """Shots one after the other; `at_ns` after the start: when the first is due (open lanes)."""

    shots: Sequence[Shot]
    at_ns: int = 0


@dataclass(slots=True, eq=False)
class LaneRun:
    """Tracks under one discipline; see `spec.Lane`."""

    tracks: Sequence[TrackRun]
    users: int | None = None
    cap: int | None = None
    duration_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One phase as it happened; times monotonic ns.

    Attributes:
        span_ns: First byte sent to last response ended. None when nothing was sent.
        lags_ns: How late this process woke from each of its regular short sleeps: the delay that a stamp may carry.
        cpu_s: Processor time of this process in the phase.
        exchanges: In the order of the lanes' tracks; what was never sent has no `end`.
    """

    start_ns: int
    span_ns: tuple[int, int] | None
    lags_ns: tuple[int, ...]
    cpu_s: float
    exchanges: tuple[Exchange, ...] = ()


class Load:
    """Sends prepared requests to one server and stamps the answers.

    Args:
        request_timeout_s: Each request's own deadline, from its first byte.
        backend, audit_every: See `connections.Connector`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        request_timeout_s: float,
        meter: Meter | None = None,
        backend: str = "own",
        audit_every: int = 0,
    ) -> None:
        self._timeout_s = request_timeout_s
        self.meter = meter or Meter()
        self._connector = Connector(
            endpoint, self.meter, backend=backend, audit_every=audit_every, timeout_s=CONNECT_TIMEOUT_S
        )
        self._pool = Pool(self._connector)
        self._waits = Waits()

    def cancel(self) -> None:
        """Stop sending and end what is in flight, now. A later `run` sends nothing."""
        self._waits.cancel()
        self._pool.cancel()

    @property
    def is_cancelled(self) -> bool:
        return self._waits.is_cancelled

    @property
    def hangups(self) -> int:
        """Requests that had to be sent again because the server had closed a connection it had promised to keep."""
        return self._pool.hangups

    async def close(self) -> None:
        self._pool.close()
        await self._connector.close()

    async def run(self, requests: Sequence[bytes], *, concurrency: int) -> Outcome:
        """One closed lane: `concurrency` in flight until all are answered; with as many requests as users: a batch."""
        tracks = [TrackRun(shots=[Shot(exchange=Exchange(scheduled_ns=0), request=r)]) for r in requests]
        try:
            return await self.run_lanes([LaneRun(tracks=tracks, users=concurrency)])
        finally:
            await self.close()

    async def run_lanes(self, lanes: Sequence[LaneRun]) -> Outcome:
        """Run all lanes side by side until the last is done.

        A failed request is an exchange with its `end`; it is not sent again, and its track goes on with the next.
        """
        await self._pool.open(sum(_connections(lane) for lane in lanes))
        lag = _LagMeter()
        with _quiet_collector():
            cpu_start = time.process_time()
            lag.start()
            # The first arrivals of an open lane have their connections in time too.
            start_ns = monotonic_ns() + (LEAD_NS if any(lane.users is None for lane in lanes) else 0)
            async with asyncio.TaskGroup() as group:
                for lane in lanes:
                    run = _LaneRunner(lane, self._pool, self._waits, start_ns, self._timeout_s)
                    group.create_task(run.open_loop(group) if lane.users is None else run.closed_loop(group))
            lag.stop()
            cpu_s = time.process_time() - cpu_start
        exchanges = tuple(s.exchange for lane in lanes for t in lane.tracks for s in t.shots)
        return Outcome(
            start_ns=start_ns,
            span_ns=_span(exchanges),
            lags_ns=tuple(lag.lags_ns),
            cpu_s=cpu_s,
            exchanges=exchanges,
        )


def _connections(lane: LaneRun) -> int:
    """How many to open before the clock starts."""
    if lane.users is not None:
        return min(lane.users, len(lane.tracks))
    # An open lane's are made shortly before they are due: servers with a thread for each connection (llama-server) let
    # requests wait while idle ones hold their threads.
    return 0


class _LaneRunner:
    """One lane while it runs."""

    def __init__(self, lane: LaneRun, pool: Pool, waits: Waits, start_ns: int, timeout_s: float) -> None:
        self._lane = lane
        self._pool = pool
        self._waits = waits
        self._start_ns = start_ns
        self._timeout_s = timeout_s
        self._end_ns = None if lane.duration_ns is None else start_ns + lane.duration_ns
        self._gate = None if lane.cap is None else Gate(lane.cap, waits)

    async def closed_loop(self, group: asyncio.TaskGroup) -> None:
        tracks = iter(self._lane.tracks)
        for _ in range(min(self._lane.users or 1, len(self._lane.tracks))):
            group.create_task(self._user(tracks))

    async def _user(self, tracks: Iterator[TrackRun]) -> None:
        free_ns = self._start_ns
        await self._waits.until(free_ns)
        for track in tracks:
            if self._waits.is_cancelled or self._is_over(free_ns):
                return
            free_ns = await self._track(track, free_ns)

    async def open_loop(self, group: asyncio.TaskGroup) -> None:
        for track in sorted(self._lane.tracks, key=lambda t: t.at_ns):
            due_ns = self._start_ns + track.at_ns
            await self._waits.until(due_ns - LEAD_NS)
            if self._waits.is_cancelled or self._is_over(due_ns):
                return
            group.create_task(self._start(track, due_ns))

    async def _start(self, track: TrackRun, due_ns: int) -> None:
        # The connection is there before the request is due; below a cap only where a place will be.
        is_expected = self._gate is not None and self._gate.expect()
        held = await self._pool.take() if self._gate is None or is_expected else None
        await self._waits.until(due_ns)
        if self._gate is not None and is_expected:
            self._gate.arrive()
        await self._track(track, due_ns, held)

    async def _track(self, track: TrackRun, due_ns: int, held: AnyConnection | None = None) -> int:
        """All shots of a track; returns when it was free again."""
        past: list[Exchange] = []
        for shot in track.shots:
            due_ns += shot.think_ns
            if shot.think_ns and self._is_over(due_ns):
                break
            request = shot.request if shot.build is None else shot.build(past)
            if request is None:
                break
            if shot.think_ns:
                held = await self._think(due_ns)
            if self._waits.is_cancelled:
                break
            exchange = shot.exchange
            exchange.scheduled_ns = exchange.ready_ns = due_ns
            await self._fire(request, exchange, held)
            held = None
            past.append(exchange)
            due_ns = exchange.end_ns or monotonic_ns()
        if held is not None:
            self._pool.give_back(held)
        return due_ns

    async def _think(self, due_ns: int) -> AnyConnection | None:
        """Wait; the connection of before may be too old by then, so there is one when the request is due."""
        await self._waits.until(due_ns - LEAD_NS)
        held = None if self._waits.is_cancelled else await self._pool.take()
        await self._waits.until(due_ns)
        return held

    async def _fire(self, request: bytes, exchange: Exchange, held: AnyConnection | None) -> None:
        if self._gate is not None:
            if held is not None and not self._gate.is_open:
                self._pool.give_back(held)
                held = None
            if await self._gate.enter(exchange.scheduled_ns):
                exchange.ready_ns = monotonic_ns()
        try:
            if self._waits.is_cancelled:
                return
            connection = held if held is not None and held.is_usable else self._pool.take_ready()
            if await self._send(request, exchange, connection) and not self._pool.is_cancelled:
                exchange.forget()
                await self._send(request, exchange, None)
        finally:
            if self._gate is not None:
                self._gate.leave()

    async def _send(self, request: bytes, exchange: Exchange, connection: AnyConnection | None) -> bool:
        """One sending, on a new connection without one; True when it is to be sent again.

        llama-server promises to keep a connection and then closes it. A used connection that ends at once, without a
        byte of an answer, has not taken the request (RFC 9112, 9.3.1): it goes out once more, on a new one and with new
        stamps; `ready_ns` stays, so the delay is on the record as lateness.
        """
        if connection is None:
            connection = await self._pool.connect_for(exchange)
        if connection is None:
            return False
        if self._pool.is_cancelled:
            self._pool.give_back(connection)
            return False
        is_used = self._pool.is_used(connection)
        await connection.start(request, exchange, timeout_s=self._timeout_s)
        self._pool.give_back(connection)
        if not (is_used and _is_hangup(exchange)):
            return False
        self._pool.note_hangup()
        return True

    def _is_over(self, due_ns: int) -> bool:
        return self._end_ns is not None and due_ns >= self._end_ns


def _is_hangup(exchange: Exchange) -> bool:
    """It ended at once, without a byte of an answer."""
    is_answered = bool(exchange.chunks) or (exchange.response is not None and exchange.response.status != 0)
    if exchange.end is not End.CLOSED or is_answered or exchange.sent_ns is None or exchange.end_ns is None:
        return False
    return exchange.end_ns - exchange.sent_ns < HANGUP_NS


class _LagMeter:
    """Wakes every `LAG_PERIOD_S` and notes how late it was.

    Of a stall that swallowed several wakes each is noted with its own lateness: noted once, the longest stalls would
    weigh least in a percentile.
    """

    def __init__(self) -> None:
        self.lags_ns: list[int] = []
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._due_ns = 0

    def start(self) -> None:
        self._due_ns = monotonic_ns() + LAG_PERIOD_NS
        self._handle = self._loop.call_later(LAG_PERIOD_S, self._wake)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _wake(self) -> None:
        self.lags_ns += range(max(0, monotonic_ns() - self._due_ns), -1, -LAG_PERIOD_NS)
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
