"""What a cell's raw stamps mean: rates and latencies, derived when reading, never stored.

    output_tok_per_s     output tokens of a repeat's good requests / (last end - first byte sent); mean over repeats
    per_user_tok_per_s   median over requests of output tokens / (end - first byte sent)
    decode_tok_per_s     median over requests of 1 / TPOT
    ttft_ms              first token (content, reasoning or tool call) - first byte sent
    tpot_ms              (last token - first token) / tokens after the first token event
    itl_ms               gaps between events that carried tokens: per chunk, not per token
    e2e_ms               end of the response - first byte sent
    efficiency           output_tok_per_s(c) / (c x output_tok_per_s(1)), same kind and sizes
    batch_s              derived: answers x output tokens / output_tok_per_s, unless that many answers really ran

Failures are in no mean; in the adjusted percentiles they count as infinite.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from orchestrator.figures.stats import Percentiles, Spread, percentile, percentiles, spread
from orchestrator.records.record import CellRecord, RequestRecord

NS_PER_MS = 1e6
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFigures:
    """All figures of one cell. None: not measured, or the server did not tell what is needed."""

    cell: CellRecord
    requests: int
    good: int
    failures: Mapping[str, int] = field(default_factory=dict)
    output_tok_per_s: Spread | None
    prompt_tok_per_s: Spread | None
    per_user_tok_per_s: float | None
    decode_tok_per_s: float | None
    ttft_ms: Percentiles
    ttft_adjusted_ms: Percentiles
    tpot_ms: Percentiles
    itl_ms: Percentiles
    e2e_ms: Percentiles
    e2e_adjusted_ms: Percentiles
    cached_share: float | None
    output_tok: int | None
    wall_s: float

    @property
    def is_valid(self) -> bool:
        return self.cell.is_valid


def cell_figures(cell: CellRecord, requests: Sequence[RequestRecord]) -> CellFigures:
    """Derive everything from one cell's raw record."""
    good = [r for r in requests if r.failure is None]
    ttft = [v for r in good if (v := _ms(r.sent_ns, r.first_token_ns)) is not None]
    e2e = [v for r in good if (v := _ms(r.sent_ns, r.end_ns)) is not None]
    tpot = [v for r in good if (v := tpot_ms(r)) is not None]
    lost = [math.inf] * (len(requests) - len(good))
    return CellFigures(
        cell=cell,
        requests=len(requests),
        good=len(good),
        failures=dict(Counter(r.failure for r in requests if r.failure is not None)),
        output_tok_per_s=_rate(cell, good, lambda r: r.output_tok),
        prompt_tok_per_s=_rate(cell, good, lambda r: r.prompt_tok),
        per_user_tok_per_s=percentile([v for r in good if (v := _user_rate(r)) is not None], 0.5),
        decode_tok_per_s=percentile([1000 / v for v in tpot if v > 0], 0.5),
        ttft_ms=percentiles(ttft),
        ttft_adjusted_ms=percentiles(ttft + lost),
        tpot_ms=percentiles(tpot),
        itl_ms=percentiles([gap for r in good for gap in itl_ms(r)]),
        e2e_ms=percentiles(e2e),
        e2e_adjusted_ms=percentiles(e2e + lost),
        cached_share=_cached_share(good),
        output_tok=_total(good),
        wall_s=cell.duration_s,
    )


def tpot_ms(request: RequestRecord) -> float | None:
    """Time per output token after the first token event, ms; None when the server told no token counts.

    The first event's own tokens are left out of the divisor: under speculation it may carry several.
    """
    if request.first_token_ns is None or request.last_token_ns is None or request.output_tok is None:
        return None
    if not request.events or request.events[0][1] is None:
        return None
    after_first = request.output_tok - request.events[0][1]
    span_ns = request.last_token_ns - request.first_token_ns
    return span_ns / NS_PER_MS / after_first if after_first > 0 and span_ns > 0 else None


def itl_ms(request: RequestRecord) -> tuple[float, ...]:
    """Gaps between successive events that carried tokens, ms; n - 1 of them, a chunk of k tokens counts once."""
    stamps = [t for t, _ in request.events]
    return tuple((b - a) / NS_PER_MS for a, b in pairwise(stamps))


def efficiency(point: CellFigures, single: CellFigures | None) -> float | None:
    """Share of perfect scaling from the one-user cell of the same kind and sizes."""
    if single is None or point.output_tok_per_s is None or single.output_tok_per_s is None:
        return None
    perfect = point.cell.concurrency * single.output_tok_per_s.mean
    return point.output_tok_per_s.mean / perfect if perfect > 0 else None


def find_single(point: CellFigures, others: Sequence[CellFigures]) -> CellFigures | None:
    """The one-user cell that `efficiency` compares with."""
    same = (point.cell.workload, point.cell.kind, point.cell.prompt_tok, point.cell.output_tok)
    for other in others:
        key = (other.cell.workload, other.cell.kind, other.cell.prompt_tok, other.cell.output_tok)
        if key == same and other.cell.concurrency == 1:
            return other
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTime:
    """How long `answers` answers take at a cell's rate, seconds. `kind`: `measured` only if that many really ran."""

    answers: int
    seconds: float
    kind: str


def batch_time(point: CellFigures, answers: int) -> BatchTime | None:
    """None when no rate was measured."""
    if point.output_tok_per_s is None or point.output_tok_per_s.mean <= 0:
        return None
    spans = [(end - start) / NS_PER_S for start, end in point.cell.spans_ns]
    if point.cell.requests_per_repeat == answers and point.good == point.requests and spans:
        return BatchTime(answers=answers, seconds=sum(spans) / len(spans), kind="measured")
    seconds = answers * point.cell.output_tok / point.output_tok_per_s.mean
    return BatchTime(answers=answers, seconds=seconds, kind="derived")


def _ms(start_ns: int | None, end_ns: int | None) -> float | None:
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / NS_PER_MS


def _user_rate(request: RequestRecord) -> float | None:
    span_ms = _ms(request.sent_ns, request.end_ns)
    if span_ms is None or span_ms <= 0 or request.output_tok is None:
        return None
    return request.output_tok / span_ms * 1000


def _rate(
    cell: CellRecord, good: Sequence[RequestRecord], count: Callable[[RequestRecord], int | None]
) -> Spread | None:
    rates = []
    for repeat, (start, end) in enumerate(cell.spans_ns):
        counts = [n for r in good if r.repeat == repeat and (n := count(r)) is not None]
        whole = len(counts) == sum(r.repeat == repeat for r in good)
        if end > start and counts and whole:
            rates.append(sum(counts) / ((end - start) / NS_PER_S))
    return spread(rates)


def _cached_share(good: Sequence[RequestRecord]) -> float | None:
    pairs = [(r.cached_tok, r.prompt_tok) for r in good if r.cached_tok is not None and r.prompt_tok]
    prompt = sum(p for _, p in pairs if p is not None)
    return sum(c for c, _ in pairs if c is not None) / prompt if prompt and len(pairs) == len(good) else None


def _total(good: Sequence[RequestRecord]) -> int | None:
    counts = [r.output_tok for r in good]
    return None if not counts or None in counts else sum(c for c in counts if c is not None)
