"""A server's log, followed beside whatever else is done: which stage it is in, and when it last said something."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from orchestrator.deploy.progress import StageReader
from orchestrator.deploy.runtime import Runtime
from orchestrator.engines.engine import LogStage
from orchestrator.errors import BoxError
from orchestrator.values import Clock

_KEPT_LINES = 200
_JOIN_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAt:
    """A stage and when it was reached, seconds since the watch began."""

    stage: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """What the log has shown so far.

    Attributes:
        stage: The current one, None before the first.
        progress: The stage's own words (`62%`, `3/7`), None when it has none.
        stages: All that were reached, in order.
        quiet_s: Seconds since the last line, or since the watch began.
        lost: Why the log can no longer be followed, None while it is, or after its regular end.
    """

    stage: str | None
    progress: str | None
    stages: tuple[StageAt, ...]
    quiet_s: float
    lines: tuple[str, ...]
    lost: str | None


class LogWatch:
    """Follow a log in a thread as long as the `with` block lasts."""

    def __init__(
        self, runtime: Runtime, server_id: str, log_stages: tuple[LogStage, ...], *, clock: Clock, timeout_s: float
    ) -> None:
        self._runtime = runtime
        self._server_id = server_id
        self._reader = StageReader(log_stages)
        self._clock = clock
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._begun_s = self._last_line_s = clock()
        self._stages: list[StageAt] = []
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._lost: str | None = None
        self._thread = threading.Thread(target=self._follow, name="gate0-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join(_JOIN_S)

    def view(self) -> LogView:
        """What is known now."""
        with self._lock:
            current = self._reader.current
            return LogView(
                stage=current.name if current else None,
                progress=current.progress if current else None,
                stages=tuple(self._stages),
                quiet_s=self._clock() - self._last_line_s,
                lines=tuple(self._lines),
                lost=self._lost,
            )

    def _follow(self) -> None:
        try:
            lines = self._runtime.follow(self._server_id, timeout_s=self._timeout_s, is_cancelled=self._is_over.is_set)
            for line in lines:
                self._take(line)
        except BoxError as error:
            with self._lock:
                self._lost = error.message

    def _take(self, line: str) -> None:
        with self._lock:
            self._last_line_s = self._clock()
            self._lines.append(line)
            moved = self._reader.feed(line)
            if moved is not None and (not self._stages or self._stages[-1].stage != moved.name):
                self._stages.append(StageAt(stage=moved.name, at_s=self._last_line_s - self._begun_s))
