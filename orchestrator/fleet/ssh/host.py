"""A host over SSH: one connection, opened at the first command, shared by all threads, opened again when it broke."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import paramiko

from orchestrator.errors import HostError, HostUnreachable
from orchestrator.fleet.host import ByteStream, Completed
from orchestrator.fleet.inventory import HostEntry
from orchestrator.fleet.outcome import checked, command_text, timed_out
from orchestrator.fleet.ssh.connect import connect
from orchestrator.fleet.ssh.exchange import exchange
from orchestrator.fleet.ssh.stream import ChannelStream, hang_up
from orchestrator.fleet.ssh.tunnel import PortTunnel

_T = TypeVar("_T")
_KILL_AFTER_S = 2
_LATE_S = 3.0
_OPEN_S = 15.0
_RUNS_AT_ONCE = 5  # sshd allows ten sessions on a connection (MaxSessions); Docker's streams need the others
_TIMED_OUT_CODES = (124, 137)
_NO_STDIN = " </dev/null"
"""Where there is nothing to send, nothing is sent, not even an end of file: paramiko may put it on the wire after its
own answer to the host's close of the channel, and OpenSSH then ends the whole connection, with all that runs on it."""
_SIGNALLED = 255  # what ssh itself reports for a command that a signal ended


class SshHost:
    """`Host` over one SSH connection.

    Commands run under the host's own `timeout`: at the deadline the command and its children are killed *there*, also
    when the connection is gone by then.

    Args:
        connect_s: How long sshd may take to answer; refusals and time-outs are tried again until then.
    """

    is_local = False

    def __init__(self, entry: HostEntry, *, connect_s: float = 20.0) -> None:
        self.entry = entry
        self._connect_s = connect_s
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_RUNS_AT_ONCE)
        self._live: paramiko.Transport | None = None
        self._tunnels: dict[int, PortTunnel] = {}
        self._is_closed = False

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def address(self) -> str:
        return self.entry.address

    def run(
        self, argv: tuple[str, ...], *, timeout_s: float = 30.0, stdin: bytes = b"", check: bool = False
    ) -> Completed:
        """As `Host.run`; also raises what `connect` raises."""
        words = ("timeout", "-k", str(_KILL_AFTER_S), f"{max(timeout_s, 0.001):.3f}", *argv)
        with self._slots:
            channel = self._start(shlex.join(words) + ("" if stdin else _NO_STDIN))
            began_s = time.monotonic()
            seen = exchange(channel, stdin, end_s=began_s + timeout_s + _KILL_AFTER_S + _LATE_S)
        elapsed_s = time.monotonic() - began_s
        if seen.is_late:
            self._drop(channel.get_transport())  # `timeout` should have ended it: the host or the way to it hangs
            raise timed_out(self.name, argv, timeout_s, is_killed=False)
        has_broken = seen.exit_code is None and not channel.get_transport().is_active()
        if has_broken:
            raise HostUnreachable(
                self.name,
                f"the connection broke while `{command_text(argv)}` ran",
                hint="did the host restart? the next command connects again",
            )
        # `timeout` ends with 124, or by the SIGKILL that it sends to its whole group, itself included.
        if elapsed_s >= timeout_s and seen.exit_code in (None, *_TIMED_OUT_CODES):
            raise timed_out(self.name, argv, timeout_s, is_killed=True)
        done = Completed(
            argv=argv,
            exit_code=_SIGNALLED if seen.exit_code is None else seen.exit_code,
            stdout=seen.stdout.decode(errors="replace"),
            stderr=seen.stderr.decode(errors="replace"),
        )
        return checked(self.name, done) if check else done

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """As `Host.open_stream`."""
        return ChannelStream(self._start(shlex.join(argv)))

    def open_port(self, port: int) -> int:
        """As `Host.open_port`; the same port asked for twice is the same tunnel."""
        self._transport()  # say now what is wrong with the way there, not at the first byte
        with self._lock:
            if port not in self._tunnels:
                self._tunnels[port] = PortTunnel(self._open_forward, port)
            return self._tunnels[port].port

    def close(self) -> None:
        """End the tunnels, then the connection."""
        with self._lock:
            self._is_closed = True
            tunnels, self._tunnels = tuple(self._tunnels.values()), {}
            live, self._live = self._live, None
        for tunnel in tunnels:
            tunnel.close()
        if live is not None:
            live.close()
            live.join(timeout=5)

    def _start(self, command: str) -> paramiko.Channel:
        channel = self._opened(lambda transport: transport.open_session(timeout=_OPEN_S), f"`{command}`")
        try:
            channel.exec_command(command)
        except (paramiko.SSHException, EOFError, OSError) as exc:
            hang_up(channel)
            raise HostUnreachable(self.name, f"the connection broke before `{command}` could start") from exc
        return channel

    def _open_forward(self, destination: tuple[str, int], origin: tuple[str, int]) -> paramiko.Channel:
        try:
            return self._transport().open_channel("direct-tcpip", destination, origin, timeout=_OPEN_S)
        except HostError as exc:
            raise OSError(exc.message) from exc

    def _opened(self, open_channel: Callable[[paramiko.Transport], _T], what: str) -> _T:
        """A channel; a connection that turns out to be dead is opened again once, nothing has been sent yet."""
        end_s = time.monotonic() + _OPEN_S
        reopened = False
        while True:
            transport = self._transport()
            try:
                return open_channel(transport)
            except paramiko.ChannelException as exc:
                if time.monotonic() > end_s:
                    raise HostError(
                        self.name,
                        f"no session for {what}: {exc.text or 'refused'}",
                        hint="sshd's MaxSessions on this host leaves too few sessions to a connection",
                    ) from exc
                time.sleep(0.1)
            except (paramiko.SSHException, EOFError, OSError) as exc:
                self._drop(transport)
                if reopened:
                    raise HostUnreachable(self.name, f"the connection broke before {what} could start") from exc
                reopened = True

    def _transport(self) -> paramiko.Transport:
        with self._lock:
            if self._is_closed:
                raise HostUnreachable(self.name, "its connection was closed by gate0")
            if self._live is None or not self._live.is_active():
                self._live = connect(self.entry, deadline_s=self._connect_s)
            return self._live

    def _drop(self, broken: paramiko.Transport) -> None:
        """Close a connection that is of no use any more; another thread may have opened the next one already."""
        with self._lock:
            if self._live is broken:
                self._live = None
        broken.close()
