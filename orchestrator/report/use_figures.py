"""The figures that decide what a configuration is good for: of any record alike, with how sure each is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.figures.cell import batch_time
from orchestrator.figures.server import number_of
from orchestrator.figures.stats import Interval, Percentiles, Spread
from orchestrator.records.record import CellRecord
from orchestrator.report import foreign
from orchestrator.report.tables import PointRow
from orchestrator.report.text import duration, rate, share

MEASURED, DERIVED, PROJECTED, STATED = "measured", "derived", "projected", "stated"
CLOSED_KINDS = frozenset({"closed", "batch", "swarm", "sessions", "ingest"})
"""Loads in which `concurrency` requests run at any time: a total divided by it is what one of them gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One figure of one cell.

    Attributes:
        low, high: Between what the figure surely lies; both the value itself where no interval is known.
        has_interval: They are a 95 % interval, of the mean over repeats or of the percentile.
        n: Repeats or requests that it is of; None: not told.
        method: `measured`, `derived` or `stated` (another's word, not measured here).
        stand_in: What it is where it is not what was asked for (`mean`, `slowest of 30`): it proves no promise.
    """

    value: float
    low: float
    high: float
    has_interval: bool = False
    n: int | None = None
    method: str = MEASURED
    stand_in: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseFigure:
    """A figure by which uses are judged.

    Attributes:
        title: In a sentence; empty: the unit says it. share: which one of a latency, for brackets.
        unit: `s`, `%` (of a share of one), or what stands behind the number.
        headline: Its key among `headlines.HEADLINES`, by which two configurations are compared; empty: by none.
    """

    key: str
    title: str
    read: Callable[[PointRow], Told | None]
    unit: str
    share: str = ""
    is_less_good: bool = False
    headline: str = ""

    def words(self, value: float) -> str:
        """`203.4 tok/s together`, `5.10 s`, `99.2%`."""
        if self.unit == "s":
            return in_seconds(value)
        return share(value, 1) if self.unit == "%" else f"{rate(value)} {self.unit}"


def answers_time(point: PointRow, answers: int) -> Told | None:
    """Seconds that so many answers take at the cell's rate; measured only where that many really ran."""
    own = batch_time(point.figures, answers)
    cell = point.figures.cell
    if own is not None and not cell.source:
        return Told(value=own.seconds, low=own.seconds, high=own.seconds, method=own.kind)
    whole = _output(point)
    if whole is None or whole.value <= 0 or not cell.output_tok:
        return None
    seconds = answers * cell.output_tok / whole.value
    return Told(value=seconds, low=seconds, high=seconds, method=DERIVED)


def _output(point: PointRow) -> Told | None:
    cell = point.figures.cell
    alone = ("decode_tok_per_s",) if cell.concurrency == 1 else ()
    told = _stated(cell, "output_tok_per_s", "total_decode_tok_per_s", *alone)
    return told or _of_spread(point.figures.output_tok_per_s, cell)


def _each(point: PointRow) -> Told | None:
    """While it decodes, 1 / TPOT; where that is not known the whole answer's rate, or a part of the total."""
    f = point.figures
    cell = f.cell
    if (told := _stated(cell, "decode_tok_per_s", "per_user_tok_per_s")) is not None:
        return told
    if (told := _stated_latency(cell, "tpot_ms", "p50")) is not None and told.value > 0:
        return _point(1 / told.value, method=DERIVED, stand_in=told.stand_in)
    if f.tpot_ms.p50:
        found = f.tpot_ms.intervals.get("p50")
        value = 1000 / f.tpot_ms.p50
        low, high = (value, value) if found is None or found.low <= 0 else (1000 / found.high, 1000 / found.low)
        return _own(cell, value, low, high, has_interval=found is not None, n=f.tpot_ms.n)
    if f.per_user_tok_per_s is not None:
        return _own(cell, f.per_user_tok_per_s, n=f.good)
    whole = _output(point)
    if whole is None or cell.kind not in CLOSED_KINDS or cell.concurrency < 1:
        return None
    if cell.concurrency == 1:
        return whole
    return Told(
        value=whole.value / cell.concurrency,
        low=whole.low / cell.concurrency,
        high=whole.high / cell.concurrency,
        has_interval=whole.has_interval,
        n=whole.n,
        method=DERIVED,
    )


def _ttft(name: str) -> Callable[[PointRow], Told | None]:
    """In seconds; failures count as infinite, an open loop's runs from when the request was due."""

    def read(point: PointRow) -> Told | None:
        f = point.figures
        own = f.ttft_scheduled_adjusted_ms if f.is_open else f.ttft_adjusted_ms
        return _latency(f.cell, "ttft_ms", own, name)

    return read


def _e2e(point: PointRow) -> Told | None:
    f = point.figures
    own = f.e2e_scheduled_adjusted_ms if f.is_open else f.e2e_adjusted_ms
    return _latency(f.cell, "e2e_ms", own, "p95")


def _cached(point: PointRow) -> Told | None:
    f = point.figures
    told = _stated(f.cell, "cached_share")
    return told or (None if f.cached_share is None else _own(f.cell, f.cached_share, n=f.good))


def _good(point: PointRow) -> Told | None:
    f = point.figures
    if f.requests:
        return _own(f.cell, f.good / f.requests, n=f.requests)
    stated = foreign.find(f.cell, "requests_good")
    good, of = (number_of(stated, key) for key in ("value", "of")) if stated else (None, None)
    return None if good is None or not of else _point(good / of, method=STATED, n=round(of))


def _prompt(point: PointRow) -> Told | None:
    cell = point.figures.cell
    return _stated(cell, "prompt_tok_per_s", "input_tok_per_s") or _of_spread(point.figures.prompt_tok_per_s, cell)


def _prefill(point: PointRow) -> Told | None:
    found = point.prefill
    told = _stated(point.figures.cell, "prefill_tok_per_s")
    if told is not None or found is None:
        return told
    method = DERIVED if found.method.startswith("slope") else MEASURED
    return _point(found.tok_per_s, method=STATED if point.figures.cell.source else method, n=found.n)


def _documents(point: PointRow) -> Told | None:
    found = point.figures.ingest
    return None if found is None else _of_spread(found.documents_per_h, point.figures.cell)


def in_seconds(value_s: float) -> str:
    """`0.353 s`, `5.10 s`, `13.0 s`, `4.5 min`; `never` for what never came."""
    if math.isinf(value_s):
        return "never"
    return duration(value_s) if value_s >= 90 else f"{rate(value_s)} s"


TOGETHER, ALONE, EACH = "tok/s together", "tok/s alone", "tok/s each"
USE_FIGURES: Mapping[str, UseFigure] = {
    f.key: f
    for f in (
        UseFigure(key="output", title="", read=_output, unit=TOGETHER, headline="output_tok_per_s"),
        UseFigure(key="single", title="", read=_output, unit=ALONE, headline="output_tok_per_s"),
        UseFigure(key="each", title="", read=_each, unit=EACH),
        *(
            UseFigure(
                key=f"ttft_{name}",
                title="first token",
                share=name,
                read=_ttft(name),
                unit="s",
                is_less_good=True,
                headline=f"ttft_{name}",
            )
            for name in ("p50", "p95")
        ),
        UseFigure(key="e2e_p95", title="whole answer", share="p95", read=_e2e, unit="s", is_less_good=True),
        UseFigure(key="cached", title="cached", read=_cached, unit="%", headline="cached_share"),
        UseFigure(key="good", title="answered", read=_good, unit="%"),
        UseFigure(key="prompt", title="", read=_prompt, unit="tok/s read in", headline="prompt_tok_per_s"),
        UseFigure(key="prefill", title="", read=_prefill, unit="tok/s prefill", headline="prefill_tok_per_s"),
        UseFigure(key="documents", title="", read=_documents, unit="documents/h"),
    )
}
"""By key. `output` and `single` are the same figure, of many and of one."""


def _own(
    cell: CellRecord,
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    has_interval: bool = False,
    n: int | None = None,
    stand_in: str = "",
) -> Told:
    """By our formula; over another tool's stamps it is that tool's word all the same."""
    return Told(
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        has_interval=has_interval,
        n=n,
        method=STATED if cell.source else MEASURED,
        stand_in=stand_in,
    )


def _point(value: float, *, method: str, n: int | None = None, stand_in: str = "") -> Told:
    return Told(value=value, low=value, high=value, n=n, method=method, stand_in=stand_in)


def _of_spread(found: Spread | None, cell: CellRecord) -> Told | None:
    if found is None:
        return None
    ends: Interval | None = found.interval
    low, high = (None, None) if ends is None else (ends.low, ends.high)
    return _own(cell, found.mean, low, high, has_interval=ends is not None, n=found.n)


def _stated(cell: CellRecord, *names: str) -> Told | None:
    """The first of these that is one number; a range is none."""
    for name in names:
        figure = foreign.find(cell, name)
        value = next((v for k in ("value", "mean", "p50") if figure and (v := number_of(figure, k)) is not None), None)
        if value is not None:
            return _point(value, method=STATED)
    return None


def _latency(cell: CellRecord, name: str, own: Percentiles, wanted: str) -> Told | None:
    told = _stated_latency(cell, name, wanted)
    return told if told is not None else _own_latency(cell, own, wanted)


def _own_latency(cell: CellRecord, own: Percentiles, wanted: str) -> Told | None:
    value: float | None = getattr(own, wanted)
    if value is not None:
        found = own.intervals.get(wanted)
        low, high = (value, value) if found is None else (found.low, found.high)
        return _own(cell, value / 1000, low / 1000, high / 1000, has_interval=found is not None, n=own.n)
    if own.p50 is None or own.max is None:
        return None
    # Too few for the percentile: it lies between the median and the slowest.
    slowest = own.max / 1000
    return _own(cell, slowest, own.p50 / 1000, slowest, n=own.n, stand_in=f"slowest of {own.n}")


def _stated_latency(cell: CellRecord, name: str, wanted: str) -> Told | None:
    """A mean stands for a median; of a p95 it only says what that surely is not below."""
    figure = foreign.find(cell, name)
    if figure is None:
        return None
    if (value := number_of(figure, wanted)) is not None:
        return _point(value / 1000, method=STATED)
    keys = ("p50", "value", "mean")
    key, middle = next(((k, v) for k in keys if (v := number_of(figure, k)) is not None), ("", None))
    if middle is None:
        return None
    if wanted == "p50":
        return _point(middle / 1000, method=STATED, stand_in="mean" if key == "mean" else "")
    what = {"p50": "p50", "mean": "mean"}.get(key, "not told of which share")
    return Told(value=middle / 1000, low=middle / 1000, high=math.inf, method=STATED, stand_in=what)
