"""Every figure of a point as a line: name, value, unit, n, interval, definition, method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from orchestrator.figures.cell import CellFigures
from orchestrator.figures.definitions import find_definition
from orchestrator.figures.plain import Plain
from orchestrator.figures.ratio import Ratio
from orchestrator.figures.stated import stated
from orchestrator.figures.stats import SHARES, Interval, Percentiles, Spread, values_needed
from orchestrator.report.tables import PointRow
from orchestrator.report.text import DASH, rate, share

MEASURED, DERIVED, EXPECTED, STATED = "measured", "derived", "expected", "stated"
SHARE = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Plain):
    """One line of a sheet.

    Attributes:
        unit: `share`: of one, shown in percent.
        n: Values that it is of: requests, or repeats for a mean over them.
        interval: Two-sided, 95 %.
        definition: Its tag. method: `measured`, `derived` from measured ones, `expected` by the workload, `stated` by
            another tool; with how, where there are several ways.
        note: Why there is no value.
    """

    name: str
    value: float | str | None
    unit: str
    n: int | None
    interval: Interval | None
    definition: str
    method: str
    note: str = ""

    @property
    def words(self) -> str:
        """`512.3 ms`, `97.5%`."""
        if isinstance(self.value, str | int):
            return str(self.value)
        if self.unit == SHARE:
            return share(self.value, 1)
        text = rate(self.value)
        return text if self.value is None or not self.unit else f"{text} {self.unit}"

    @property
    def interval_words(self) -> str:
        if self.interval is None:
            return self.note
        low, high = self.interval.low, self.interval.high
        if self.unit == SHARE:
            return f"{low * 100:.1f} to {high * 100:.1f}%"
        return f"{rate(low)} to {rate(high)}"


def sheet_figures(point: PointRow) -> tuple[Figure, ...]:
    """In the order of a request's life, then the cell's, then the kind's, then what other cells are needed for."""
    f = point.figures
    return tuple(
        line
        for part in (
            _stated(f),
            _rates(point),
            _latencies(f),
            _cell(f),
            _server(f),
            _kind(f),
            _swarm(point),
            _across(point),
        )
        for line in part
    )


def one(
    name: str,
    definition: str,
    value: float | str | None,
    *,
    unit: str | None = None,
    n: int | None = None,
    interval: Interval | None = None,
    method: str = MEASURED,
    note: str = "",
) -> Figure:
    """The unit is the definition's unless told otherwise."""
    known = find_definition(definition)
    return Figure(
        name=name,
        value=value,
        unit=known.unit if unit is None else unit,
        n=n,
        interval=interval,
        definition=known.tag,
        method=method,
        note=note,
    )


def mean(name: str, definition: str, found: Spread | None, *, unit: str | None = None) -> Figure:
    """Over repeats."""
    if found is None:
        return one(name, definition, None, unit=unit)
    return one(name, definition, found.mean, unit=unit, n=found.n, interval=found.interval)


def percentile_lines(
    name: str, definition: str, found: Percentiles | None, *, unit: str | None = None
) -> Iterator[Figure]:
    """p50 to p99, mean and the extremes; what so few values cannot give says how many it needs."""
    if found is None or found.n == 0:
        yield one(name, definition, None, unit=unit)
        return
    for key, part in SHARES.items():
        value = getattr(found, key)
        note = "" if value is not None else f"needs {values_needed(part)}"
        yield one(
            f"{name} {key}", definition, value, unit=unit, n=found.n, interval=found.intervals.get(key), note=note
        )
    for key in ("mean", "min", "max"):
        yield one(f"{name} {key}", definition, getattr(found, key), unit=unit, n=found.n)


def _stated(f: CellFigures) -> Iterator[Figure]:
    """What another tool says without raw data, under its own definition."""
    for name in f.cell.stated:
        found = stated(f.cell, name)
        for key, value in found.values.items() if found is not None else ():
            assert found is not None
            yield Figure(
                name=name if key == "value" else f"{name} {key}",
                value=value,
                unit=found.unit,
                n=None,
                interval=None,
                definition=found.definition or DASH,
                method=STATED,
            )


