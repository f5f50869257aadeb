"""Observers that write files: every event as a JSON line, and llama-benchy's progress lines for its viewers."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import TextIO

import orjson

from orchestrator.errors import InputError
from orchestrator.pipeline.events import CellEnded, Event, GateEnded, LapEnded, Observer, StageEnded
from orchestrator.records.exchange.benchy_progress import BenchyProgress
from orchestrator.records.record import CellRecord
from orchestrator.values import Json, utc_now

Serving = Callable[[str], tuple[str, str]]
"""The served model's name and the base URL, by an event's `where`."""

STDOUT = "-"
ENDINGS = {"interrupted": "interrupted", "failed": "error"}
"""Of a stage, in llama-benchy's words."""


class Observers:
    """All of them hear everything."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def on(self, event: Event) -> None:
        for observer in self._observers:
            observer.on(event)


class EventLog:
    """One JSON object a line: `at` (UTC), `event` (`cell_moved`), and the event's own fields."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def on(self, event: Event) -> None:
        line = orjson.dumps(event_json(event), default=str).decode()
        with self._lock, suppress(OSError):
            self._file.write(line + "\n")
            self._file.flush()


def event_json(event: Event) -> dict[str, Json]:
    """The event as plain values; a cell is its record without the requests."""
    found: dict[str, Json] = {"at": utc_now(), "event": _snake(type(event).__name__)}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(event, LapEnded) and field.name == "stored":
            found["repeats_done"] = event.stored.cell.repeats_done
            found["guards"] = [dict(g) for g in event.stored.cell.guards]
        elif isinstance(event, CellEnded | GateEnded) and field.name in {"cell", "gate"}:
            found[field.name] = value.as_json()
        else:
            found[field.name] = value
    return found


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class ProgressLines:
    """llama-benchy's progress lines, a repeat at a time, when it has ended."""

    def __init__(self, file: TextIO, *, serving: Serving) -> None:
        self._lock = threading.Lock()
        self._lines = BenchyProgress(file.write, model="", base_url="")
        self._file = file
        self._serving = serving
        self._status = "ok"
        self._lines.begin(time.time())

    def on(self, event: Event) -> None:
        if isinstance(event, StageEnded):
            self._status = ENDINGS.get(event.status, self._status)
        if not isinstance(event, LapEnded):
            return
        cell = event.stored.cell
        requests = [r for r in event.stored.requests if r.repeat == event.repeat]
        with self._lock, suppress(OSError):
            self._lines.model, self._lines.base_url = self._serving(event.where)
            self._lines.lap(cell, requests, zero_s=_zero_s(cell, event.repeat))
            self._file.flush()

    def end(self) -> None:
        with suppress(OSError):
            self._lines.end(time.time(), status=self._status)


def _zero_s(cell: CellRecord, repeat: int) -> float:
    """Unix time of the cell's clock at 0, so that this repeat's last answer is now."""
    return time.time() - cell.spans_ns[repeat][1] / 1e9


def answer_file(*, events: str | None, progress: str | None, is_json: bool) -> TextIO | None:
    """Where the answer goes: stdout (None), or stderr when lines for a program have stdout.

    Raises:
        InputError: Two would have stdout.
    """
    asked = {"--events -": events == STDOUT, "--progress-jsonl -": progress == STDOUT, "--json": is_json}
    names = [name for name, is_asked in asked.items() if is_asked]
    if len(names) > 1:
        raise InputError(f"{' and '.join(names)} cannot share stdout", hint="give a file instead of `-`")
    return sys.stderr if STDOUT in (events, progress) else None


@contextmanager
def observed(
    view: Observer, *, events: str | None, progress: str | None, serving: Serving = lambda _: ("", "")
) -> Iterator[Observer]:
    """The view, and the files that were asked for (`-`: stdout).

    Raises:
        InputError: A file cannot be written.
    """
    found: list[Observer] = [view]
    opened: list[TextIO] = []
    lines: ProgressLines | None = None
    try:
        if events is not None:
            found.append(EventLog(_open(events, opened, "--events")))
        if progress is not None:
            lines = ProgressLines(_open(progress, opened, "--progress-jsonl"), serving=serving)
            found.append(lines)
        yield Observers(found)
    finally:
        if lines is not None:
            lines.end()
        for file in opened:
            with suppress(OSError):
                file.close()


def _open(path: str, opened: list[TextIO], option: str) -> TextIO:
    if path == STDOUT:
        return sys.stdout
    try:
        file = open(path, "w", encoding="utf-8")  # noqa: SIM115 (closed by `observed`)
    except OSError as exc:
        raise InputError(f"{option} {path}: {exc.strerror}", hint="name a file in a folder that exists") from exc
    opened.append(file)
    return file
