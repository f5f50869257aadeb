"""Events on the terminal: one line for what ended, and one moving line a host for what is going on.

Off a terminal (a log, nohup, CI) there is no moving line: a sweep says once a minute where it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from orchestrator.cli.printer import Printer
from orchestrator.pipeline.events import (
    CellBegan,
    CellEnded,
    CellMoved,
    Event,
    GateBegan,
    GateEnded,
    LapEnded,
    Notice,
    StageBegan,
    StageEnded,
    StageMoved,
)
from orchestrator.pipeline.remaining import words
from orchestrator.values import printable

HEARTBEAT_S = 60.0


class LiveView:
    """An Observer that prints. Threads may call it at the same time."""

    def __init__(self, printer: Printer, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._printer = printer
        self._clock = clock
        self._spoke_s = clock()
        self._done: dict[str, dict[str, float]] = {}
        self._lock = threading.Lock()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._said: dict[str, str] = {}

    def __enter__(self) -> LiveView:
        if self._printer.is_live:
            columns = (
                TextColumn("{task.fields[where]}", style="cyan", markup=False),
                BarColumn(bar_width=12),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
            )
            self._bars = Progress(*columns, console=self._printer.err, transient=True)
            self._bars.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bars is not None:
            with suppress(OSError):
                self._bars.stop()

    def on(self, event: Event) -> None:
        with self._lock:
            self._show(event)

    def _show(self, event: Event) -> None:
        where = event.where
        match event:
            case StageBegan():
                self._move(where, event.stage, None)
            case StageMoved():
                self._move(where, f"{event.stage}: {event.text}", event.share)
            case StageEnded():
                text = f"{where}: {event.stage}: {event.detail} ({event.duration_s:.1f} s)"
                self._say(text, status=event.status)
            case GateBegan():
                self._move(where, f"gate {event.gate}: {event.title}", None)
            case GateEnded():
                gate = event.gate
                self._say(f"{where}: gate {gate.name}: {gate.summary}", status=gate.status)
                if gate.hint and gate.status in ("fail", "error", "unstable"):
                    self._printer.progress(f"            {gate.hint}")
            case CellBegan():
                self._move(where, f"{event.index + 1}/{event.total} {event.cell}", self._share(where, event.total))
            case CellMoved():
                left = words(event.left_s)
                text = f"{event.index + 1}/{event.total} {event.cell}: {event.text}"
                share = self._share(where, event.total)
                self._move(where, f"{left}, {text}" if left else text, share, is_cell=True)
            case LapEnded():
                cell = event.stored.cell
                self._done.setdefault(where, {})[event.cell] = cell.repeats_done / cell.repeats
            case CellEnded():
                name = f"{event.cell.workload}/{event.cell.id}"
                self._done.setdefault(where, {})[name] = 1.0
                self._say(f"{where}: {event.index + 1}/{event.total} {name}: {event.text}")
            case Notice():
                if event.is_warning:
                    self._printer.warning(f"{where}: {event.text}")
                else:
                    self._say(f"{where}: {event.text}")
            case _:
                raise AssertionError(f"no line for {type(event).__name__}")

    def _share(self, where: str, total: int) -> float:
        """Of all repeats: cells take turns, so that a cell's place in the list says nothing of the time."""
        return sum(self._done.get(where, {}).values()) / total

    def _say(self, text: str, *, status: str | None = None) -> None:
        self._spoke_s = self._clock()
        self._printer.progress(text, status=status)

    def _move(self, where: str, text: str, share: float | None, *, is_cell: bool = False) -> None:
        if self._bars is None:
            self._say_once(where, text, is_cell=is_cell)
            return
        task = self._tasks.get(where)
        if task is None:
            task = self._tasks[where] = self._bars.add_task("", total=1.0, where=where)
        total = None if share is None else 1.0
        self._bars.update(task, description=printable(text)[:160], completed=share or 0.0, total=total)

    def _say_once(self, where: str, text: str, *, is_cell: bool) -> None:
        """Off a terminal: a stage's words when they change in more than their figures, a cell's once a minute."""
        same = "".join(c for c in text if not c.isdigit())
        if is_cell:
            if self._clock() - self._spoke_s >= HEARTBEAT_S:
                self._say(f"{where}: {text}")
        elif self._said.get(where) != same and ":" in text:
            self._said[where] = same
            self._say(f"{where}: {text}")
