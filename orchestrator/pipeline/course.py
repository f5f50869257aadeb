"""One cell on its way through its repeats, and the order in which the cells of a workload take turns."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.figures.stats import Spread
from orchestrator.records.store import StoredCell
from orchestrator.sweep.outcome import Lap
from orchestrator.sweep.workload import Cell, Workload
from orchestrator.values import Json, digest

TIGHT_REPEATS = 3


def cell_digest(cell: Cell, serving: Mapping[str, Json]) -> str:
    """Identity of a cell: the load, and what it was sent to (image, argv, effective settings), not the container."""
    return digest({"load": cell.load_digest(), "serving": dict(serving)})


@dataclass(slots=True, eq=False)
class Course:
    """One cell on its way.

    Attributes:
        rate_rps: What is run instead of the cell's own rate, where that is only known once the server was measured.
        stop_reason: Set once no more repeats are to come.
        is_kept: Finished by an earlier attempt.
    """

    cell: Cell
    digest: str
    laps: list[Lap] = field(default_factory=list)
    rate_rps: float | None = None
    stop_reason: str | None = None
    is_kept: bool = False

    @property
    def name(self) -> str:
        return f"{self.cell.workload.name}/{self.cell.id}"

    @property
    def to_run(self) -> Cell:
        """The cell with the rate that is really run."""
        return self.cell if self.rate_rps is None else replace(self.cell, rate_rps=self.rate_rps)

    @property
    def repeats(self) -> int:
        return self.cell.workload.repeats

    @property
    def lap_s(self) -> float | None:
        """Seconds of a repeat as they were so far."""
        took = [v for lap in self.laps if isinstance(v := lap.record.get("duration_s"), float)]
        return sum(took) / len(took) if took else None


def turns(courses: Sequence[Course], workload: Workload) -> Iterator[Course]:
    """Every course as often as it has repeats to run, round by round in a shuffled order, or one after the other.

    Who stops early is skipped from then on.
    """
    if workload.order == "listed":
        for course in courses:
            while course.stop_reason is None:
                yield course
        return
    for round_ in range(workload.repeats):
        shuffled = [c for c in courses if c.stop_reason is None]
        random.Random(f"{workload.seed}/order/{round_}").shuffle(shuffled)
        for course in shuffled:
            if course.stop_reason is None:
                yield course


def stored_laps(found: StoredCell) -> list[Lap]:
    """The repeats of a stored cell, to go on from."""
    return [
        Lap(record=record, requests=tuple(r for r in found.requests if r.repeat == record.get("repeat")))
        for record in found.cell.laps
    ]


def stands(found: StoredCell) -> bool:
    """What an earlier attempt stored can be gone on from."""
    return found.cell.status == "measured" and found.cell.is_valid


def is_finished(found: StoredCell) -> bool:
    return found.cell.repeats_done >= found.cell.repeats or found.cell.stop_reason in {"tight", "decided"}


def is_tight(rate: Spread | None, half_width: float) -> bool:
    """The mean over at least three repeats is known to within that share of it."""
    if rate is None or rate.n < TIGHT_REPEATS or rate.relative_half_width is None:
        return False
    return rate.relative_half_width <= half_width
