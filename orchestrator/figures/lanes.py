"""Loads side by side: each lane's own figures, and how much slower it is than alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.figures.plain import Plain
from orchestrator.figures.ratio import Moments, Ratio, moments, ratio
from orchestrator.figures.request import e2e_ms, tpot_ms, ttft_ms
from orchestrator.figures.scope import by_repeat, good_of, rate_over, span_of, values_of
from orchestrator.figures.stats import Percentiles, Spread, percentiles
from orchestrator.records.record import RequestRecord

if TYPE_CHECKING:
    from orchestrator.figures.cell import CellFigures

TOGETHER = "together"
ALONE = "alone-"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFigures(Plain):
    """One lane of a cell. Rates are over the lane's own time (its first byte sent to its last response ended).

    `of_ttft`, `of_tpot`, `of_rate`: what a ratio to the lane alone needs; the rate's has one value a repeat.
    """

    lane: str
    requests: int
    good: int
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    e2e_ms: Percentiles
    output_tok_per_s: Spread | None
    prompt_tok_per_s: Spread | None
    of_ttft: Moments | None
    of_tpot: Moments | None
    of_rate: Moments | None


def lane_figures(main: Sequence[RequestRecord]) -> Mapping[str, LaneFigures]:
    """By name, in the order of their first requests; empty when no request names a lane."""
    names = dict.fromkeys(r.lane for r in main if r.lane)
    return {name: _lane(name, [r for r in main if r.lane == name]) for name in names}


def _lane(name: str, part: Sequence[RequestRecord]) -> LaneFigures:
    good = good_of(part)
    spans = {i: span for i, requests in by_repeat(part).items() if (span := span_of(requests)) is not None}
    ttft, tpot = values_of(good, ttft_ms), values_of(good, tpot_ms)
    rates = [rate_over({i: span}, good, lambda r: r.output_tok) for i, span in spans.items()]
    return LaneFigures(
        lane=name,
        requests=len(part),
        good=len(good),
        ttft_ms=percentiles(ttft),
        tpot_ms=percentiles(tpot),
        e2e_ms=percentiles(values_of(good, e2e_ms)),
        output_tok_per_s=rate_over(spans, good, lambda r: r.output_tok),
        prompt_tok_per_s=rate_over(spans, good, lambda r: r.prompt_tok),
        of_ttft=moments(ttft),
        of_tpot=moments(tpot),
        of_rate=moments([rate.mean for rate in rates if rate is not None]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown(Plain):
    """A lane beside the others / the same lane alone. TTFT and TPOT above 1, and a rate below 1, mean slower."""

    lane: str
    ttft: Ratio | None
    tpot: Ratio | None
    rate: Ratio | None


def slowdown(together: LaneFigures, alone: LaneFigures) -> Slowdown:
    return Slowdown(
        lane=together.lane,
        ttft=ratio(together.of_ttft, alone.of_ttft),
        tpot=ratio(together.of_tpot, alone.of_tpot),
        rate=ratio(together.of_rate, alone.of_rate),
    )


def slowdowns(point: CellFigures, others: Sequence[CellFigures]) -> tuple[Slowdown, ...]:
    """Of each lane of a `together` cell that was run alone too, in a valid cell of the same workload."""
    if point.cell.variant != TOGETHER:
        return ()
    found = []
    for name, lane in point.lanes.items():
        alone = next((o for o in others if _is_alone(point, o, name)), None)
        if alone is not None and name in alone.lanes:
            found.append(slowdown(lane, alone.lanes[name]))
    return tuple(found)


def _is_alone(point: CellFigures, other: CellFigures, name: str) -> bool:
    cell = other.cell
    return cell.workload == point.cell.workload and cell.variant == ALONE + name and other.is_valid
