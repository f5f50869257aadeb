"""What a sweep measures next where that depends on what it has seen: a search's level, an overload's capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from orchestrator.figures.cell import CellFigures
from orchestrator.records.record import CellRecord
from orchestrator.sweep.search import OPEN_ENDS, UNDECIDED, Ended, Found, Range, Tried, interrupted, next_level
from orchestrator.sweep.spec import LoadTarget
from orchestrator.sweep.workload import Cell, Kind, Workload
from orchestrator.values import Json

CAPACITY_REQUESTS_PER_USER = 3
CAPACITY_USERS = 16
CAPACITY_REPEATS = 1
CAPACITY = "capacity"
JUDGED = frozenset({"failures"})
"""Guards that a level may break: a failed request is a miss of the service level, and counted as one."""
WHY_OPEN = {
    None: "it was not begun",
    Ended.SPOILED: "a level broke a guard",
    Ended.UNJUDGED: "of a level no request could be judged",
    Ended.BUDGET: "the budget ended",
}


@dataclass(slots=True, eq=False)
class Seeker:
    """One search: the cell whose level is varied, and what was tried.

    Attributes:
        behind: Rates at which requests piled up: such a level meets a service level only as long as it is short.
    """

    base: Cell
    tried: dict[float, Tried] = field(default_factory=dict)
    found: Found | None = None
    behind: set[float] = field(default_factory=set)

    @property
    def range(self) -> Range:
        search = self.base.workload.search
        assert search is not None
        return Range(
            low=search.low, high=search.high, precision=search.precision, is_whole=search.over == "concurrency"
        )

    def next_level(self) -> float | None:
        """None: the search has its answer (`found`)."""
        found = next_level(self.range, list(self.tried.values()))
        if isinstance(found, Found):
            self.found = found
            return None
        return found

    def cell_at(self, level: float) -> Cell:
        if self.range.is_whole:
            return replace(self.base, concurrency=round(level))
        return replace(self.base, rate_rps=level)

    def take(self, level: float, figures: CellFigures, *, can_go_on: bool) -> None:
        """What a level came to so far."""
        judged, arrivals = figures.goodput, figures.open
        if arrivals is not None and arrivals.outstanding is not None and arrivals.outstanding.is_growing:
            self.behind.add(level)
        else:
            self.behind.discard(level)
        self.tried[level] = Tried(
            level=level,
            verdict=UNDECIDED if judged is None else judged.verdict.value,
            attainment=None if judged is None else judged.attainment,
            share=self.base.slo.share if self.base.slo is not None else 1.0,
            is_valid=is_usable(figures.cell),
            can_go_on=can_go_on,
        )

    def give_up(self) -> None:
        """The time is over: what is known so far is all there is."""
        self.found = interrupted(list(self.tried.values()))

    def is_open(self, level: float) -> bool:
        """The level may be asked for again."""
        tried = self.tried.get(level)
        return tried is None or (tried.verdict == UNDECIDED and tried.can_go_on)

    @property
    def words(self) -> str:
        """The answer in a line."""
        found, unit = self.found, "users" if self.range.is_whole else "requests/s"
        slo = self.base.slo
        goal = slo.name if slo is not None else "the service level"
        if found is None or found.ended in OPEN_ENDS:
            known = "" if found is None or found.best is None else f"; met up to {found.best:g} so far"
            why = WHY_OPEN[None if found is None else found.ended]
            return f"search for {goal} over {unit}: no answer, {why}{known}"
        if found.best is None:
            return f"search for {goal}: not met even at {self.range.low:g} {unit}"
        above = "the highest tried" if found.missed is None else f"missed at {found.missed:g}"
        doubt = "" if found.is_certain else "; the interval of a level next to it encloses the share"
        notes = "".join(f"; {note}" for note in self._notes(found))
        return f"search for {goal}: met up to {found.best:g} {unit}, {above}{doubt}{notes}"

    def _notes(self, found: Found) -> tuple[str, ...]:
        if found.best not in self.behind:
            return found.notes
        held = max((t.level for t in self.tried.values() if t.is_met and t.level not in self.behind), default=None)
        kept = "" if held is None else f", kept up with at {held:g}"
        return (*found.notes, f"requests pile up at {found.best:g}{kept}: more `requests` would show if it lasts")

    def as_json(self) -> dict[str, Json]:
        """For the record's events."""
        found, base = self.found, self.base
        return {
            "workload": base.workload.name,
            "kind": base.kind.value,
            "variant": base.variant,
            "prompt_tok": base.prompt_tok,
            "output_tok": base.output_tok,
            "depth_tok": base.depth_tok,
            "prefix_tok": base.prefix_tok,
            "burstiness": None if self.range.is_whole else base.burstiness,
            "slo": None if base.slo is None else base.slo.as_json(),
            "over": "concurrency" if self.range.is_whole else "rate",
            "levels": [
                {"level": t.level, "verdict": t.verdict, "attainment": t.attainment} for t in self.tried.values()
            ],
            "ended": None if found is None else found.ended.value,
            "best": None if found is None else found.best,
            "missed": None if found is None else found.missed,
            "is_certain": None if found is None else found.is_certain,
            "notes": [] if found is None else list(self._notes(found)),
        }


def is_usable(cell: CellRecord) -> bool:
    """A level's attainment means something."""
    return all(guard.get("name") in JUDGED for guard in cell.guards)


def seekers(workload: Workload) -> Iterator[Seeker]:
    """A search for each point of the workload's other axes."""
    search = workload.search
    assert search is not None
    seen: set[str] = set()
    for cell in workload.cells():
        if search.over == "concurrency":
            base = replace(cell, concurrency=1)
        else:
            base = replace(cell, rate_rps=search.low)
        if base.id not in seen:
            seen.add(base.id)
            yield Seeker(base)


def capacity_cell(cell: Cell, load: LoadTarget) -> Cell:
    """A closed loop of the overload's sizes at all the server's slots."""
    workload = replace(
        cell.workload, repeats=CAPACITY_REPEATS, requests_per_user=CAPACITY_REQUESTS_PER_USER, slo=None, search=None
    )
    return Cell(
        workload=workload,
        kind=Kind.CLOSED,
        prompt=cell.prompt,
        output=cell.output,
        concurrency=load.slots or CAPACITY_USERS,
        variant=CAPACITY,
    )


def capacity_rps(figures: CellFigures) -> float | None:
    """Good requests per second of its repeats; None when none was good."""
    spans = [(end - start) / 1e9 for start, end in figures.cell.spans_ns if end > start]
    return figures.good / sum(spans) if spans and figures.good else None
