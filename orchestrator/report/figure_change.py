"""One headline figure of two cells: whether it may be compared, its change, and what is to be said of that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.figures.change import Change, Form, change_of
from orchestrator.figures.plain import plain
from orchestrator.figures.samples import Sample
from orchestrator.records.exchange.definitions import comparable, definition_of, other_sizes
from orchestrator.records.record import CellRecord
from orchestrator.report.headlines import Good, Headline
from orchestrator.report.text import number
from orchestrator.values import Json, canonical_json

NOT_THE_LOAD = frozenset({"id", "seed", "repeats", "rate"})
"""What two loads may have differently and be the same: other prompts of the same kind, or more repeats. The rate is
checked with the sizes."""


class Verdict(StrEnum):
    """Of B against A. UNDECIDED: there is a change but no interval, so nobody knows whether it is one."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """One headline figure of a pair of cells.

    Attributes:
        lane: Of a mixed load; empty for the whole cell.
        a, b: As measured; None: that cell does not have it.
        definitions: Their tags.
        change: None when it cannot be compared, or came in some repeats only.
        reason: Why it is not comparable, undecided, or no difference although the interval says one; else empty.
    """

    headline: Headline
    lane: str
    a: Sample | None
    b: Sample | None
    definitions: tuple[str | None, str | None]
    change: Change | None
    verdict: Verdict
    reason: str = ""

    @property
    def values(self) -> tuple[float | None, float | None]:
        """The means that the change is of; without one the means over repeats."""
        if self.change is not None:
            return self.change.a, self.change.b
        return None if self.a is None else self.a.mean, None if self.b is None else self.b.mean

    def is_worse_by(self, share: float) -> bool:
        """Surely worse by more than `share` of A (of a share: by more points): all of the interval lies beyond.

        From none to some is beyond any share.
        """
        if self.verdict is not Verdict.WORSE or self.change is None or self.change.interval is None:
            return False
        change, interval = self.change, self.change.interval
        limit = share if change.form is Form.RATIO or self.headline.is_share else share * abs(change.a)
        if self.headline.good is Good.MORE:
            return interval.high < change.form.neutral - limit
        return interval.low > change.form.neutral + limit

    def as_json(self) -> dict[str, Json]:
        sides = zip((self.a, self.b), self.values, self.definitions, strict=True)
        a, b = (None if s is None else _side_json(s, value, tag) for s, value, tag in sides)
        return {
            "figure": self.headline.key,
            "lane": self.lane,
            "unit": self.headline.unit,
            "good": self.headline.good.value,
            "a": a,
            "b": b,
            "change": plain(self.change),
            "verdict": self.verdict.value,
            "reason": self.reason,
        }


def figure_change(
    cell_a: CellRecord,
    cell_b: CellRecord,
    headline: Headline,
    a: Sample | None,
    b: Sample | None,
    *,
    lane: str = "",
    force: bool = False,
) -> FigureChange:
    """
    Args:
        force: Compare although the definitions, the statistics, the methods or the places that the load came from
            differ. A broken guard, another load, another service level and a missing figure stay refused.
    """
    refusal = _refusal(cell_a, cell_b, headline, a, b, force=force)
    change = None if refusal or a is None or b is None else change_of(a, b, is_share=headline.is_share)
    bars = [bar for cell in (cell_a, cell_b) if (bar := headline.clock(cell)) is not None]
    verdict, reason = (
        (Verdict.NOT_COMPARABLE, refusal) if refusal else _verdict(headline, a, b, change, max(bars, default=None))
    )
    return FigureChange(
        headline=headline,
        lane=lane,
        a=a,
        b=b,
        definitions=(_tag(cell_a, a), _tag(cell_b, b)),
        change=change,
        verdict=verdict,
        reason=reason,
    )


def _refusal(
    a: CellRecord, b: CellRecord, headline: Headline, of_a: Sample | None, of_b: Sample | None, *, force: bool
) -> str:
    """Why the figure must not be compared; empty when it may."""
    broken = [(name, cell) for name, cell in (("A", a), ("B", b)) if not cell.is_valid]
    if broken:
        return "; ".join(f"invalid in {name}: {', '.join(_guards(cell))}" for name, cell in broken)
    if load := _other_load(a, b):
        return load
    if of_a is None or of_b is None:
        return f"{'A' if of_a is None else 'B'} has none"
    if headline.key == "attainment" and a.slo != b.slo:
        return "other service levels"
    if force:
        return ""
    if of_a.figure != of_b.figure:
        return f"other figures: {of_a.figure} and {of_b.figure}"
    if reason := comparable(a, b, of_a.figure):
        return reason
    if of_a.statistic != of_b.statistic:
        return f"other statistics: {of_a.statistic} and {of_b.statistic}"
    methods = [s.method or "measured" for s in (of_a, of_b)]
    return f"other methods: {methods[0]} and {methods[1]}" if methods[0] != methods[1] else ""


def _guards(cell: CellRecord) -> list[str]:
    return list(dict.fromkeys(str(g.get("name", "a guard")) for g in cell.guards))


def _other_load(a: CellRecord, b: CellRecord) -> str:
    """The first size or term that differs; a term that one record does not have is of another version of the format."""
    if sizes := other_sizes(a, b):
        return sizes
    for key in a.load:
        if key in b.load and key not in NOT_THE_LOAD and canonical_json(a.load[key]) != canonical_json(b.load[key]):
            return f"another load: {key} {_short(a.load[key])} and {_short(b.load[key])}"
    return ""


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _verdict(
    headline: Headline, a: Sample | None, b: Sample | None, change: Change | None, bar: float | None
) -> tuple[Verdict, str]:
    """
    Args:
        bar: What the client's own clock can tell apart, in the figure's unit; None: unknown.
    """
    if change is None:
        return Verdict.UNDECIDED, "it came in some repeats only: too many requests failed in the others"
    if change.interval is None:
        return Verdict.UNDECIDED, _why_no_interval(a, b)
    if change.is_none:
        return Verdict.NO_DIFFERENCE, ""
    if bar is not None and abs(change.b - change.a) <= bar:
        return Verdict.NO_DIFFERENCE, f"within the client's own error, {number(bar, 3)} {headline.unit}"
    is_more = change.value > change.form.neutral
    return (Verdict.BETTER if is_more is (headline.good is Good.MORE) else Verdict.WORSE), ""


def _why_no_interval(a: Sample | None, b: Sample | None) -> str:
    samples = [(name, s) for name, s in (("A", a), ("B", b)) if s is not None]
    if any(s.is_stated for _, s in samples):
        return "stated, no interval"
    if any(not s.values for _, s in samples):
        return "known of all repeats together only, no interval"
    alone = [name for name, s in samples if len(s.values) < 2]
    return f"one repeat only in {' and '.join(alone)}, no interval"


def _tag(cell: CellRecord, sample: Sample | None) -> str | None:
    return None if sample is None else definition_of(cell, sample.figure)


def _side_json(sample: Sample, value: float | None, tag: str | None) -> dict[str, Json]:
    return {
        "value": plain(value),
        "statistic": sample.statistic,
        "repeats": [plain(v) for v in sample.values],
        "requests": sample.judged,
        "definition": tag,
        "method": ", ".join(w for w in ("stated" if sample.is_stated else "measured", sample.method) if w),
    }
