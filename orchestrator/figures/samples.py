"""A cell's headline figures as one value a repeat: what two runs are compared by.

The repeat is the unit. Requests of one repeat share a batch, a queue and a cache, so a hundred of them are no hundred
independent looks at a server, and an interval over them would be far too narrow. Of a latency each repeat gives its
median (and its p95 where it has enough requests). What differs between two starts of a server is in no repeat.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.figures.goodput import Goodput
from orchestrator.figures.plain import Plain
from orchestrator.figures.prefill import ColdPrompt, cold_prompt, prefill_by_server, prefill_speed
from orchestrator.figures.request import tpot_ms, ttft_ms, ttft_scheduled_ms, user_tok_per_s
from orchestrator.figures.scope import (
    OPEN_KINDS,
    Window,
    adjusted_values,
    by_repeat,
    good_of,
    main_of,
    main_spans,
    rate_over,
    span_of,
    values_of,
)
from orchestrator.figures.sessions import cached_share
from orchestrator.figures.stated import Stated, stated
from orchestrator.figures.stats import percentile
from orchestrator.figures.swarm import swarm_figures
from orchestrator.records.exchange.definitions import definition_of
from orchestrator.records.record import CellRecord, RequestRecord

if TYPE_CHECKING:
    from orchestrator.figures.cell import CellFigures

Parts = Mapping[int, Sequence[RequestRecord]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Plain):
    """One figure of one cell, or of one lane of it.

    Attributes:
        key: Which headline it is (`ttft_p50`). lane: empty for the whole cell.
        figure: Under which name a record has its definition (`ttft_ms`).
        statistic: What it is of that figure: `p50`, `p95`, `mean`, or `value` where there is only one.
        values: One a repeat, in order; `math.inf` where so many requests failed that it never came. Empty: it is not
            known of single repeats.
        pooled: Of all repeats together, or as stated; only where `values` is empty.
        hits, judged: Of a share of requests, all repeats together.
        method: How it was had, where there are several ways: of a stated figure its basis, if not measured.
        is_stated: Another tool's word, without the raw data.
    """

    key: str
    figure: str
    statistic: str = "value"
    lane: str = ""
    values: tuple[float, ...] = ()
    pooled: float | None = None
    hits: int | None = None
    judged: int | None = None
    method: str = ""
    is_stated: bool = False

    @property
    def is_positive(self) -> bool:
        """A ratio can be taken of it."""
        found = self.values or (() if self.pooled is None else (self.pooled,))
        return bool(found) and all(v > 0 for v in found)

    @property
    def geometric_mean(self) -> float | None:
        """Of the repeats; None: one of them is not above zero, or there is none at all."""
        if not self.values:
            return self.pooled
        if not self.is_positive:
            return None
        return math.exp(statistics.fmean([math.log(v) for v in self.values])) if self.is_finite else math.inf

    @property
    def mean(self) -> float | None:
        if not self.values:
            return self.pooled
        return statistics.fmean(self.values) if self.is_finite else math.inf

    @property
    def is_finite(self) -> bool:
        return all(math.isfinite(v) for v in self.values)


def cell_samples(cell: CellRecord, requests: Sequence[RequestRecord], judged: Goodput | None) -> tuple[Sample, ...]:
    """All that can be had of this cell: what a tool states where its requests do not tell more than one repeat.

    Args:
        judged: The cell's own service level over it.
    """
    main, spans = main_of(cell, requests), main_spans(cell, requests)
    found = [s for s in _measured(cell, requests, main, spans) if s.values or s.pooled is not None]
    if judged is not None and judged.attainment is not None:
        found.append(
            Sample(
                key="attainment",
                figure="goodput",
                pooled=judged.attainment,
                hits=judged.met,
                judged=judged.met + judged.missed,
            )
        )
    if not cell.source:
        return tuple(found)
    # Our formula over another tool's stamps is no figure of that tool, unless the importer said what it means.
    own = [s for s in found if definition_of(cell, s.figure) is not None]
    told = [s for s in _stated(cell) if not any(o.key == s.key and len(o.values) > 1 for o in own)]
    return (*(s for s in own if not any(t.key == s.key for t in told)), *told)


def cold_by_repeat(cell: CellRecord, requests: Sequence[RequestRecord]) -> dict[int, ColdPrompt]:
    """What a slope of prefill needs, of each repeat that has it."""
    found = {}
    for repeat, part in by_repeat(good_of(main_of(cell, requests))).items():
        if (cold := cold_prompt(part, percentile(values_of(part, ttft_ms), 0.5))) is not None:
            found[repeat] = cold
    return found


def slope_sample(point: CellFigures, others: Sequence[CellFigures]) -> Sample | None:
    """Prefill by slope, one a repeat: of the cell at whose concurrency the slope is taken, and of no other.

    None where the server tells its own time: `cell_samples` has that.
    """
    whole = prefill_speed(point, others)
    if point.prefill is not None or whole is None or not whole.method.endswith(f" at {point.cell.concurrency}"):
        return None
    values = []
    for repeat, cold in point.cold_repeats.items():
        beside = [replace(o, cold=o.cold_repeats.get(repeat)) for o in others if o.cell is not point.cell]
        here = replace(point, cold=cold)
        speed = prefill_speed(here, [here, *beside])
        if speed is not None and speed.method == whole.method:
            values.append(speed.tok_per_s)
    is_known = len(values) == len(point.cold_repeats)
    return Sample(
        key="prefill_tok_per_s",
        figure="prefill_tok_per_s",
        values=tuple(values) if is_known else (),
        pooled=None if is_known and values else whole.tok_per_s,
        method=whole.method,
    )


def _measured(
    cell: CellRecord, requests: Sequence[RequestRecord], main: Sequence[RequestRecord], spans: Mapping[int, Window]
) -> Iterator[Sample]:
    lanes = dict.fromkeys(r.lane for r in main if r.lane) if cell.kind == "mixed" else {}
    for lane in lanes or [""]:
        part = [r for r in main if r.lane == lane] if lane else main
        own = {i: s for i, p in by_repeat(part).items() if (s := span_of(p)) is not None} if lane else spans
        yield from (replace(s, lane=lane) for s in _of_users(cell, by_repeat(part), own))
    parts = {repeat: good_of(part) for repeat, part in by_repeat(main).items()}
    yield _sample("cached_share", "cached_share", (cached_share(part) for part in parts.values()))
    if cell.kind == "swarm":
        yield from _swarm(cell, by_repeat(requests))
    yield _prefill(parts)


def _of_users(cell: CellRecord, parts: Parts, spans: Mapping[int, Window]) -> Iterator[Sample]:
    good = {repeat: good_of(part) for repeat, part in parts.items()}
    for key, count in (("output_tok_per_s", _output_tok), ("prompt_tok_per_s", _prompt_tok)):
        rates = [rate_over({i: span}, good[i], count) for i, span in spans.items() if i in good]
        yield _sample(key, key, (None if rate is None else rate.mean for rate in rates))
    per_user = (percentile(values_of(part, user_tok_per_s), 0.5) for part in good.values())
    yield replace(_sample("per_user_tok_per_s", "per_user_tok_per_s", per_user), statistic="p50")
    is_open = cell.kind in OPEN_KINDS and not cell.source
    name, start = ("ttft_scheduled_ms", ttft_scheduled_ms) if is_open else ("ttft_ms", ttft_ms)
    for statistic, share in (("p50", 0.5), ("p95", 0.95)):
        adjusted = {repeat: adjusted_values(part, start) for repeat, part in parts.items()}
        found = [percentile(values, share) for values in adjusted.values() if values]
        sample = replace(_sample(f"ttft_{statistic}", name, found), statistic=statistic)
        if None in found:
            pooled = percentile([v for values in adjusted.values() for v in values], share)
            sample = replace(sample, values=(), pooled=pooled)
        yield sample
    tpot = (percentile(values_of(part, tpot_ms), 0.5) for part in good.values())
    yield replace(_sample("tpot_p50", "tpot_ms", tpot), statistic="p50")


def _swarm(cell: CellRecord, parts: Parts) -> Iterator[Sample]:
    found = [f for part in parts.values() if (f := swarm_figures(cell.concurrency, part)) is not None]
    reread = (f.reread_total_tok.mean if f.reread_total_tok else None for f in found)
    yield _sample("reread_tok", "reread_tok", reread)
    started = (f.all_started_s.mean if f.all_started_s else None for f in found)
    yield _sample("all_started_s", "all_started_s", started)


def _prefill(parts: Parts) -> Sample:
    found = [speed for part in parts.values() if (speed := prefill_by_server(part)) is not None]
    sample = _sample("prefill_tok_per_s", "prefill_tok_per_s", (f.tok_per_s for f in found))
    return replace(sample, statistic="p50", method=found[0].method if found else "")


def _sample(key: str, figure: str, values: Iterator[float | None] | Sequence[float | None]) -> Sample:
    return Sample(key=key, figure=figure, values=tuple(v for v in values if v is not None))


STATED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("output_tok_per_s", ("output_tok_per_s", "total_decode_tok_per_s", "decode_tok_per_s"), ("value", "mean", "p50")),
    ("prompt_tok_per_s", ("prompt_tok_per_s",), ("value", "mean", "p50")),
    ("per_user_tok_per_s", ("per_user_tok_per_s",), ("p50", "value", "mean")),
    ("ttft_p50", ("ttft_ms",), ("p50", "value", "mean")),
    ("ttft_p95", ("ttft_ms",), ("p95",)),
    ("tpot_p50", ("tpot_ms",), ("p50", "value", "mean")),
    ("cached_share", ("cached_share",), ("value", "mean")),
    ("reread_tok", ("reread_tok",), ("value", "mean")),
    ("all_started_s", ("all_started_s",), ("value", "mean")),
    ("prefill_tok_per_s", ("prefill_tok_per_s",), ("value", "p50", "mean")),
    ("attainment", ("goodput",), ("value",)),
)
"""Headline, the names that a foreign record may have it under, and the statistics that may stand for it: first wins."""


def _stated(cell: CellRecord) -> Iterator[Sample]:
    for key, names, statistics_ in STATED:
        figure = next((f for name in names if (f := stated(cell, name)) is not None), None)
        if figure is not None and (statistic := _statistic(figure, statistics_)) is not None:
            yield Sample(
                key=key,
                figure=figure.name,
                statistic=statistic,
                pooled=figure.values[statistic],
                method=str(cell.stated[figure.name].get("basis") or ""),
                is_stated=True,
            )


def _statistic(figure: Stated, wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in figure.values), None)


def _output_tok(request: RequestRecord) -> int | None:
    return request.output_tok


def _prompt_tok(request: RequestRecord) -> int | None:
    return request.prompt_tok
