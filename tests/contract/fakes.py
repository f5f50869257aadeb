"""A host in memory, for tests of everything that only needs the `Host` protocol.

    host = FakeHost("spark01", files={"/etc/os-release": "ID=ubuntu\n"})
    host.answer(("uname", "-r"), stdout="6.17.0\n")
    host.answer(("docker",), exit_code=1, stderr="permission denied")   # a prefix: the longest that fits answers
    host.fail(("nvidia-smi",), CommandTimedOut("spark01", "..."))
    host.unplug()                                                        # every command: HostUnreachable

`runs` lists what was asked, in order. A program without an answer is not installed (127). `cat`, `printf`, `sleep`,
`true`, `false` and `sh -c 'exit N'` work as on any host; `sleep` takes no time.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.errors import HostUnreachable
from orchestrator.fleet.host import ByteStream, Completed
from orchestrator.fleet.outcome import checked, timed_out

Reply = Callable[[tuple[str, ...], bytes], Completed]
"""(argv, stdin) -> what the command does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A command that was asked for."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    timeout_s: float = 30.0


@dataclass(slots=True)
class FakeHost:
    """A `Host` that does what a test wrote down."""

    name: str = "spark01"
    address: str = "10.66.0.11"
    is_local: bool = False
    files: dict[str, str] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    is_closed: bool = False
    _replies: dict[tuple[str, ...], Reply] = field(default_factory=dict)
    _is_unplugged: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, argv: tuple[str, ...], *, stdout: str = "", exit_code: int = 0, stderr: str = "") -> None:
        """Commands that begin with these words end so; the longest beginning wins, a later word replaces."""
        self._replies[argv] = lambda asked, _: Completed(argv=asked, exit_code=exit_code, stdout=stdout, stderr=stderr)

    def act(self, argv: tuple[str, ...], reply: Reply) -> None:
        """Commands that begin with these words are computed."""
        self._replies[argv] = reply

    def fail(self, argv: tuple[str, ...], error: Exception) -> None:
        """Commands that begin with these words raise."""

        def reply(_asked: tuple[str, ...], _stdin: bytes) -> Completed:
            raise error

        self._replies[argv] = reply

    def unplug(self) -> None:
        """From now on nothing is reached."""
        self._is_unplugged = True

    def plug_in(self) -> None:
        self._is_unplugged = False

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The argv of every run, in order."""
        return tuple(run.argv for run in self.runs)

    def run(
        self, argv: tuple[str, ...], *, timeout_s: float = 30.0, stdin: bytes = b"", check: bool = False
    ) -> Completed:
        with self._lock:
            self.runs.append(Run(argv=argv, stdin=stdin, timeout_s=timeout_s))
        self._reach()
        done = self._do(argv, stdin, timeout_s)
        return checked(self.name, done) if check else done

    def open_stream(self, argv: tuple[str, ...]) -> ByteStream:
        """`cat` gives an echo; everything else a stream that has ended."""
        self._reach()
        ours, theirs = socket.socketpair()
        if argv == ("cat",):
            threading.Thread(target=_echo, args=(theirs,), daemon=True).start()
        else:
            theirs.close()
        return ours

    def open_port(self, port: int) -> int:
        self._reach()
        return self.ports.get(port, port)

    def close(self) -> None:
        self.is_closed = True

    def _reach(self) -> None:
        if self._is_unplugged:
            raise HostUnreachable(self.name, "the cable is out", hint="plug it in")

    def _do(self, argv: tuple[str, ...], stdin: bytes, timeout_s: float) -> Completed:
        for size in range(len(argv), 0, -1):
            if argv[:size] in self._replies:
                return self._replies[argv[:size]](argv, stdin)
        if argv[0] == "sleep" and float(argv[1]) > timeout_s:
            raise timed_out(self.name, argv, timeout_s, is_killed=True)
        exit_code, stdout, stderr = _program(argv, stdin, self.files)
        return Completed(argv=argv, exit_code=exit_code, stdout=stdout, stderr=stderr)


def _program(argv: tuple[str, ...], stdin: bytes, files: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the few programs that every host has."""
    match argv:
        case ("cat",):
            return 0, stdin.decode(errors="replace"), ""
        case ("cat", *paths):
            missing = "".join(f"cat: {p}: No such file or directory\n" for p in paths if p not in files)
            return (1 if missing else 0), "".join(files.get(p, "") for p in paths), missing
        case ("printf", pattern, *words):
            return 0, "".join(pattern.replace("\\n", "\n").replace("%s", word) for word in words), ""
        case ("sleep", _) | ("true",):
            return 0, "", ""
        case ("false",):
            return 1, "", ""
        case ("sh", "-c", text) if found := re.fullmatch(r"(?:echo (\w+) >&2; )?exit (\d+)", text):
            return int(found[2]), "", f"{found[1]}\n" if found[1] else ""
    return 127, "", f"{argv[0]}: command not found\n"


def _echo(end: socket.socket) -> None:
    with end:
        while chunk := end.recv(65536):
            end.sendall(chunk)
