"""HTTP to a Docker Engine over any byte stream: the local socket, or a channel of our own SSH connection.

Theory of operation. The docker SDK is a `requests.Session`; what it needs of a transport is an adapter that hands out
urllib3 connections. Here a connection's socket is a `ByteStream` that a `Dial` opens: for a remote host the command
`docker system dial-stdio`, which joins its stdin and stdout to the daemon's socket. Each connection is a channel of its
own, so a pull, a log and a question run side by side; idle ones are kept, which makes a call one round trip.

Nothing waits for ever: a request without a timeout (the SDK pulls without one) gets `silence_s`, the longest time
without a byte. `read_until` reads a stream that may be silent for long and is ended from outside.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import requests.adapters
import urllib3
from requests import PreparedRequest, Response
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from orchestrator.deploy.watched import OverError, WatchedStream
from orchestrator.fleet.host import ByteStream, Host

Dial = Callable[[], ByteStream]
"""Open a fresh stream to the daemon."""

BASE_URL = "http+docker://dial"
DIAL_STDIO = ("docker", "system", "dial-stdio")

# sshd allows ten sessions on one connection (MaxSessions); commands and a log follower need some of them.
_KEPT_CONNECTIONS = 4
_SEND_S = 60.0


def dial_host(host: Host) -> Dial:
    """Reach the daemon through the host's own docker command."""
    return lambda: host.open_stream(DIAL_STDIO)


def dial_unix(path: str, *, timeout_s: float = 10.0) -> Dial:
    """Reach the daemon at a socket of this machine.

    Raises (when called): FileNotFoundError, PermissionError, ConnectionRefusedError.
    """

    def dial() -> ByteStream:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(timeout_s)
        try:
            stream.connect(path)
        except OSError:
            stream.close()
            raise
        return stream

    return dial


def dial_tcp(address: str, port: int, *, timeout_s: float = 10.0) -> Dial:
    """Reach the daemon at a plain TCP port (DOCKER_HOST=tcp://…)."""
    return lambda: socket.create_connection((address, port), timeout_s)


class DialAdapter(requests.adapters.HTTPAdapter):
    """What the docker SDK's session sends through.

    Args:
        silence_s: Longest time without a byte for requests that set no timeout.
    """

    def __init__(self, dial: Dial, *, silence_s: float = 300.0) -> None:
        super().__init__()
        self._pool = _DialPool(dial)
        self._silence_s = silence_s

    def get_connection_with_tls_context(self, *_args: object, **_kwargs: object) -> HTTPConnectionPool:
        return self._pool

    def request_url(self, request: PreparedRequest, _proxies: Mapping[str, str] | None) -> str:
        # The base class would ask HTTP_PROXY: a proxy has no part in a stream that is already there.
        return request.path_url

    def send(  # type: ignore[override]
        self, request: PreparedRequest, stream: bool = False, timeout: float | None = None, **_kwargs: object
    ) -> Response:
        wait_s = self._silence_s if timeout is None else timeout
        for _ in range(_KEPT_CONNECTIONS):
            try:
                return super().send(request, stream=stream, timeout=wait_s)
            except requests.ConnectionError as error:
                if request.method != "GET" or not _is_hang_up(error):
                    raise
        return super().send(request, stream=stream, timeout=wait_s)

    def close(self) -> None:
        super().close()
        self._pool.close()


def read_until(dial: Dial, path: str, is_over: Callable[[], bool]) -> Iterator[bytes]:
    """The frames of a container's log, on a connection of their own, until the end or until `is_over`.

    Args:
        path: The request's path, API version and query included.
        is_over: Asked twice a second and before each read.

    Raises:
        FileNotFoundError: The daemon answered 404.
        OSError, urllib3.exceptions.HTTPError: The stream broke.
    """
    connection = _DialConnection(lambda: WatchedStream(dial(), is_over))
    try:
        connection.request("GET", path, headers={"Host": "docker"}, preload_content=False)
        response = connection.getresponse()
        if response.status == 404:
            raise FileNotFoundError(path)
        yield from _frames(response)
    except OverError:
        return
    finally:
        connection.close()


def _is_hang_up(error: requests.ConnectionError) -> bool:
    """Whether the daemon closed while we asked: a kept connection can end between the look at it and the request."""
    broken = error.args[0] if error.args else None
    return isinstance(broken, urllib3.exceptions.ProtocolError) and isinstance(
        broken.args[-1], ConnectionResetError | BrokenPipeError
    )


def _frames(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Docker's log framing: stream number, three zeros, four bytes of length, then that many bytes."""
    while header := response.read(8):
        size = int.from_bytes(header[4:8], "big")
        if size:
            yield response.read(size)


class _DialSocket:
    """What http.client needs of a socket. It lives until the last reader made from it is closed, as sockets do."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._readers = 0
        self._is_closing = False

    def sendall(self, data: bytes) -> None:
        self._stream.sendall(data)

    def recv(self, size: int) -> bytes:
        return self._stream.recv(size)

    def settimeout(self, seconds: float | None) -> None:
        self._stream.settimeout(seconds)

    def makefile(self, _mode: str = "rb", *_args: object) -> io.BufferedReader:
        self._readers += 1
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        self._is_closing = True
        self._close_if_unused()

    def forget_reader(self) -> None:
        self._readers -= 1
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._is_closing and self._readers <= 0:
            self._stream.close()


class _Reader(io.RawIOBase):
    """The reading end that a response is parsed from."""

    def __init__(self, sock: _DialSocket) -> None:
        self._sock: _DialSocket | None = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        assert self._sock is not None
        received = self._sock.recv(len(buffer))
        buffer[: len(received)] = received
        return len(received)

    def close(self) -> None:
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.forget_reader()
        super().close()


class _DialConnection(HTTPConnection):
    def __init__(self, dial: Dial) -> None:
        super().__init__("docker", timeout=None)
        self._dial = dial

    def connect(self) -> None:
        self.sock = cast(socket.socket, _DialSocket(self._dial()))
        self.sock.settimeout(_SEND_S)

    @property
    def is_connected(self) -> bool:
        """False when the other end hung up: a byte or an end where silence is due. Channels have no select()."""
        if self.sock is None:
            return False
        self.sock.settimeout(0.0)
        try:
            self.sock.recv(1)
        except (BlockingIOError, TimeoutError):
            self.sock.settimeout(_SEND_S)
            return True
        except OSError:
            return False
        return False


class _DialPool(HTTPConnectionPool):
    def __init__(self, dial: Dial) -> None:
        super().__init__("docker", maxsize=_KEPT_CONNECTIONS)
        self._dial = dial

    def _new_conn(self) -> _DialConnection:
        self.num_connections += 1
        return _DialConnection(self._dial)
