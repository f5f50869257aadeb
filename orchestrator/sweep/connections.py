"""Where the load gets its connections from: our own reader, now and then an audited one, or aiohttp."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from orchestrator.errors import InputError
from orchestrator.sweep.http1 import Endpoint, Exchange, Meter, connect_error, open_connection

if TYPE_CHECKING:
    from orchestrator.sweep.aiohttp_backend import AiohttpPool

CONNECT_TIMEOUT_S = 10.0
BACKENDS = ("own", "aiohttp")
OLDEST_AIOHTTP = (3, 13)
"""Older ones do not say when a connection is lost."""


class AnyConnection(Protocol):
    """One connection that carries one exchange at a time."""

    @property
    def is_usable(self) -> bool: ...

    def start(self, request: bytes, exchange: Exchange, *, timeout_s: float) -> asyncio.Future[None]: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class Connector:
    """Opens connections to one server. May be made before the event loop runs, and used again after `close`.

    Args:
        backend: `own` (`http1`) or `aiohttp`, a slower second reader.
        audit_every: Of so many own connections the first reads the kernel's receive stamps too; 0: none does.
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
        self._new_pool = _aiohttp_pool() if backend == "aiohttp" else None
        self._pool: AiohttpPool | None = None
        self._audit_every = audit_every
        self._timeout_s = timeout_s
        self._opened = 0
        self._connections: WeakSet[AnyConnection] = WeakSet()

    async def open(self) -> AnyConnection:
        """A connection that is ready for its first request.

        Raises:
            OSError: Refused, unreachable, name unknown, certificate refused, not within the timeout.
        """
        try:
            connection = await (self._open_own() if self._new_pool is None else self._open_pooled(self._new_pool))
        except OSError as exc:
            raise connect_error(exc) from exc
        self._connections.add(connection)
        return connection

    async def close(self) -> None:
        """Close all that was opened; what is in flight ends as CLOSED."""
        for connection in tuple(self._connections):
            connection.close()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _open_own(self) -> AnyConnection:
        is_audited = self._audit_every > 0 and self._opened % self._audit_every == 0
        self._opened += 1
        return await open_connection(self._endpoint, self.meter, timeout_s=self._timeout_s, is_audited=is_audited)

    async def _open_pooled(self, new_pool: type[AiohttpPool]) -> AnyConnection:
        if self._pool is None:
            self._pool = new_pool(self._endpoint, self.meter)
        return await self._pool.open(timeout_s=self._timeout_s)


def _aiohttp_pool() -> type[AiohttpPool]:
    hint = "pip install 'gate0[aiohttp]'"
    try:
        from orchestrator.sweep.aiohttp_backend import VERSION, AiohttpPool
    except ModuleNotFoundError as exc:
        raise InputError(f"backend 'aiohttp' needs {exc.name}", hint=hint) from exc
    if tuple(int(part) for part in VERSION.split(".")[:2]) < OLDEST_AIOHTTP:
        raise InputError(f"backend 'aiohttp' needs aiohttp 3.13 or newer, found {VERSION}", hint=hint)
    return AiohttpPool
