"""What can go wrong, drawn once, with the exit code and the remedy on each.

Gate0Error                     4   our fault unless a subclass says otherwise
├── InputError                 2   the user's input: profile, workload, command line
│   └── InvalidFile            2   one file, every problem in it (file:line: path: what)
├── RefusedError               1   a gate or a threshold said no
├── BoxError                   3   the box, or the way to it
│   ├── HostError              3   names the host
│   │   ├── HostUnreachable, HostKeyUnknown, HostKeyChanged, AuthFailed
│   │   ├── CommandFailed, CommandTimedOut, LockHeld
│   │   └── PreflightFailed
│   ├── RuntimeFailure         3   Docker or the process runtime
│   │   ├── RuntimeUnavailable
│   │   │   └── RuntimeNotInstalled
│   │   ├── ImageMissing, NameTaken, PortTaken
│   │   └── ServerDied, NotReady
│   ├── TargetError            3   the server did not answer as a server does
│   └── StoreError             3   the record could not be written
└── Interrupted              130   Ctrl-C or SIGTERM
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Gate0Error(Exception):
    """The base of all errors that gate0 raises on purpose.

    Args:
        message: What failed, on what, with the value seen; lower case, no full stop.
        hint: What to do about it, one line.
    """

    exit_code = 4

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(Gate0Error):
    """The user's input is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in a file: where, at which path, and what.

    `line` is 1-based, None when the problem belongs to the whole file.
    """

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class InvalidFile(InputError):
    """A profile, workload, suite or inventory that cannot be used, with every problem at once."""

    def __init__(self, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        super().__init__("\n".join(str(p) for p in problems), hint=hint)
        self.problems = tuple(problems)


class RefusedError(Gate0Error):
    """A required gate failed, or a threshold was not met."""

    exit_code = 1


class BoxError(Gate0Error):
    """The box, or the way to it, failed."""

    exit_code = 3


class HostError(BoxError):
    """Something failed on one host; its name is in the message."""

    def __init__(self, host: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{host}: {message}", hint=hint)
        self.host = host


class HostUnreachable(HostError):
    """No TCP or SSH connection could be made."""


class HostKeyUnknown(HostError):
    """The host's key is in no known_hosts file."""


class HostKeyChanged(HostError):
    """The host shows another key than the one on record."""


class AuthFailed(HostError):
    """The host refused every key that was offered."""


class CommandFailed(HostError):
    """A command on the host ended with another exit code than 0."""


class CommandTimedOut(HostError):
    """A command on the host did not end before its deadline."""


class LockHeld(HostError):
    """Another gate0 works on this host."""


class PreflightFailed(HostError):
    """The host cannot take this profile; nothing was started."""


class RuntimeFailure(BoxError):
    """Docker or the process runtime failed."""


class RuntimeUnavailable(RuntimeFailure):
    """No Docker Engine answers (absent, stopped, no permission)."""


class RuntimeNotInstalled(RuntimeUnavailable):
    """There is no Docker on the host at all: nothing can run in it either."""


class ImageMissing(RuntimeFailure):
    """The image is neither on the host nor to be had."""


class NameTaken(RuntimeFailure):
    """A container that gate0 does not own has the name."""


class PortTaken(RuntimeFailure):
    """Something else listens on the port."""


class ServerDied(RuntimeFailure):
    """The server's container or process ended.

    Args:
        exit_code: As the runtime reports it; None when it vanished.
        log_tail: Last lines of its log, oldest first.
        cause: Short name of the diagnosis (`out_of_memory`, `unknown_flag`, …), None when unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        exit_code: int | None,
        log_tail: Sequence[str],
        cause: str | None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.server_exit_code = exit_code
        self.log_tail = tuple(log_tail)
        self.cause = cause


class NotReady(RuntimeFailure):
    """The server lives but gave no first token before the deadline."""

    def __init__(self, message: str, *, log_tail: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.log_tail = tuple(log_tail)


class TargetError(BoxError):
    """The server could not be asked, or its answer cannot be read."""


class StoreError(BoxError):
    """A record could not be written (disk full, permission)."""


class Interrupted(Gate0Error):
    """The user asked to stop."""

    exit_code = 130