def _rates(point: PointRow) -> Iterator[Figure]:
    f = point.figures
    yield mean("output", "output", f.output_tok_per_s)
    yield mean("tg_all_decoding", "tg_all_decoding", f.decode.all_decoding)
    yield mean("tg_steady", "tg_steady", f.decode.steady)
    yield one("peak", "peak", f.decode.peak_tok_per_s)
    yield one("per_user", "per_user", f.per_user_tok_per_s, n=f.good)
    yield one("decode", "decode", f.decode_tok_per_s, n=f.tpot_ms.n)
    yield one("decode slowest", "decode", f.decode_min_tok_per_s, n=f.tpot_ms.n)
    yield mean("prompt", "prompt", f.prompt_tok_per_s)
    found = point.prefill
    if found is None:
        yield one("prefill", "prefill", None)
    else:
        kind = DERIVED if found.method.startswith("slope") else MEASURED
        yield one("prefill", "prefill", found.tok_per_s, n=found.n, method=f"{kind}, {found.method}")


def _latencies(f: CellFigures) -> Iterator[Figure]:
    has_failures = f.ttft_adjusted_ms.n > f.ttft_ms.n
    if f.is_open:
        yield from percentile_lines("ttft_scheduled", "ttft_scheduled", f.ttft_scheduled_ms)
        if has_failures:
            yield from percentile_lines("ttft_scheduled adjusted", "ttft_adjusted", f.ttft_scheduled_adjusted_ms)
        yield from percentile_lines("queue_wait", "queue_wait", f.queue_wait_ms)
        yield from percentile_lines("lateness", "lateness", f.lateness_ms)
    yield from percentile_lines("ttft", "ttft", f.ttft_ms)
    if has_failures:
        yield from percentile_lines("ttft adjusted", "ttft_adjusted", f.ttft_adjusted_ms)
    yield from percentile_lines("ttfa", "ttfa", f.ttfa_ms)
    yield from percentile_lines("ttfr", "ttfr", f.ttfr_ms)
    yield from percentile_lines("tpot", "tpot", f.tpot_ms)
    yield from percentile_lines("itl", "itl", f.itl_ms)
    yield from percentile_lines("itl_token", "itl_token", f.itl_token_ms)
    if f.is_open:
        yield from percentile_lines("e2e_scheduled", "e2e_scheduled", f.e2e_scheduled_ms)
    yield from percentile_lines("e2e", "e2e", f.e2e_ms)
    yield from percentile_lines("normalised", "normalised", f.normalised_ms)


def _cell(f: CellFigures) -> Iterator[Figure]:
    yield one("cached_share", "cached_share", f.cached_share, unit=SHARE, n=f.good)
    if f.concurrency is not None:
        yield one("concurrency_peak", "concurrency_peak", f.concurrency.peak)
        yield one("concurrency_mean", "concurrency_mean", f.concurrency.mean)
    if f.goodput is not None:
        g = f.goodput
        yield mean("goodput", "goodput", g.requests_per_s)
        judged = g.met + g.missed
        yield one("attainment", "goodput", g.attainment, unit=SHARE, n=judged, interval=g.interval)
        yield one("service level", "goodput", g.verdict.value, n=judged, method=DERIVED)
    if f.drift is not None:
        yield replace(_ratio("drift", "drift", f.drift.ratio), note="")


def _server(f: CellFigures) -> Iterator[Figure]:
    if f.server is not None:
        yield from percentile_lines("server_ttft", "server_ttft", f.server.ttft_ms)
        if f.server.queue_ms is not None:
            yield from percentile_lines("server_queue", "server_queue", f.server.queue_ms)
        for line in percentile_lines("server_gap", "server_gap", f.server.gap_ms):
            yield replace(line, method=DERIVED)
    if f.speculation is not None:
        yield one("acceptance_length", "acceptance_length", f.speculation.acceptance_length)
        yield one("acceptance_rate", "acceptance_rate", f.speculation.acceptance_rate, unit=SHARE)


