"""The bytes' way to a host's sshd: TCP, a ProxyCommand, or a ProxyJump. One try; `connect` decides on more."""

from __future__ import annotations

import contextlib
import re
import shlex
import socket
import subprocess
import tempfile
import threading

from orchestrator.fleet.inventory import HostEntry

_DEAD_PEER_S = 30


class ProxySocket(socket.socket):
    """One end of a socket pair whose other end is a command's stdin and stdout; closing it ends the command."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair()
        self._said = ""
        self._lock = threading.Lock()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe that nobody reads would stop a talkative command
        try:
            self._command = subprocess.Popen(
                argv, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=self._words, start_new_session=True
            )
        except OSError:
            ours.close()
            self._words.close()
            raise
        finally:
            theirs.close()
        super().__init__(fileno=ours.detach())

    def complaint(self) -> str:
        """Why the command ended, in its own last words; empty while it runs, or when it was ended by `close`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._command.wait(timeout=1)
        exit_code = self._command.poll()
        if exit_code is None:
            return ""
        last = self._read_words().strip().splitlines()
        return last[-1] if last else f"exit code {exit_code}" if exit_code > 0 else ""

    def close(self) -> None:
        super().close()
        if self._command.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._command.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._command.wait(timeout=2)
        self._read_words(is_last=True)

    def _read_words(self, *, is_last: bool = False) -> str:
        """The command's stderr so far; still there after `close`, which the transport's own thread calls as well."""
        with self._lock:
            if not self._words.closed:
                self._words.seek(0)
                self._said = self._words.read().decode(errors="replace")
            if is_last:
                self._words.close()
            return self._said


def open_socket(entry: HostEntry, *, timeout_s: float) -> socket.socket:
    """A socket whose other end is the host's sshd.

    Raises:
        OSError: It could not be opened (refused, timed out, no such name, no such program).
    """
    argv = proxy_argv(entry)
    if argv is not None:
        return ProxySocket(argv)
    wire = socket.create_connection((entry.address, entry.port), timeout=timeout_s)
    _watch_peer(wire)
    return wire


def proxy_argv(entry: HostEntry) -> tuple[str, ...] | None:
    """The command that carries the bytes, None for plain TCP.

    A ProxyCommand is a shell line by ssh's definition, its tokens already filled for ssh_config; `%h` and `%p` are
    filled here for hosts.yaml. A ProxyJump is the user's own `ssh -W`, which may not ask anything.
    """
    if entry.proxy_command is not None:
        tokens = {"%h": entry.address, "%p": str(entry.port), "%r": entry.user or ""}
        line = re.sub("%[hpr%]", lambda m: shlex.quote(tokens[m[0]]) if m[0] in tokens else "%", entry.proxy_command)
        return ("/bin/sh", "-c", f"exec {line}")
    if entry.proxy_jump is None:
        return None
    *before, last = [hop.strip() for hop in entry.proxy_jump.split(",")]
    config = ("-F", entry.config_file) if entry.config_file else ()
    via = ("-J", ",".join(before)) if before else ()
    destination = last if last.startswith("ssh://") else f"ssh://{last}"
    target = f"[{entry.address}]:{entry.port}"
    return ("ssh", *config, *via, "-o", "BatchMode=yes", "-W", target, destination)


def _watch_peer(wire: socket.socket) -> None:
    """Let the kernel notice within half a minute that the other end is gone; sshd itself may stay silent for long."""
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": _DEAD_PEER_S * 1000}
    for name, value in options.items():
        if hasattr(socket, name):  # Linux has all four, macOS not
            wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
