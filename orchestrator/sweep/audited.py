"""A connection whose reads carry the kernel's receive stamp: the measured error of our own stamps.

Theory of operation. `SO_TIMESTAMPNS` makes Linux note the wall clock when a packet arrives; `recvmsg` hands the note
out beside the bytes. The time from there to the return of the read is what the process, its event loop and the other
streams' reads have added to the stamp in `Exchange.chunks`; it goes into `Exchange.kernel_lags_ns`. Such a read costs a
few microseconds more than a plain one, so only some of a load's connections are audited.

TCP merges packets that wait, and what the kernel then tells is the stamp of the newest packet of the last buffer that
the read touched (seen: two writes 50 ms apart, one byte of the first read: the second's stamp). A lag is so never
negative and never too long; for the older tokens of a read that brought several it is too short. Wall clock and
monotonic clock are read one after the other at the same read: only a step of the wall clock between a packet and its
read could spoil a lag. The kernel begins to stamp a little after the machine's first socket has asked for it: the first
reads may have none.

The transport below is all that is new: parser, deadline and end of an exchange are `http1.Connection`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from time import time_ns

from orchestrator.figures.stats import percentile
from orchestrator.sweep.http1 import Connection, Endpoint, Exchange, Meter

# Linux's numbers (Python names neither). The old option's struct has the width of a C long: right where that has 64
# bits. Elsewhere the newer one (Linux 5.1) has 64 bits always. The message that comes back bears the option's number.
SO_TIMESTAMPNS = 35 if sys.maxsize > 2**32 else 64
TIMESPEC = struct.Struct("=qq")
ANCILLARY_BYTES = 64
READ_BYTES = 65536

Ancillary = Iterable[tuple[int, int, bytes]]


class AuditedConnection(Connection):
    """A `Connection` that also notes how long each read's bytes had lain in the kernel."""

    def stamped_data_received(self, data: bytes, ancillary: Ancillary) -> None:
        wall_ns = time_ns()
        exchange = self._exchange
        self.data_received(data)  # which takes its own stamp first
        if exchange is not None:
            stamp_ns = kernel_stamp_ns(ancillary)
            exchange.kernel_lags_ns.append(None if stamp_ns is None else wall_ns - stamp_ns)


def kernel_stamp_ns(ancillary: Ancillary) -> int | None:
    """The receive stamp among a read's control messages, wall clock ns."""
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(content) == TIMESPEC.size:
            seconds, nanoseconds = TIMESPEC.unpack(content)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return None


class StampedTransport(asyncio.Transport):
    """The part of a transport that `Connection` uses, over a connected non-blocking socket that stamps.

    Like uvloop's with a write limit of zero it sends inside `write`, and tells the protocol only when the kernel would
    not take all.
    """

    def __init__(self, sock: socket.socket, connection: AuditedConnection) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._connection = connection
        self._unsent = memoryview(b"")
        self._is_closed = False
        connection.connection_made(self)
        self._loop.add_reader(sock, self._read)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The limit is always zero."""

    def is_closing(self) -> bool:
        return self._is_closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closed:
            return
        if self._unsent:
            self._unsent = memoryview(bytes(self._unsent) + data)
            return
        rest = self._send(memoryview(data))
        if rest:
            self._unsent = rest
            self._connection.pause_writing()
            self._loop.add_writer(self._sock, self._write_rest)

    def abort(self) -> None:
        self._lose(None)

    def close(self) -> None:
        self._lose(None)

    def _write_rest(self) -> None:
        self._unsent = self._send(self._unsent)
        if not self._unsent and not self._is_closed:
            self._loop.remove_writer(self._sock)
            self._connection.resume_writing()

    def _send(self, data: memoryview) -> memoryview:
        """What the kernel did not take; nothing once the connection is lost."""
        try:
            return data[self._sock.send(data) :]
        except (BlockingIOError, InterruptedError):
            return data
        except OSError as exc:
            self._lose(exc)
            return memoryview(b"")

    def _read(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as exc:
            self._lose(exc)
            return
        if data:
            self._connection.stamped_data_received(data, ancillary)
        else:
            self._lose(None)

    def _lose(self, exc: OSError | None) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        self._loop.call_soon(self._connection.connection_lost, exc)


async def open_audited(endpoint: Endpoint, meter: Meter) -> AuditedConnection | None:
    """Connect over plain TCP; None where no stamps are to be had (TLS, not Linux, refused by the kernel).

    Raises:
        OSError: Refused, unreachable, name unknown.
    """
    if endpoint.is_tls or sys.platform != "linux":
        return None
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    failures: list[OSError] = []
    for family, kind, protocol, _, address in found:
        with contextlib.ExitStack() as stack:
            sock = stack.enter_context(socket.socket(family, kind, protocol))
            sock.setblocking(False)
            try:
                sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            except OSError:
                return None
            try:
                await loop.sock_connect(sock, address)
            except OSError as exc:
                failures.append(exc)
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = AuditedConnection(meter)
            StampedTransport(sock, connection)
            stack.pop_all()
            return connection
    raise failures[-1] if len(failures) == 1 else OSError("; ".join(str(exc) for exc in failures))


@dataclass(frozen=True, slots=True, kw_only=True)
class StampAudit:
    """How late our stamps were, by the kernel's: over `n` reads, ms. p99 is None below 300 reads."""

    n: int
    p50_ms: float
    p99_ms: float | None
    max_ms: float


def stamp_audit(exchanges: Iterable[Exchange]) -> StampAudit | None:
    """What the audited connections among them measured; None: not one read had a stamp."""
    lags_ms = [lag / 1e6 for exchange in exchanges for lag in exchange.kernel_lags_ns if lag is not None]
    p50_ms = percentile(lags_ms, 0.5)
    if p50_ms is None:
        return None
    return StampAudit(n=len(lags_ms), p50_ms=p50_ms, p99_ms=percentile(lags_ms, 0.99), max_ms=max(lags_ms))
