"""The three readers of the wire, and a server that says what it is told, for the tests of both."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import pytest

from orchestrator.sweep.child import new_loop
from orchestrator.sweep.connections import AnyConnection, Connector
from orchestrator.sweep.http1 import Meter, endpoint_of

READERS: dict[str, dict[str, Any]] = {"own": {}, "audited": {"audit_every": 1}, "aiohttp": {"backend": "aiohttp"}}
ALL = tuple(READERS)
OURS = ("own", "audited")
LONG_S = 20.0
KEEP, CLOSE, RESET = "keep", "close", "reset"

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's receive stamps are Linux's")


T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def awaited() -> T:
        return await work()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(awaited())


@contextlib.asynccontextmanager
async def connected(reader: str, url: str) -> AsyncIterator[tuple[Connector, AnyConnection]]:
    connector = Connector(endpoint_of(url), Meter(), **READERS[reader])
    try:
        yield connector, await connector.open()
    finally:
        await connector.close()


@contextlib.asynccontextmanager
async def serving(said: bytes, then: str) -> AsyncIterator[str]:
    """A server that says the same to everyone whose request has come in whole; its URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(said)
            await writer.drain()
            if then == CLOSE:
                writer.close()
            elif then == RESET:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            else:
                await reader.read()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
