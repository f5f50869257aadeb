"""Which requests met a service level. An error is a miss; what cannot be judged is a class of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.figures.plain import Plain
from orchestrator.figures.request import NS_PER_S, tpot_ms
from orchestrator.figures.scope import Window, by_repeat, is_cut_by_us, seconds
from orchestrator.figures.slo import Slo
from orchestrator.figures.stats import Interval, Spread, spread, wilson
from orchestrator.records.record import RequestRecord
from orchestrator.values import Json


class Met(StrEnum):
    """What became of one request."""

    MET = "met"
    MISSED = "missed"
    UNKNOWN = "unknown"


class SloVerdict(StrEnum):
    """UNDECIDED: the interval of the attainment encloses the share that is asked for, or too much is unknown."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput(Plain):
    """One service level over one cell.

    Attributes:
        slo: As it is printed beside the verdict.
        met, missed, unknown: Requests. Failures are in `missed`; `unknown`: cut by the end of the sweep before its
            limits had passed, or without the tokens that a limit needs.
        attainment: met / (met + missed); `interval`: Wilson's.
        requests_per_s: `met` per second of the run, mean over repeats.
        verdict: With the unknown ones counted against it: `met` needs the interval's low end at the share even if all
            of them missed, `missed` its high end below even if all of them met.
    """

    slo: Mapping[str, Json]
    words: str
    met: int
    missed: int
    unknown: int
    attainment: float | None
    interval: Interval | None
    requests_per_s: Spread | None
    verdict: SloVerdict


def judge(request: RequestRecord, slo: Slo) -> Met:
    """MISSED as soon as one limit is known to be broken, whatever the others."""
    if request.failure is not None and not is_cut_by_us(request):
        return Met.MISSED
    start = request.scheduled_ns if slo.start == "schedule" else request.sent_ns
    found = [
        _within(start, request.first_token_ns, request.end_ns, slo.ttft_s),
        _within(start, None if is_cut_by_us(request) else request.end_ns, request.end_ns, slo.e2e_s),
        _judge_tpot(request, slo.tpot_ms),
    ]
    if Met.MISSED in found:
        return Met.MISSED
    return Met.UNKNOWN if Met.UNKNOWN in found else Met.MET


def _within(start_ns: int | None, at_ns: int | None, seen_until_ns: int | None, limit_s: float | None) -> Met:
    """`seen_until_ns`: how long was watched; what had not come when the limit had passed is a miss."""
    if limit_s is None:
        return Met.MET
    if start_ns is None:
        return Met.UNKNOWN
    if at_ns is not None:
        return Met.MET if at_ns - start_ns <= limit_s * NS_PER_S else Met.MISSED
    is_over = seen_until_ns is not None and seen_until_ns - start_ns > limit_s * NS_PER_S
    return Met.MISSED if is_over else Met.UNKNOWN


def _judge_tpot(request: RequestRecord, limit_ms: float | None) -> Met:
    if limit_ms is None:
        return Met.MET
    value = tpot_ms(request)
    if value is None:
        return Met.UNKNOWN
    return Met.MET if value <= limit_ms else Met.MISSED


def goodput(main: Sequence[RequestRecord], spans: Mapping[int, Window], slo: Slo) -> Goodput:
    """Judge all requests of phase `main`."""
    judged = {repeat: [judge(r, slo) for r in part] for repeat, part in by_repeat(main).items()}
    found = [m for part in judged.values() for m in part]
    met, missed, unknown = (found.count(m) for m in (Met.MET, Met.MISSED, Met.UNKNOWN))
    rates = [part.count(Met.MET) / seconds(spans[repeat]) for repeat, part in judged.items() if repeat in spans]
    return Goodput(
        slo=slo.as_json(),
        words=slo.words,
        met=met,
        missed=missed,
        unknown=unknown,
        attainment=met / (met + missed) if met + missed else None,
        interval=wilson(met, met + missed),
        requests_per_s=spread(rates),
        verdict=slo_verdict(met, missed, unknown, slo.share),
    )


def slo_verdict(met: int, missed: int, unknown: int, share: float) -> SloVerdict:
    worst, best = wilson(met, met + missed + unknown), wilson(met + unknown, met + missed + unknown)
    if worst is None or best is None:
        return SloVerdict.UNDECIDED
    # All of many at a share of 1 can never be proven by an interval; there the count itself decides.
    if share >= 1:
        return SloVerdict.MISSED if missed else SloVerdict.UNDECIDED if unknown else SloVerdict.MET
    if worst.low >= share:
        return SloVerdict.MET
    return SloVerdict.MISSED if best.high < share else SloVerdict.UNDECIDED
