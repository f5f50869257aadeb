"""A cell as far as its guards need it, and what several of them ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.record import RequestRecord
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.workload import Cell, Kind
from orchestrator.values import Json

TIMED = frozenset({Kind.OPEN, Kind.OVERLOAD, Kind.REPLAY})
"""Kinds whose requests come by the clock, whether or not the server keeps up. Of a mixed cell some lanes do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardInput:
    """A cell as far as its guards need it.

    Attributes:
        laps: The repeats as `CellRecord.laps` keeps them.
        requests: Those of all of them and of all recorded phases.
    """

    cell: Cell
    target: LoadTarget
    laps: Sequence[Mapping[str, Json]]
    requests: Sequence[RequestRecord]

    @property
    def good(self) -> list[RequestRecord]:
        return [r for r in self.requests if r.failure is None]

    def of_lap(self, lap: Mapping[str, Json]) -> list[RequestRecord]:
        return [r for r in self.requests if r.repeat == lap.get("repeat")]

    def asked_tok(self, request: RequestRecord) -> int:
        """Output tokens it was sent with."""
        return self.cell.output_tok if request.asked_output_tok is None else request.asked_output_tok

    def is_timed(self, request: RequestRecord) -> bool:
        """It came by the clock."""
        if self.cell.kind is Kind.MIXED:
            return any(lane.rate is not None and lane.name == request.lane for lane in self.cell.workload.lanes)
        return self.cell.kind in TIMED


def number(told: Mapping[str, Json], key: str) -> float | None:
    """A number that is there; anything else is None."""
    value = told.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def mapping(told: Mapping[str, Json], key: str) -> Mapping[str, Json] | None:
    value = told.get(key)
    return value if isinstance(value, Mapping) else None
