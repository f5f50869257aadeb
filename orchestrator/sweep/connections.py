"""Where the load gets its connections from: our own reader, now and then an audited one, or aiohttp."""

from __future__ import annotations

import asyncio
from typing import Protocol
from weakref import WeakSet

from orchestrator.errors import InputError
from orchestrator.sweep.http1 import Endpoint, Exchange, Meter, open_connection

CONNECT_TIMEOUT_S = 10.0
BACKENDS = ("own",)


class AnyConnection(Protocol):
    """One connection that carries one exchange at a time."""

    @property
    def is_usable(self) -> bool: ...

    def start(self, request: bytes, exchange: Exchange, *, timeout_s: float) -> asyncio.Future[None]: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class Connector:
    """Opens connections to one server.

    Args:
        backend: One of `BACKENDS`.
        audit_every: Of so many connections the first reads the kernel's receive stamps too; 0: none does.
        timeout_s: For one connection, TLS handshake included.

    Raises:
        InputError: If nobody knows the backend, or its library is not installed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        meter: Meter,
        *,
        backend: str = "own",
        audit_every: int = 0,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        if backend not in BACKENDS:
            raise InputError(f"backend {backend!r} is not known", hint=f"expected one of: {', '.join(BACKENDS)}")
        self.meter = meter
        self._endpoint = endpoint
        self._audit_every = audit_every
        self._timeout_s = timeout_s
        self._opened = 0
        self._connections: WeakSet[AnyConnection] = WeakSet()

    async def open(self) -> AnyConnection:
        """A connection that is ready for its first request.

        Raises:
            OSError: Refused, unreachable, name unknown, certificate refused, not within the timeout.
        """
        self._opened += 1
        connection = await open_connection(self._endpoint, self.meter, timeout_s=self._timeout_s)
        self._connections.add(connection)
        return connection

    async def close(self) -> None:
        """Close all that was opened; what is in flight ends as CLOSED."""
        for connection in tuple(self._connections):
            connection.close()
