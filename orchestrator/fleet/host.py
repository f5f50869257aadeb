"""A box as gate0 sees it: it runs argv, it gives a byte stream to a command, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A command that ended. `exit_code` 127 with empty stdout: the program is not there."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str

    @property
    def is_ok(self) -> bool:
        return self.exit_code == 0


class ByteStream(Protocol):
    """The socket-like end of a command's stdin and stdout (what http.client needs of a socket)."""

    def sendall(self, data: bytes) -> None: ...

    def recv(self, size: int) -> bytes: ...

    def settimeout(self, seconds: float | None) -> None: ...

    def close(self) -> None: ...


class Host(Protocol):
    """One machine. Implementations: ssh, local, and the tests' fake; all pass the same contract."""

    @property
    def name(self) -> str:
        """The word the user has for it."""
        ...

    @property
    def address(self) -> str:
        """What an HTTP client here connects to (`127.0.0.1` for local)."""
        ...

    @property
    def is_local(self) -> bool: ...

    def run(
        self, argv: tuple[str, ...], *, timeout_s: float = 30.0, stdin: bytes = b"", check: bool = False
    ) -> Completed:
        """Run one command to its end.

        Args:
            check: Raise CommandFailed unless the exit code is 0.

        Raises:
            CommandTimedOut: The command was still running at the deadline; it was killed.
            HostUnreachable: The connection broke.
            CommandFailed: With `check`, another exit code than 0.
        """
        ...

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """Start a command and talk to it through stdin and stdout (Docker's `dial-stdio`)."""
        ...

    def open_port(self, port: int) -> int:
        """A local TCP port that reaches `127.0.0.1:port` on the host until `close` (a tunnel; local: the same)."""
        ...

    def close(self) -> None: ...
