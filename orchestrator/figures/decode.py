"""A cell's totals for decode, and how many ran at once.

One name, three figures, all from the same event list: while every stream decodes, in steady state, over the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.figures.columns import Floats, event_columns
from orchestrator.figures.plain import Plain
from orchestrator.figures.request import NS_PER_S
from orchestrator.figures.scope import OPEN_KINDS, Window, by_repeat, good_of, rate_over, seconds
from orchestrator.figures.stats import Spread, spread
from orchestrator.figures.windows import levels, tokens_within, windows_at_least
from orchestrator.records.record import CellRecord, RequestRecord

STEADY_SHARE = 0.95
BRIDGE_NS = 10_000_000
"""A closed loop refills a place within this; the dip between is the client's and ends no steady window."""
PEAK_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency(Plain):
    """Requests in flight, first byte sent to response ended.

    Attributes:
        asked: The cell's concurrency; None for a load without one.
        peak: Exact, the highest of all repeats.
        mean: By Little's law: the sum of all times in flight / the time of the repeats.
    """

    asked: int | None
    peak: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeTotals(Plain):
    """Output tokens per second of all streams together, as a mean over repeats.

    Attributes:
        all_decoding: While all streams of the cell decode at once (between first and last token each). None: they
            never did, or the tokens of an event are unknown.
        steady: While at least `STEADY_SHARE` of `steady_of` are in flight.
        steady_of: The asked concurrency of a closed load, else the peak.
        steady_s: How long that was, all repeats together.
        run: Over the whole run, first byte sent to last response ended, prefill and drain included.
        peak_tok_per_s: Most tokens in any window of 1 s, by tokens and not by chunks; None for runs shorter than that.
    """

    all_decoding: Spread | None
    steady: Spread | None
    steady_of: int | None
    steady_s: float | None
    run: Spread | None
    peak_tok_per_s: float | None


def concurrency_of(cell: CellRecord, main: Sequence[RequestRecord], spans: Mapping[int, Window]) -> Concurrency | None:
    """None when no request was sent."""
    flights = {repeat: _in_flight(part, spans.get(repeat)) for repeat, part in by_repeat(main).items()}
    if not any(flights.values()):
        return None
    total_s = sum(seconds(s) for s in spans.values())
    flown_s = sum(seconds(w) for part in flights.values() for w in part)
    return Concurrency(
        asked=cell.concurrency or None,
        peak=max(levels(part).peak for part in flights.values()),
        mean=flown_s / total_s if total_s > 0 else None,
    )


def decode_totals(cell: CellRecord, main: Sequence[RequestRecord], spans: Mapping[int, Window]) -> DecodeTotals:
    """Of the good requests of phase `main`; failed ones are in flight all the same."""
    parts = by_repeat(main)
    asked = cell.concurrency if cell.kind not in OPEN_KINDS and cell.concurrency > 0 else None
    flights = {repeat: levels(_in_flight(part, spans.get(repeat))) for repeat, part in parts.items()}
    peak = max((found.peak for found in flights.values()), default=0)
    all_rates: list[float] = []
    steady_rates: list[float] = []
    peaks: list[float] = []
    steady_s = 0.0
    for repeat, part in parts.items():
        good = good_of(part)
        events = event_columns(good)
        if not good or not events.is_counted or repeat not in spans:
            continue
        order = np.argsort(events.at_ns, kind="stable")
        at, tok = events.at_ns[order], events.tok[order]
        streams = min(asked or peak, len(part))
        if rate := _rate_within(_all_decoding(good, streams), at, tok):
            all_rates.append(rate[0])
        windows = windows_at_least(flights[repeat], STEADY_SHARE * (asked or peak), bridge_ns=BRIDGE_NS)
        if rate := _rate_within(windows, at, tok):
            steady_rates.append(rate[0])
            steady_s += rate[1]
        if spans[repeat][1] - spans[repeat][0] >= PEAK_NS:
            peaks.append(peak_tok_per_s(at, tok))
    return DecodeTotals(
        all_decoding=spread(all_rates),
        steady=spread(steady_rates),
        steady_of=(asked or peak) or None,
        steady_s=steady_s if steady_rates else None,
        run=rate_over(spans, good_of(main), lambda r: r.output_tok),
        peak_tok_per_s=max(peaks, default=None),
    )


def peak_tok_per_s(at_ns: Floats, tok: Floats) -> float:
    """The most tokens in any window of one second that begins with an event; ascending times, shape (events,)."""
    if len(at_ns) == 0:
        return 0.0
    upto = np.concatenate([[0.0], np.cumsum(tok)])
    ends = np.searchsorted(at_ns, at_ns + PEAK_NS, side="left")
    starts = np.searchsorted(at_ns, at_ns, side="left")
    return float((upto[ends] - upto[starts]).max()) / (PEAK_NS / NS_PER_S)


def _all_decoding(good: Sequence[RequestRecord], streams: int) -> tuple[Window, ...]:
    """From the last first token to the first last token of a batch; the same again and again in a closed loop."""
    spans = [
        (r.first_token_ns, r.last_token_ns)
        for r in good
        if r.first_token_ns is not None and r.last_token_ns is not None and r.last_token_ns > r.first_token_ns
    ]
    return windows_at_least(levels(spans), streams) if len(spans) >= streams > 0 else ()


def _rate_within(windows: Sequence[Window], at: Floats, tok: Floats) -> tuple[float, float] | None:
    """Tokens per second, and the seconds."""
    length_s = sum(seconds(w) for w in windows)
    return (tokens_within(windows, at, tok) / length_s, length_s) if length_s > 0 else None


def _in_flight(requests: Sequence[RequestRecord], span: Window | None) -> list[Window]:
    """A request without an end was in flight until the repeat's."""
    last = span[1] if span is not None else 0
    found = []
    for r in requests:
        if r.sent_ns is not None:
            end = r.end_ns if r.end_ns is not None else last
            if end > r.sent_ns:
                found.append((r.sent_ns, end))
    return found
