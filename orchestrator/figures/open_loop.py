"""Did the arrivals come as they were asked for? Rate, dispersion, burstiness, lateness, and the queue at the cap."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.figures.distributions import chi_square_quantile, gamma_cdf, normal_quantile
from orchestrator.figures.plain import Plain
from orchestrator.figures.request import NS_PER_MS, NS_PER_S, lateness_ms, queue_wait_ms
from orchestrator.figures.saturation import OutstandingSlope, outstanding_slope
from orchestrator.figures.scope import by_repeat, values_of
from orchestrator.figures.stats import CONFIDENCE, Interval, Percentiles, percentiles
from orchestrator.records.record import CellRecord, RequestRecord

LATE_MS = 5.0
MIN_GAPS = 20
MIN_BINS = 10
PER_BIN = 5.0
KS_95 = 1.358


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispersion(Plain):
    """Variance / mean of the arrivals in equal bins: 1 for Poisson, below for steadier, above for bursty ones.

    Attributes:
        interval: Where a Poisson process lies in 95 of 100 cases: chi-square over its degrees of freedom.
        bin_s: Long enough for five expected arrivals, and at least a second.
    """

    index: float
    interval: Interval
    bins: int
    bin_s: float
    is_poisson: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Burstiness(Plain):
    """Gamma shape of the gaps, by moments: mean^2 / variance. 1: Poisson; large: a metronome."""

    shape: float
    interval: Interval
    gaps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFigures(Plain):
    """The arrivals of an open loop, as asked, as scheduled and as sent.

    Attributes:
        asked_rps: The cell's rate; None for a trace.
        scheduled_rps, sent_rps: (requests - 1) / (last - first), by due time and by first byte sent; repeats pooled.
        dispersion, burstiness: Of the sends; None for a ramp (no one rate) and with too few.
        scheduled_burstiness: Of the due times: what the drawn schedule has.
        ks: Largest distance between the distribution of the gaps between sends and the asked Gamma; `ks_limit`: what
            95 of 100 true ones stay below. None without rate and finite burstiness, for a ramp, and where a cap held
            requests back (the sends are the server's process then).
        late_share: Sends more than 5 ms after they were ready; `worst_late_ms`.
        queue_wait_ms: Due to ready, the wait at the cap, of all requests.
        outstanding: Whether the load was more than the server takes.
    """

    asked_rps: float | None
    scheduled_rps: float | None
    sent_rps: float | None
    dispersion: Dispersion | None
    burstiness: Burstiness | None
    scheduled_burstiness: Burstiness | None
    ks: float | None
    ks_limit: float | None
    late_share: float | None
    worst_late_ms: float | None
    queue_wait_ms: Percentiles
    outstanding: OutstandingSlope | None


def open_figures(cell: CellRecord, main: Sequence[RequestRecord]) -> OpenFigures | None:
    """Of the requests of phase `main`; None when there is none."""
    if not main:
        return None
    parts = by_repeat(main).values()
    due = [sorted(r.scheduled_ns for r in part) for part in parts]
    sent = [sorted(r.sent_ns for r in part if r.sent_ns is not None) for part in parts]
    late, waits = values_of(main, _late_ms), values_of(main, queue_wait_ms)
    is_stationary = not any(key.startswith("ramp") and value for key, value in cell.load.items())
    sent_gaps = _gaps(sent) if is_stationary else []
    is_held = any(w > LATE_MS for w in waits)
    distance = None if is_held else ks_distance(sent_gaps, rate_rps=cell.rate_rps, shape=cell.burstiness)
    return OpenFigures(
        asked_rps=cell.rate_rps,
        scheduled_rps=arrival_rate(due),
        sent_rps=arrival_rate(sent),
        dispersion=dispersion(sent) if is_stationary else None,
        burstiness=burstiness(sent_gaps),
        scheduled_burstiness=burstiness(_gaps(due)) if is_stationary else None,
        ks=distance,
        ks_limit=None if distance is None else KS_95 / math.sqrt(len(sent_gaps)),
        late_share=sum(v > LATE_MS for v in late) / len(late) if late else None,
        worst_late_ms=max(late, default=None),
        queue_wait_ms=percentiles(waits),
        outstanding=outstanding_slope(main),
    )


def arrival_rate(repeats_ns: Sequence[Sequence[int]]) -> float | None:
    """Gaps / their total length, requests/s, over ascending stamps of each repeat."""
    gaps = sum(len(at) - 1 for at in repeats_ns if len(at) > 1)
    length_ns = sum(at[-1] - at[0] for at in repeats_ns if len(at) > 1)
    return gaps / (length_ns / NS_PER_S) if length_ns > 0 else None


def dispersion(repeats_ns: Sequence[Sequence[int]]) -> Dispersion | None:
    """Bins begin after each repeat's first arrival, which would else stand in the first bin of every run; the bin that
    the last arrival cuts is left out. None with fewer than `MIN_BINS` bins.
    """
    rate = arrival_rate(repeats_ns)
    if rate is None:
        return None
    bin_s = max(1.0, PER_BIN / rate)
    counts: list[int] = []
    for at in repeats_ns:
        if len(at) > 1:
            bins = [0] * int((at[-1] - at[0]) / NS_PER_S / bin_s)
            for t in at[1:]:
                place = math.ceil((t - at[0]) / NS_PER_S / bin_s) - 1
                if 0 <= place < len(bins):
                    bins[place] += 1
            counts += bins
    if len(counts) < MIN_BINS or not any(counts):
        return None
    df, tail = len(counts) - 1, (1 - CONFIDENCE) / 2
    interval = Interval(low=chi_square_quantile(tail, df) / df, high=chi_square_quantile(1 - tail, df) / df)
    index = statistics.variance(counts) / statistics.fmean(counts)
    return Dispersion(index=index, interval=interval, bins=len(counts), bin_s=bin_s, is_poisson=index in interval)


def burstiness(gaps_s: Sequence[float]) -> Burstiness | None:
    """None with fewer than `MIN_GAPS` gaps, or when they do not vary at all.

    The interval is 1.96 x sqrt(2 k (k + 1) / n), the large-sample error of a Gamma shape k by moments.
    """
    n = len(gaps_s)
    variance = statistics.variance(gaps_s) if n >= MIN_GAPS else 0.0
    if variance <= 0:
        return None
    shape = statistics.fmean(gaps_s) ** 2 / variance
    half = normal_quantile((1 + CONFIDENCE) / 2) * math.sqrt(2 * shape * (shape + 1) / n)
    return Burstiness(shape=shape, interval=Interval(low=max(0.0, shape - half), high=shape + half), gaps=n)


def ks_distance(gaps_s: Sequence[float], *, rate_rps: float | None, shape: float | None) -> float | None:
    """Kolmogorov-Smirnov distance of gaps to Gamma(shape, mean 1 / rate).

    None without a rate or a finite shape (a metronome is a step: any jitter is half the distance), or with few gaps.
    """
    if rate_rps is None or shape is None or not math.isfinite(shape) or shape <= 0 or len(gaps_s) < MIN_GAPS:
        return None
    n = len(gaps_s)
    expected = [gamma_cdf(gap * rate_rps * shape, shape) for gap in sorted(gaps_s)]
    return max(max((i + 1) / n - p, p - i / n) for i, p in enumerate(expected))


def _gaps(repeats_ns: Sequence[Sequence[int]]) -> list[float]:
    return [(b - a) / NS_PER_S for at in repeats_ns for a, b in pairwise(at)]


def _late_ms(request: RequestRecord) -> float | None:
    """From ready; in an older record, which tells no ready, from due."""
    found = lateness_ms(request)
    if found is None and request.ready_ns is None and request.sent_ns is not None:
        return (request.sent_ns - request.scheduled_ns) / NS_PER_MS
    return found
