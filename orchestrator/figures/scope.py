"""Which requests count, and over which time: only phase `main`, each repeat by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from orchestrator.figures.request import NS_PER_S
from orchestrator.figures.stats import Spread, spread
from orchestrator.records.record import CellRecord, Failure, RequestRecord

MAIN = "main"
OPEN_KINDS = frozenset({"open", "overload", "replay"})
"""Loads whose arrivals do not wait for answers: their headline latency counts from the schedule."""

Value = Callable[[RequestRecord], float | None]
Window = tuple[int, int]


def of_phase(requests: Iterable[RequestRecord], phase: str = MAIN) -> list[RequestRecord]:
    return [r for r in requests if r.phase == phase]


def part_of(requests: Iterable[RequestRecord], part: str) -> list[RequestRecord]:
    """Those of a lane, or of a phase without lanes, of this name."""
    return [r for r in requests if (r.lane or r.phase) == part]


def main_of(cell: CellRecord, requests: Iterable[RequestRecord]) -> list[RequestRecord]:
    """What a cell's figures are of: phase `main`, and of an overload only the overload itself."""
    main = of_phase(requests)
    return part_of(main, MAIN) if cell.kind == "overload" else main


def good_of(requests: Iterable[RequestRecord]) -> list[RequestRecord]:
    return [r for r in requests if r.failure is None]


def is_cut_by_us(request: RequestRecord) -> bool:
    """The sweep ended while it ran: neither the server's success nor its failure."""
    return request.failure == Failure.CANCELLED


def by_repeat(requests: Iterable[RequestRecord]) -> dict[int, list[RequestRecord]]:
    found: dict[int, list[RequestRecord]] = {}
    for r in requests:
        found.setdefault(r.repeat, []).append(r)
    return dict(sorted(found.items()))


def values_of(requests: Iterable[RequestRecord], value: Value) -> list[float]:
    """The values that were measured."""
    return [v for r in requests if (v := value(r)) is not None]


def adjusted_values(requests: Iterable[RequestRecord], value: Value) -> list[float]:
    """The same with a failure as infinite; what we cut ourselves is left out."""
    found = []
    for r in requests:
        if r.failure is None:
            if (v := value(r)) is not None:
                found.append(v)
        elif not is_cut_by_us(r):
            found.append(math.inf)
    return found


def span_of(requests: Iterable[RequestRecord]) -> tuple[int, int] | None:
    """First byte sent to last response ended; None when none was sent or none ended."""
    sent, ended = [], []
    for r in requests:
        if r.sent_ns is not None:
            sent.append(r.sent_ns)
        if r.end_ns is not None:
            ended.append(r.end_ns)
    return (min(sent), max(ended)) if sent and ended and max(ended) > min(sent) else None


def repeat_spans(cell: CellRecord, requests: Sequence[RequestRecord]) -> Mapping[int, Window]:
    """`[start, end]` in ns of phase `main` by repeat: as recorded, else worked out from the requests.

    Args:
        requests: All of the cell, whatever their phase.
    """
    if len(cell.spans_ns) > max((r.repeat for r in requests), default=-1):
        return {i: (start, end) for i, (start, end) in enumerate(cell.spans_ns) if end > start}
    found = {repeat: span_of(part) for repeat, part in by_repeat(of_phase(requests)).items()}
    return {repeat: span for repeat, span in found.items() if span is not None}


def main_spans(cell: CellRecord, requests: Sequence[RequestRecord]) -> Mapping[int, Window]:
    """`repeat_spans` of what `main_of` gives.

    Args:
        requests: All of the cell, whatever their phase.
    """
    if cell.kind != "overload":
        return repeat_spans(cell, requests)
    parts = by_repeat(main_of(cell, requests))
    return {repeat: span for repeat, part in parts.items() if (span := span_of(part)) is not None}


def seconds(span: tuple[int, int]) -> float:
    return (span[1] - span[0]) / NS_PER_S


def rate_over(
    spans: Mapping[int, tuple[int, int]],
    good: Sequence[RequestRecord],
    count: Callable[[RequestRecord], int | None],
) -> Spread | None:
    """Counted things per second of each repeat's span, as a mean over repeats.

    A repeat with one good request that is not counted gives no rate: the rest would read as a slower server.
    """
    rates = []
    parts = by_repeat(good)
    for repeat, span in spans.items():
        counts = [count(r) for r in parts.get(repeat, ())]
        known = [c for c in counts if c is not None]
        if known and len(known) == len(counts):
            rates.append(sum(known) / seconds(span))
    return spread(rates)