def _kind(f: CellFigures) -> Iterator[Figure]:
    yield from _arrivals(f)
    if f.overload is not None:
        over = f.overload
        yield one("overload_verdict", "overload_verdict", over.verdict.value, method=DERIVED)
        for name in ("refused_share", "waited_out_share", "broken_share", "after_failed_share"):
            yield one(name, "overload_verdict", getattr(over, name), unit=SHARE)
        yield one("ttft p95 before", "ttft_scheduled", over.ttft_p95_before_ms)
        yield one("ttft p95 in it", "ttft_scheduled", over.ttft_p95_main_ms)
        yield one("tail_growth", "tail_growth", over.tail_growth, method=DERIVED)
        note = "never" if over.has_recovered is False else ""
        yield one("recovery", "recovery", over.recovery_s, note=note)
    if f.sessions is not None:
        yield from percentile_lines("session_duration", "session_duration", f.sessions.duration_s)
        for turn in f.sessions.turns:
            name = f"turn {turn.turn + 1}"
            yield one(
                f"{name} ttft p50",
                "ttft",
                turn.ttft_ms.p50,
                n=turn.ttft_ms.n,
                interval=turn.ttft_ms.intervals.get("p50"),
            )
            yield one(f"{name} cached", "cached_share", turn.cached_share, unit=SHARE, n=turn.requests - turn.failed)
    if f.ingest is not None:
        yield mean("documents", "documents", f.ingest.documents_per_h)
        by = f"{DERIVED}, by {f.ingest.prefill_share_by}" if f.ingest.prefill_share_by else DERIVED
        yield one("prefill_share", "prefill_share", f.ingest.prefill_share, unit=SHARE, method=by)


def _arrivals(f: CellFigures) -> Iterator[Figure]:
    found = f.open
    if found is None:
        return
    yield one("rate scheduled", "achieved_rate", found.scheduled_rps)
    yield one("rate sent", "achieved_rate", found.sent_rps)
    if found.dispersion is not None:
        d = found.dispersion
        yield one("dispersion", "dispersion", d.index, n=d.bins)
        yield one("dispersion of Poisson", "dispersion", DASH, n=d.bins, interval=d.interval, method=EXPECTED)
    for name, shape in (("burstiness", found.burstiness), ("burstiness scheduled", found.scheduled_burstiness)):
        if shape is not None:
            yield one(name, "burstiness", shape.shape, n=shape.gaps, interval=shape.interval)
    if found.ks is not None and f.overload is None:  # an overload's gaps are not those of its capacity
        yield one("ks", "ks", found.ks, note=f"limit {rate(found.ks_limit)}")
    yield one("late_share", "late_share", found.late_share, unit=SHARE)
    if found.outstanding is not None:
        slope = found.outstanding
        yield one("outstanding_slope", "outstanding_slope", slope.per_s, interval=slope.interval, method=DERIVED)


def _swarm(point: PointRow) -> Iterator[Figure]:
    found = point.figures.swarm
    if found is None:
        return
    yield one("ttft slowest", "ttft", found.ttft_slowest_ms)
    yield mean("all_started", "all_started", found.all_started_s)
    yield one(
        "expected_cached_share", "expected_cached_share", found.expected_cached_share, unit=SHARE, method=EXPECTED
    )
    yield one("cached_share of agents", "cached_share", found.cached_share, unit=SHARE)
    yield from percentile_lines("reread", "reread", found.reread_tok)
    yield mean("reread in all", "reread", found.reread_total_tok)
    if found.prefix_load is not None:
        yield mean("prefix_load time", "prefix_load", found.prefix_load.seconds, unit="s")
        yield mean("prefix_load", "prefix_load", found.prefix_load.tok_per_s)
    if point.warm is not None:
        yield one("warm agent ttft p50", "ttft", point.warm.ttft_ms)
        yield one("warm agent per_user", "per_user", point.warm.per_user_tok_per_s)


def _across(point: PointRow) -> Iterator[Figure]:
    if point.efficiency is not None:
        yield one("efficiency", "efficiency", point.efficiency, unit=SHARE, method=DERIVED)
    if point.batch_s is not None:
        yield one(f"batch of {point.batch_answers}", "batch", point.batch_s, method=point.batch_kind)
    for name, lane in point.figures.lanes.items():
        if len(point.figures.lanes) > 1 or point.figures.cell.kind == "mixed":
            yield one(
                f"{name}: ttft p50",
                "ttft",
                lane.ttft_ms.p50,
                n=lane.ttft_ms.n,
                interval=lane.ttft_ms.intervals.get("p50"),
            )
            yield one(
                f"{name}: tpot p50",
                "tpot",
                lane.tpot_ms.p50,
                n=lane.tpot_ms.n,
                interval=lane.tpot_ms.intervals.get("p50"),
            )
            yield mean(f"{name}: output", "output", lane.output_tok_per_s)
    for name, slowdown in point.slowdowns.items():
        for key in ("ttft", "tpot", "rate"):
            if (found := getattr(slowdown, key)) is not None:
                yield _ratio(f"{name}: {key} slowdown", "slowdown", found)


def _ratio(name: str, definition: str, found: Ratio) -> Figure:
    return one(name, definition, found.value, n=found.n, interval=found.interval, method=DERIVED)
