"""Where a start-up is, read off the log while it is being written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import LogStage


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A named part of the start-up; `progress` is the engine's own word for how far it is ("62%"), if it has one."""

    name: str
    progress: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.progress}" if self.progress else self.name


class StageReader:
    """Fed with log lines, it knows the current stage. It keeps no time: the caller knows when a line came."""

    def __init__(self, log_stages: Sequence[LogStage]) -> None:
        self._patterns = tuple((re.compile(stage.pattern), stage.stage) for stage in log_stages)
        self._current: Stage | None = None

    @property
    def current(self) -> Stage | None:
        """The stage now; None before the first line that names one."""
        return self._current

    def feed(self, line: str) -> Stage | None:
        """Read one line, with the carriage returns of a progress bar or without.

        Returns:
            The stage when this line changed it or its progress, else None.
        """
        before = self._current
        for part in line.split("\r"):
            self._current = self._stage_of(part) or self._current
        return self._current if self._current != before else None

    def _stage_of(self, text: str) -> Stage | None:
        for pattern, name in self._patterns:
            if found := pattern.search(text):
                return Stage(name=name, progress=found.groupdict().get("progress"))
        return None
