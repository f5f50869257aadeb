"""Connections kept open between requests: the last used on top, none that may be closed under a request."""

from __future__ import annotations

import asyncio
import contextlib
import os
from time import monotonic_ns

from orchestrator.sweep.connections import CONNECT_TIMEOUT_S, AnyConnection, Connector
from orchestrator.sweep.http1 import End, Exchange

MAX_IDLE_NS = 3_000_000_000
"""Servers hang up on idle connections, uvicorn after 5 s: an older one may be closed under the request."""


class Pool:
    """Open connections, the last used on top.

    `hangups`: requests that met a connection which the server had closed without a word; after the first, none is used
    twice.
    """

    def __init__(self, connector: Connector) -> None:
        self.is_cancelled = False
        self.hangups = 0
        self._used: set[AnyConnection] = set()
        self._connector = connector
        self._all: set[AnyConnection] = set()
        self._free: list[tuple[AnyConnection, int]] = []

    async def open(self, n: int) -> None:
        """Have `n` fresh connections; where one fails, its request tries again when its turn comes, on the record."""

        async def one() -> None:
            with contextlib.suppress(OSError):
                self.give_back(await self._connect())

        self._drop_idle()
        async with asyncio.TaskGroup() as group:
            for _ in range(max(0, n - len(self._free))):
                group.create_task(one())

    async def take(self) -> AnyConnection | None:
        """A fresh one; None when there is none to be had."""
        if (ready := self.take_ready()) is not None:
            return ready
        try:
            return await self._connect()
        except OSError:
            return None

    def take_ready(self) -> AnyConnection | None:
        """One that is open and was not idle for long; None: there is none."""
        oldest_ns = monotonic_ns() - MAX_IDLE_NS
        while self._free:
            connection, since_ns = self._free.pop()
            is_worn = bool(self.hangups) and connection in self._used
            if connection.is_usable and since_ns > oldest_ns and not is_worn:
                return connection
            self._drop(connection)
        return None

    async def connect_for(self, exchange: Exchange) -> AnyConnection | None:
        """A new one; None, and a CONNECT failure in `exchange`, when there is none to be had."""
        try:
            return await self._connect()
        except OSError as exc:  # TimeoutError is one
            exchange.end, exchange.end_ns = End.CONNECT, monotonic_ns()
            exchange.error = _words(exc)
            self._connector.meter.done += 1
            self._connector.meter.failed += 1
            return None

    def is_used(self, connection: AnyConnection) -> bool:
        """It has carried a request before; from now on it has."""
        is_used = connection in self._used
        self._used.add(connection)
        return is_used

    def note_hangup(self) -> None:
        self.hangups += 1
        self._connector.meter.done -= 1
        self._connector.meter.failed -= 1

    def give_back(self, connection: AnyConnection) -> None:
        if connection.is_usable and not (self.hangups and connection in self._used):
            self._free.append((connection, monotonic_ns()))
        else:
            self._drop(connection)

    def cancel(self) -> None:
        self.is_cancelled = True
        for connection in tuple(self._all):
            connection.cancel()

    def close(self) -> None:
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._free.clear()

    async def _connect(self) -> AnyConnection:
        connection = await self._connector.open()
        self._all.add(connection)
        return connection

    def _drop_idle(self) -> None:
        free, oldest_ns = self._free, monotonic_ns() - MAX_IDLE_NS
        self._free = [(c, t) for c, t in free if c.is_usable and t > oldest_ns]
        kept = {id(c) for c, _ in self._free}
        for connection, _ in free:
            if id(connection) not in kept:
                self._drop(connection)

    def _drop(self, connection: AnyConnection) -> None:
        self._all.discard(connection)
        self._used.discard(connection)
        connection.close()


def _words(exc: OSError) -> str:
    """The system's own words: each backend wraps them in other ones."""
    if isinstance(exc, ConnectionError) and exc.errno is not None:
        return os.strerror(exc.errno)
    return str(exc) or f"no connection within {CONNECT_TIMEOUT_S:.0f} s"
