"""Raw records of single cells, read when a picture needs them: rows have figures only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.records.record import CellRecord
from orchestrator.records.store import StoredCell, StoredRun
from orchestrator.report.derived.requests import thin_cell
from orchestrator.report.derived.rows import derived_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecords:
    """By run id; without runs nothing is found, and what needs raw stamps is not drawn.

    Attributes:
        root: The results folder beside whose records what was read is kept, for the next time; None: nowhere.
    """

    runs: Mapping[str, StoredRun] = field(default_factory=dict)
    root: Path | None = None

    @classmethod
    def of(cls, stored: Sequence[StoredRun], root: Path | None = None) -> RawRecords:
        return cls(runs={s.run.id: s for s in stored}, root=root)

    def cell(self, run_id: str, cell: CellRecord) -> StoredCell | None:
        """Its requests have all but their `events`. None: the run is not here, or its cell cannot be read."""
        stored = self.runs.get(run_id)
        return None if stored is None else thin_cell(stored, cell, derived_folder(stored, self.root))

    def telemetry(self, run_id: str) -> tuple[Mapping[str, Any], ...]:
        """All samples of a run; empty when it has none."""
        stored = self.runs.get(run_id)
        return () if stored is None else stored.telemetry()
