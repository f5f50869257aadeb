"""The load process as its parent sees it: start it, listen to it, be certain that it ends."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import orjson

from orchestrator.errors import BoxError
from orchestrator.sweep.spec import CANCEL, LoadSpec

POLL_S = 0.1
STALL_S = 60.0
"""The load process speaks five times a second, but not while it parses a repeat."""
CANCEL_GRACE_S = 10.0
EXIT_GRACE_S = 5.0


_CANCELLED: Mapping[str, Any] = {"done": {"is_cancelled": True}}


class LoadFailed(BoxError):
    """The load process died or hung: no figure of this cell can be trusted."""


class LoadProcess:
    """The child, from start to certain end: leaving the `with` block kills what still runs.

    Args:
        stall_s: How long it may say nothing before it counts as hung, seconds.
        cancel_grace_s: How long it may bring no more results after it was told to stop, seconds.
    """

    def __init__(self, spec: LoadSpec, *, stall_s: float = STALL_S, cancel_grace_s: float = CANCEL_GRACE_S) -> None:
        self._spec = spec
        self._stall_s = stall_s
        self._cancel_grace_s = cancel_grace_s
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=20)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> LoadProcess:
        # A session of its own: Ctrl-C reaches the tool alone, which then cancels and still gets the records.
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.sweep.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        for pump, pipe in ((self._pump_lines, self._popen.stdout), (self._pump_stderr, self._popen.stderr)):
            thread = threading.Thread(target=pump, args=(pipe,), daemon=True)
            thread.start()
            self._threads.append(thread)
        self._tell(self._spec.to_line())
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._popen.wait(EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait(EXIT_GRACE_S)
        for thread in self._threads:
            thread.join(EXIT_GRACE_S)
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def messages(self, is_cancelled: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        """What the child says, up to and including its `done`.

        Once cancelled the cell ends without an error: a child that then dies or does not stop in time is killed, and
        `done` is said for it.

        Raises:
            LoadFailed: It died, or said nothing for too long.
        """
        heard_s = time.monotonic()
        cancelled_s: float | None = None
        while True:
            if cancelled_s is None and is_cancelled():
                cancelled_s = time.monotonic()
                self._tell(CANCEL)
            if cancelled_s is not None and self._is_overdue(max(heard_s, cancelled_s)):
                self._popen.kill()
                yield dict(_CANCELLED)
                return
            try:
                line = self._lines.get(timeout=POLL_S)
            except queue.Empty:
                self._refuse_to_hang(heard_s)
                continue
            if line is None:
                if cancelled_s is None:
                    raise self._death()
                yield dict(_CANCELLED)
                return
            message: dict[str, Any] = orjson.loads(line)
            if cancelled_s is None or "progress" not in message:  # ticking on is not stopping
                heard_s = time.monotonic()
            yield message
            if "done" in message:
                return

    def _is_overdue(self, since_s: float) -> bool:
        return time.monotonic() - since_s > self._cancel_grace_s

    def _refuse_to_hang(self, heard_s: float) -> None:
        if time.monotonic() - heard_s > self._stall_s:
            self._popen.kill()
            raise LoadFailed(
                f"the load process said nothing for {self._stall_s:.0f} s and was ended",
                hint="is this machine out of memory or suspended?",
            )

    def _death(self) -> LoadFailed:
        try:
            code: int | None = self._popen.wait(EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            code = None
        self._threads[1].join(EXIT_GRACE_S)
        tail = "\n".join(self._stderr)
        message = f"the load process ended with {_exit_words(code)}" + (f":\n{tail}" if tail else "")
        if code == -signal.SIGKILL:
            hint = "killed: look for the out-of-memory killer (`dmesg`) on this machine, then run the cell again"
        else:
            hint = "run the cell again; if it ends so again, gate0 is at fault: report the lines above"
        return LoadFailed(message, hint=hint)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._popen.stdin is not None
        return self._popen.stdin

    def _tell(self, line: bytes) -> None:
        # A child that is gone shows in its output's end, with its exit code and last words.
        with contextlib.suppress(OSError):
            self._stdin.write(line)
            self._stdin.flush()

    def _pump_lines(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._lines.put(line)
        self._lines.put(None)

    def _pump_stderr(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._stderr.append(line.decode(errors="replace").rstrip())


def _exit_words(code: int | None) -> str:
    if code is None:
        return "no exit code"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"exit code {code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"exit code {code} (signal {-code})"
