"""How a host words a command that failed or was late; the same for every kind of host."""

from __future__ import annotations

import shlex

from orchestrator.errors import CommandFailed, CommandTimedOut
from orchestrator.fleet.host import Completed

_SHOWN = 160


def command_text(argv: tuple[str, ...]) -> str:
    """The command for a message: quoted as for a shell, cut when it is long."""
    text = shlex.join(argv)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def checked(host: str, done: Completed) -> Completed:
    """The same, when it ended with 0.

    Raises:
        CommandFailed: It did not; the message has the exit code and the last line of its stderr.
    """
    if done.is_ok:
        return done
    last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
    why = f": {last[0]}" if last else ""
    raise CommandFailed(host, f"`{command_text(done.argv)}` ended with exit code {done.exit_code}{why}")


def timed_out(host: str, argv: tuple[str, ...], timeout_s: float, *, is_killed: bool) -> CommandTimedOut:
    """The error for a command that ran into its deadline."""
    command = command_text(argv)
    if is_killed:
        return CommandTimedOut(host, f"`{command}` was still running after {timeout_s:g} s and was killed")
    return CommandTimedOut(
        host,
        f"`{command}` did not end within {timeout_s:g} s, and the host did not answer",
        hint="the host may hang (out of memory?), or the start-up files of the SSH user's shell do",
    )
