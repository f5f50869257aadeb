"""What a search for the highest level that keeps a service level has found, from the events of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import InputError
from orchestrator.figures.plain import Plain
from orchestrator.figures.slo import Slo
from orchestrator.records.record import CellRecord

NUMBERS = ("prompt_tok", "output_tok", "depth_tok", "prefix_tok", "burstiness")
NO_ANSWER = {
    "spoiled": "a level broke a guard",
    "unjudged": "of a level no request could be judged",
    "budget": "the budget ended",
}
UNITS = {"concurrency": "users", "rate": "requests/s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer(Plain):
    """One search.

    Attributes:
        load: By which cells are its levels: those of workload, kind, variant and sizes that the event tells.
        slo: In words, with its name; empty when it was not told.
        best, missed: The highest level that met it, the lowest above that missed it; None: there was none.
        is_certain: False: the interval of a level next to the answer encloses the share.
    """

    workload: str
    load: Mapping[str, str | float]
    over: str
    slo: str
    ended: str | None
    best: float | None
    missed: float | None
    lowest: float | None
    is_certain: bool
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """`met up to 11 users, missed at 12`."""
        unit = UNITS.get(self.over, self.over)
        if self.ended is None or self.ended in NO_ANSWER:
            why = f", {NO_ANSWER[self.ended]}" if self.ended else ""
            return f"no answer{why}" + ("" if self.best is None else f" (met up to {self.best:g} {unit} so far)")
        if self.best is None:
            return f"not met even at {self.lowest:g} {unit}" if self.lowest is not None else "not met"
        above = "the highest tried" if self.missed is None else f"missed at {self.missed:g}"
        doubt = "" if self.is_certain else " (undecided: the interval of a level next to it encloses the share)"
        return f"met up to {self.best:g} {unit}, {above}{doubt}"

    @property
    def words(self) -> str:
        """The same with what was looked for."""
        return "; ".join([f"search for {self.slo or 'the service level'}: {self.answer}", *self.notes])

    def is_of(self, cell: CellRecord) -> bool:
        """The cell is a level of this search, or one beside it of the same load."""
        return cell.workload == self.workload and all(getattr(cell, k, None) == v for k, v in self.load.items())


def searches_of(events: Sequence[Mapping[str, Any]]) -> tuple[SearchAnswer, ...]:
    """The newest answer of each search; an event that cannot be read is none."""
    found: dict[tuple[object, ...], SearchAnswer] = {}
    for event in events:
        if (answer := _answer(event)) is not None:
            found[(answer.workload, answer.over, tuple(answer.load.items()))] = answer
    return tuple(found.values())


def _answer(event: Mapping[str, Any]) -> SearchAnswer | None:
    workload, over, notes = event.get("workload"), event.get("over"), event.get("notes")
    if not isinstance(workload, str) or not isinstance(over, str):
        return None
    texts = {key: str(v) for key in ("kind", "variant") if isinstance(v := event.get(key), str)}
    sizes = {key: v for key in NUMBERS if (v := _number(event.get(key))) is not None}
    ended = event.get("ended")
    return SearchAnswer(
        workload=workload,
        load={**texts, **sizes},
        over=over,
        slo=_slo_words(event.get("slo")),
        ended=ended if isinstance(ended, str) else None,
        best=_number(event.get("best")),
        missed=_number(event.get("missed")),
        lowest=min(_levels(event.get("levels")), default=None),
        is_certain=event.get("is_certain") is True,
        notes=tuple(str(n) for n in notes) if isinstance(notes, list) else (),
    )


def _slo_words(raw: object) -> str:
    if not isinstance(raw, Mapping):
        return ""
    try:
        slo = Slo.from_json(raw)
    except InputError:
        return ""
    return f"{slo.name} ({slo.words})" if slo.name else slo.words


def _levels(raw: object) -> list[float]:
    levels = raw if isinstance(raw, list) else []
    found = (_number(level.get("level")) for level in levels if isinstance(level, Mapping))
    return [v for v in found if v is not None]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
