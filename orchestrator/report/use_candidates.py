"""One configuration's cell against one use: its limits, what speaks against it, and whether it may win at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.report.notebook.identity import Configuration, is_foreign
from orchestrator.report.notebook.verdicts import verdict_of
from orchestrator.report.notes import falls_behind
from orchestrator.report.tables import PointRow, RunRow
from orchestrator.report.use_figures import USE_FIGURES, Told, UseFigure
from orchestrator.report.use_rules import Limit, Rule


class Answer(StrEnum):
    """In order, best first."""

    YES = "yes"
    CAREFUL = "careful"
    NO = "no"

    @property
    def place(self) -> int:
        return tuple(Answer).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One limit against one cell. told: None: not known. answer: None: does not count."""

    limit: Limit
    told: Told | None
    answer: Answer | None

    @property
    def figure(self) -> UseFigure:
        return USE_FIGURES[self.limit.figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A configuration's cell.

    Attributes:
        doubts: Why it is careful at best although every limit may be kept.
        refusals: Why it is a no, or may not win at all (`Recommendation.excluded`).
        rank: The first ranking figure.
    """

    configuration: Configuration
    row: RunRow
    point: PointRow
    answer: Answer
    checks: tuple[Check, ...]
    doubts: tuple[str, ...]
    refusals: tuple[str, ...]
    rank: Told

    @property
    def hosts(self) -> int:
        return max(1, len(self.row.run.hosts))

    @property
    def is_foreign(self) -> bool:
        return is_foreign(self.row)


def judged(rule: Rule, configuration: Configuration, row: RunRow, point: PointRow) -> Candidate | None:
    """None: it may not win, or has no figure to be ranked by."""
    rank = USE_FIGURES[rule.ranks[0]].read(point)
    if rank is None or barred(configuration, row, point):
        return None
    checks = tuple(_check(limit, point) for limit in rule.limits)
    doubts = tuple(_doubts(rule, row, checks))
    refusals = ("falls behind: requests pile up",) if falls_behind(point.figures) else ()
    answers = [c.answer for c in checks if c.answer is not None]
    answers += [Answer.CAREFUL] if doubts else []
    answers += [Answer.NO] if refusals else []
    return Candidate(
        configuration=configuration,
        row=row,
        point=point,
        answer=max(answers, key=lambda a: a.place, default=Answer.CAREFUL),
        checks=checks,
        doubts=doubts,
        refusals=refusals,
        rank=rank,
    )


def barred(configuration: Configuration, row: RunRow, point: PointRow) -> tuple[str, ...]:
    """Why the cell may not win, whatever its figures."""
    cell, found = point.figures.cell, []
    if not cell.is_valid:
        found.append(f"invalid: {', '.join(dict.fromkeys(str(g.get('name')) for g in cell.guards))}")
    if is_foreign(row):
        gate = row.run.source.get("gate")
        own = gate.get("verdict") if isinstance(gate, Mapping) else None
        return (*found, *(["its report says that its own check failed"] if own == "failed" else []))
    if row.run.is_ungated or cell.is_ungated:
        found.append("ungated")
    found += [_gate_words(verdict) for verdict in [verdict_of(row)] if verdict in ("failed", "error", "none")]
    newest = configuration.newest
    if newest is not row and (verdict := verdict_of(newest)) in ("failed", "error"):
        found.append(f"{_gate_words(verdict)} in its newest run")
    return tuple(dict.fromkeys(found))


def _gate_words(verdict: str) -> str:
    return {"failed": "failed Gate 0", "error": "Gate 0 could not tell", "none": "not gated"}[verdict]


def _check(limit: Limit, point: PointRow) -> Check:
    """A yes needs all of the interval on the good side; a no all of it beyond the second limit."""
    figure = USE_FIGURES[limit.figure]
    told = figure.read(point)
    if told is None:
        return Check(limit=limit, told=None, answer=Answer.CAREFUL if limit.is_required else None)
    worst, best = (told.high, told.low) if figure.is_less_good else (told.low, told.high)
    sign = 1 if figure.is_less_good else -1
    if sign * best > sign * limit.careful:
        answer = Answer.NO
    elif sign * worst <= sign * limit.yes and not _is_unproven(figure, told):
        answer = Answer.YES
    else:
        answer = Answer.CAREFUL
    return Check(limit=limit, told=told, answer=answer)


def _is_unproven(figure: UseFigure, told: Told) -> bool:
    """Something else stands for a promised share; a mean may stand for a median."""
    return bool(told.stand_in) and figure.key.endswith("p95")


def _doubts(rule: Rule, row: RunRow, checks: Sequence[Check]) -> Iterator[str]:
    if rule.caveat:
        yield rule.caveat
    gate = row.run.source.get("gate") if is_foreign(row) else None
    told_unstable = isinstance(gate, Mapping) and gate.get("verdict") == "unstable"
    if told_unstable or (not is_foreign(row) and verdict_of(row) == "unstable"):
        yield "its answers vary" if is_foreign(row) else "Gate 0 unstable"
    if not any(c.answer is not None for c in checks):
        yield "nothing to judge it by"
