"""One command over one channel: stdin in, stdout and stderr out, all three at once, until its end or a deadline."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import paramiko

from orchestrator.fleet.ssh.stream import hang_up

_CHUNK = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """What came back. `exit_code` None: none was told (killed by a signal, or the connection broke)."""

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    is_late: bool


def exchange(channel: paramiko.Channel, stdin: bytes, *, end_s: float) -> Exchanged:
    """Drive a started command to its end.

    stderr and stdin have threads of their own: the two outputs share one window, so a reader that waits for one while
    the other fills up would wait for ever.

    Args:
        end_s: Monotonic time at which it is given up; the channel is closed then.
    """
    stdout, stderr = bytearray(), bytearray()
    helpers = [threading.Thread(target=_drain, args=(channel.recv_stderr, stderr), name="ssh-stderr", daemon=True)]
    if stdin:
        helpers.append(threading.Thread(target=_feed, args=(channel, stdin), name="ssh-stdin", daemon=True))
    watch = threading.Timer(max(0.0, end_s - time.monotonic()), hang_up, args=(channel,))
    watch.daemon = True
    watch.start()
    for helper in helpers:
        helper.start()
    try:
        _drain(channel.recv, stdout)
        for helper in helpers:
            helper.join()
        channel.status_event.wait(max(0.0, end_s - time.monotonic()))
    finally:
        watch.cancel()
        hang_up(channel)
        for helper in helpers:
            helper.join()
    code = channel.exit_status
    is_late = time.monotonic() >= end_s and code < 0
    return Exchanged(stdout=bytes(stdout), stderr=bytes(stderr), exit_code=None if code < 0 else code, is_late=is_late)


def _drain(receive: Callable[[int], bytes], into: bytearray) -> None:
    while chunk := receive(_CHUNK):
        into += chunk


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    with contextlib.suppress(OSError, EOFError):  # a command may end without reading its stdin
        channel.sendall(stdin)
        channel.shutdown_write()
