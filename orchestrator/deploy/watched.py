"""A byte stream that may be silent for long, and is ended from outside."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.fleet.host import ByteStream

_LOOK_UP_S = 0.5


class OverError(Exception):
    """The reader was told to stop. Not an OSError: HTTP libraries take those for a broken connection."""


class WatchedStream:
    """A `ByteStream` whose `recv` looks up twice a second to ask whether it is still wanted.

    Args:
        is_over: Asked before each read and while waiting; True makes `recv` raise OverError.
    """

    def __init__(self, stream: ByteStream, is_over: Callable[[], bool]) -> None:
        self._stream = stream
        self._is_over = is_over
        stream.settimeout(_LOOK_UP_S)

    def sendall(self, data: bytes) -> None:
        """Pass it on."""
        self._stream.sendall(data)

    def recv(self, size: int) -> bytes:
        """Bytes as soon as there are any; empty at the end of the stream."""
        while not self._is_over():
            try:
                return self._stream.recv(size)
            except TimeoutError:
                continue
        raise OverError

    def settimeout(self, seconds: float | None) -> None:
        """The look-up interval stands, whatever is asked."""

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
