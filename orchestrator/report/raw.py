"""Raw records of single cells, read when a picture needs them: rows have figures only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.records.record import CellRecord
from orchestrator.records.store import StoredCell, StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecords:
    """By run id; without runs nothing is found, and what needs raw stamps is not drawn."""

    runs: Mapping[str, StoredRun] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Sequence[StoredRun]) -> RawRecords:
        return cls(runs={s.run.id: s for s in stored})

    def cell(self, run_id: str, cell: CellRecord) -> StoredCell | None:
        """None: the run is not here, or its cell cannot be read."""
        stored = self.runs.get(run_id)
        return None if stored is None else stored.find_cell(cell)

    def telemetry(self, run_id: str) -> tuple[Mapping[str, Any], ...]:
        """All samples of a run; empty when it has none."""
        stored = self.runs.get(run_id)
        return () if stored is None else stored.telemetry()
