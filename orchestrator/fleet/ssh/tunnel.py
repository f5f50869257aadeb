"""A local TCP port whose connections come out on the host's own loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

import paramiko

_CHUNK = 1 << 16

OpenChannel = Callable[[tuple[str, int], tuple[str, int]], paramiko.Channel]
"""(destination on the host, origin here) -> a channel; raises OSError or paramiko.SSHException."""


class PortTunnel:
    """Listens on 127.0.0.1; `port` is the local port. `close` ends every connection and joins every thread."""

    def __init__(self, open_channel: OpenChannel, remote_port: int) -> None:
        self._open_channel = open_channel
        self._destination = ("127.0.0.1", remote_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._is_closed = False
        self._ends: set[socket.socket | paramiko.Channel] = set()
        self._threads: set[threading.Thread] = set()
        self._spawn(self._accept)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            ends = tuple(self._ends)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() alone does not
        self._listener.close()
        for end in ends:
            _hang_up(end)
        for thread in tuple(self._threads):
            if thread is not threading.current_thread():
                thread.join(timeout=5)

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=self._tracked, args=(target, *args), name="ssh-tunnel", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def _tracked(self, target: Callable[..., None], *args: object) -> None:
        try:
            target(*args)
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _accept(self) -> None:
        while True:
            try:
                client, origin = self._listener.accept()
            except OSError:
                return
            self._spawn(self._carry, client, origin)

    def _carry(self, client: socket.socket, origin: tuple[str, int]) -> None:
        """One connection: the far side is opened, then two threads copy until both directions have ended."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            channel = self._open_channel(self._destination, origin)
        except (OSError, EOFError, paramiko.SSHException):
            client.close()  # nothing listens there: the client sees what it would see there, a closed connection
            return
        with self._lock:
            if self._is_closed:
                _hang_up(client)
                _hang_up(channel)
                return
            self._ends |= {client, channel}
        back = threading.Thread(target=_copy, args=(channel, client), name="ssh-tunnel", daemon=True)
        back.start()
        try:
            _copy(client, channel)
            back.join()
        finally:
            _hang_up(client)
            _hang_up(channel)
            back.join(timeout=5)
            with self._lock:
                self._ends -= {client, channel}


def _copy(source: socket.socket | paramiko.Channel, sink: socket.socket | paramiko.Channel) -> None:
    """Copy to the end, then pass the end on; the other direction may go on."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError, EOFError):
        if isinstance(sink, socket.socket):
            sink.shutdown(socket.SHUT_WR)
        else:
            sink.shutdown_write()


def _hang_up(end: socket.socket | paramiko.Channel) -> None:
    with contextlib.suppress(OSError, EOFError):
        if isinstance(end, socket.socket):
            end.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError, EOFError):
        end.close()
