"""Past capacity: does the server queue, shed, break, or cope, how long is the tail, and how soon is it well again?

Three parts of one repeat: `before` (a load it takes), `main` (more than that), `after` (the first load again). They are
lanes of one phase, for the backlog of `main` must still be there when `after` begins; phases of these names read alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.figures.plain import Plain
from orchestrator.figures.request import NS_PER_S, ttft_scheduled_ms
from orchestrator.figures.saturation import OutstandingSlope, outstanding_slope
from orchestrator.figures.scope import MAIN, by_repeat, good_of, is_cut_by_us, part_of, values_of
from orchestrator.figures.stats import nearest_rank
from orchestrator.records.record import Failure, RequestRecord

MIN_TAIL = 20
"""Values that a p95 of this page needs; it is compared with another one, not published by itself."""
GROWN = 2.0
FEW = 0.01
SETTLED = 3
SHED_STATUS = (429, 503)


class OverloadVerdict(StrEnum):
    """COPES: nothing grew. QUEUES: all are served, ever later. SHEDS: it refuses some at once (429, 503) and serves the
    rest. BREAKS: requests fail in other ways, or the load of before is no longer served after.
    """

    COPES = "copes"
    QUEUES = "queues"
    SHEDS = "sheds"
    BREAKS = "breaks"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadFigures(Plain):
    """All TTFT from the schedule, ms.

    Attributes:
        refused_share: Of the `main` requests: answered 429 or 503. waited_out_share: ended by the client's time limit.
        broken_share: Failed in any other way. What the end of the sweep cut is in none.
        after_failed_share: Failed requests of `after`.
        ttft_p95_before_ms, ttft_p95_main_ms: Of good requests; None with fewer than 20.
        tail_growth: Their ratio.
        recovery_s: From the last arrival of `main` to the first of `after` that, with the two that follow it, has its
            first token within 2 x `ttft_p95_before_ms`; the worst repeat. None: never, or not measured.
        has_recovered: None: there is no `after`, or no `before` to compare with.
        outstanding: Slope of due and unanswered requests through `main`.
    """

    verdict: OverloadVerdict
    refused_share: float
    waited_out_share: float
    broken_share: float
    after_failed_share: float | None
    ttft_p95_before_ms: float | None
    ttft_p95_main_ms: float | None
    tail_growth: float | None
    recovery_s: float | None
    has_recovered: bool | None
    outstanding: OutstandingSlope | None


def overload_figures(requests: Sequence[RequestRecord]) -> OverloadFigures | None:
    """Of all parts of a cell; None without a `main` request."""
    before, main, after = (part_of(requests, part) for part in ("before", "main", "after"))
    if not main:
        return None
    judged = [r for r in main if not is_cut_by_us(r)]
    refused, waited, broken = (
        _share(sum(_fate(r) == fate for r in judged), len(judged)) for fate in ("refused", "waited", "broken")
    )
    after_failed = _share(sum(r.failure is not None and not is_cut_by_us(r) for r in after), len(after))
    p95_before, p95_main = _p95(before), _p95(main)
    growth = p95_main / p95_before if p95_before and p95_main is not None else None
    slope = outstanding_slope(main)
    recovery = _recovery(requests, p95_before)
    return OverloadFigures(
        verdict=_verdict(
            refused=refused or 0.0,
            waited=waited or 0.0,
            broken=broken or 0.0,
            after_failed=after_failed or 0.0,
            is_growing=(growth is not None and growth >= GROWN) or (slope is not None and slope.is_growing),
        ),
        refused_share=refused or 0.0,
        waited_out_share=waited or 0.0,
        broken_share=broken or 0.0,
        after_failed_share=after_failed,
        ttft_p95_before_ms=p95_before,
        ttft_p95_main_ms=p95_main,
        tail_growth=growth,
        recovery_s=recovery if recovery is not None and recovery >= 0 else None,
        has_recovered=None if recovery is None else recovery >= 0,
        outstanding=slope,
    )


def _verdict(*, refused: float, waited: float, broken: float, after_failed: float, is_growing: bool) -> OverloadVerdict:
    """The worst that applies. Requests that the client gave up on were queued."""
    if broken > FEW or after_failed > 0.5:
        return OverloadVerdict.BREAKS
    if refused > FEW:
        return OverloadVerdict.SHEDS
    return OverloadVerdict.QUEUES if is_growing or waited > FEW else OverloadVerdict.COPES


def _fate(request: RequestRecord) -> str:
    if request.failure is None:
        return "good"
    if request.http_status in SHED_STATUS:
        return "refused"
    return "waited" if request.failure == Failure.TIMEOUT else "broken"


def _share(count: int, of: int) -> float | None:
    return count / of if of else None


def _p95(requests: Sequence[RequestRecord]) -> float | None:
    values = sorted(values_of(good_of(requests), ttft_scheduled_ms))
    return nearest_rank(values, 0.95) if len(values) >= MIN_TAIL else None


NEVER = -1.0


def _recovery(requests: Sequence[RequestRecord], p95_before_ms: float | None) -> float | None:
    """Seconds, the worst repeat; `NEVER` when one never did; None when it cannot be told."""
    if p95_before_ms is None:
        return None
    found = []
    for part in by_repeat(requests).values():
        main = part_of(part, MAIN)
        after = sorted(part_of(part, "after"), key=lambda r: r.scheduled_ns)
        if main and after:
            last = max(r.scheduled_ns for r in main)
            is_well = [_is_well(r, GROWN * p95_before_ms) for r in after]
            first = next((i for i in range(len(after)) if all(is_well[i : i + SETTLED])), None)
            found.append(NEVER if first is None else (after[first].scheduled_ns - last) / NS_PER_S)
    if not found:
        return None
    return NEVER if NEVER in found else max(found)


def _is_well(request: RequestRecord, limit_ms: float) -> bool:
    value = ttft_scheduled_ms(request)
    return request.failure is None and value is not None and value <= limit_ms
