"""Figures that another tool states without the raw data: shown with their definition, never mixed with ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.figures.plain import Plain
from orchestrator.figures.server import number_of
from orchestrator.records.record import CellRecord

NOT_VALUES = ("unit", "definition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated(Plain):
    """One figure as its tool gave it.

    Attributes:
        name: Ours (`ttft_ms`).
        values: By statistic (`mean`, `p50`, `sd`, …), those that are numbers.
        definition: What the tool means by it; empty when the importer could not say.
    """

    name: str
    values: Mapping[str, float]
    unit: str
    definition: str

    @property
    def value(self) -> float | None:
        """What stands in a table's column: the median where there is one, else the mean, else the one number."""
        return next((self.values[key] for key in ("p50", "mean", "value") if key in self.values), None)


def stated(cell: CellRecord, name: str) -> Stated | None:
    """A foreign cell's figure by our name; None when its tool did not state it, and for every cell of our own."""
    raw = cell.stated.get(name)
    if raw is None:
        return None
    numbers = {key: number_of(raw, key) for key in raw if key not in NOT_VALUES}
    unit, definition = (str(raw.get(key) or "") for key in NOT_VALUES)
    values = {key: value for key, value in numbers.items() if value is not None}
    return Stated(name=name, values=values, unit=unit, definition=definition)
