"""This machine as a host: the same contract, without a connection."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess

from orchestrator.fleet.host import ByteStream, Completed
from orchestrator.fleet.outcome import checked, timed_out

_NOT_FOUND = 127
_NOT_EXECUTABLE = 126


class LocalHost:
    """`Host` for the machine that gate0 runs on. Every command is a process group of its own."""

    is_local = True
    address = "127.0.0.1"

    def __init__(self, name: str = "local") -> None:
        self.name = name

    def run(
        self, argv: tuple[str, ...], *, timeout_s: float = 30.0, stdin: bytes = b"", check: bool = False
    ) -> Completed:
        """As `Host.run`."""
        try:
            command = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as exc:
            done = _not_started(argv, exc)
            return checked(self.name, done) if check else done
        try:
            stdout, stderr = command.communicate(stdin, timeout=timeout_s)
        except BaseException as exc:  # Ctrl-C too must leave nothing running
            _kill_group(command)
            if isinstance(exc, subprocess.TimeoutExpired):
                raise timed_out(self.name, argv, timeout_s, is_killed=True) from exc
            raise
        done = Completed(
            argv=argv,
            exit_code=command.returncode if command.returncode >= 0 else 128 - command.returncode,
            stdout=stdout.decode(errors="replace"),
            stderr=stderr.decode(errors="replace"),
        )
        return checked(self.name, done) if check else done

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """As `Host.open_stream`; a program that is not there gives a stream that has ended."""
        return LocalStream(argv)

    def open_port(self, port: int) -> int:
        return port

    def close(self) -> None:
        """Nothing is held."""


class LocalStream:
    """A command's stdin and stdout as a socket; closing it ends the command."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            try:
                self._command: subprocess.Popen[bytes] | None = subprocess.Popen(
                    argv,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                self._command = None

    def sendall(self, data: bytes) -> None:
        self._socket.sendall(data)

    def recv(self, size: int) -> bytes:
        return self._socket.recv(size)

    def settimeout(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._command is not None:
            try:
                self._command.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                _kill_group(self._command)
            self._command = None


def _not_started(argv: tuple[str, ...], exc: OSError) -> Completed:
    code = _NOT_FOUND if isinstance(exc, FileNotFoundError | NotADirectoryError) else _NOT_EXECUTABLE
    reason = (exc.strerror or "cannot be started").lower()
    return Completed(argv=argv, exit_code=code, stdout="", stderr=f"{argv[0]}: {reason}\n")


def _kill_group(command: subprocess.Popen[bytes]) -> None:
    """Kill the command and its children, and collect what remains of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
        command.communicate(timeout=5)
