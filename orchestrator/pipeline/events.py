"""What happens on the road, as values: the terminal shows them, `--json` lists them, tests read them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from orchestrator.errors import Interrupted
from orchestrator.records.record import CellRecord, GateRecord
from orchestrator.records.store import StoredCell


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all. `where`: the host group, `spark01` or `spark01+spark02`."""

    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBegan(Event):
    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMoved(Event):
    """Progress inside a stage. `share` in 0..1, None when unknown."""

    stage: str
    text: str
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnded(Event):
    stage: str
    status: str
    detail: str
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GateBegan(Event):
    gate: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEnded(Event):
    gate: GateRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBegan(Event):
    cell: str
    index: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMoved(Event):
    """Live figures of a running cell: for the eye, not for the record.

    Attributes:
        share: Of this repeat, 0..1.
        left_s: Seconds to the end of the whole sweep, estimated; None before the first repeat ended.
    """

    cell: str
    index: int
    total: int
    share: float
    text: str
    left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LapEnded(Event):
    """One repeat of a cell is on disk; `stored` is the cell with all its repeats so far."""

    cell: str
    repeat: int
    stored: StoredCell


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEnded(Event):
    cell: CellRecord
    index: int
    total: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    text: str
    is_warning: bool = False


class Observer(Protocol):
    """Receives events from several threads."""

    def on(self, event: Event) -> None: ...


class Cancel:
    """One flag for the whole campaign: Ctrl-C sets it, everyone looks at it."""

    def __init__(self) -> None:
        self._flag = threading.Event()

    def set(self) -> None:
        self._flag.set()

    def is_set(self) -> bool:
        return self._flag.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep that ends early when cancelled."""
        self._flag.wait(seconds)

    def check(self) -> None:
        """
        Raises:
            Interrupted: When the flag is set.
        """
        if self._flag.is_set():
            raise Interrupted("stopped on request")
