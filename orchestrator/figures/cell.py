"""What a cell's raw stamps mean: rates and latencies, derived when reading, never stored.

Each field is defined, with its formula and what other tools mean by the name, in `figures.definitions`
(`gate0 docs metrics`). Only requests of phase `main` count, but in the blocks that say otherwise. Failures are in no
mean; in the adjusted percentiles they count as infinite. What the end of the sweep cut is in neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from orchestrator.errors import InputError
from orchestrator.figures.columns import event_columns, itl_percentiles, itl_token_percentiles
from orchestrator.figures.decode import Concurrency, DecodeTotals, concurrency_of, decode_totals
from orchestrator.figures.goodput import Goodput, goodput
from orchestrator.figures.ingest import IngestFigures, ingest_figures
from orchestrator.figures.lanes import LaneFigures, lane_figures
from orchestrator.figures.open_loop import OpenFigures, open_figures
from orchestrator.figures.overload import OverloadFigures, overload_figures
from orchestrator.figures.plain import Plain, plain
from orchestrator.figures.prefill import ColdPrompt, PrefillSpeed, cold_prompt, prefill_by_server
from orchestrator.figures.ratio import Drift, drift
from orchestrator.figures.request import (
    NS_PER_S,
    e2e_ms,
    e2e_scheduled_ms,
    lateness_ms,
    normalised_ms,
    queue_wait_ms,
    tpot_ms,
    ttfa_ms,
    ttfr_ms,
    ttft_ms,
    ttft_scheduled_ms,
    user_tok_per_s,
)
from orchestrator.figures.samples import Sample, cell_samples, cold_by_repeat
from orchestrator.figures.scope import (
    OPEN_KINDS,
    Value,
    adjusted_values,
    good_of,
    main_of,
    main_spans,
    rate_over,
    values_of,
)
from orchestrator.figures.server import ServerBeside, Speculation, server_beside, speculation
from orchestrator.figures.sessions import SessionFigures, cached_share, session_figures
from orchestrator.figures.slo import Slo
from orchestrator.figures.stats import Percentiles, Spread, percentile, percentiles
from orchestrator.figures.swarm import SwarmFigures, swarm_figures
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFigures(Plain):
    """All figures of one cell. None: not measured, or the server did not tell what is needed.

    Attributes:
        requests, good: Of phase `main`. other_phases: how many ran in each of the others.
        failures: By class, what the end of the sweep cut (`cancelled`) included.
        output_tok_per_s: The whole run (`decode.run`).
        itl_token_ms: None: the tokens of an event are unknown.
        decode_min_tok_per_s: The slowest request's 1000 / TPOT.
        prefill: By the server's own time; `figures.prefill.prefill_speed` adds the slope over a series.
        cold: What that slope needs of this cell; cold_repeats: the same of each repeat.
        goodput: Of the cell's own service level; `figures.goodput.goodput` judges any other.
        samples: What this cell is compared with another run's by: one value a repeat.
        open, overload, swarm, sessions, ingest: For loads of that kind. lanes: by name, in a mixed load.
    """

    cell: CellRecord
    requests: int
    good: int
    other_phases: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    output_tok_per_s: Spread | None
    prompt_tok_per_s: Spread | None
    per_user_tok_per_s: float | None
    decode_tok_per_s: float | None
    decode_min_tok_per_s: float | None
    ttft_ms: Percentiles
    ttft_adjusted_ms: Percentiles
    ttft_scheduled_ms: Percentiles
    ttft_scheduled_adjusted_ms: Percentiles
    ttfa_ms: Percentiles
    ttfr_ms: Percentiles
    queue_wait_ms: Percentiles
    lateness_ms: Percentiles
    tpot_ms: Percentiles
    itl_ms: Percentiles
    itl_token_ms: Percentiles | None
    e2e_ms: Percentiles
    e2e_adjusted_ms: Percentiles
    e2e_scheduled_ms: Percentiles
    e2e_scheduled_adjusted_ms: Percentiles
    normalised_ms: Percentiles
    decode: DecodeTotals
    concurrency: Concurrency | None
    prefill: PrefillSpeed | None
    cold: ColdPrompt | None
    cold_repeats: Mapping[int, ColdPrompt] = field(default_factory=dict)
    cached_share: float | None
    output_tok: int | None
    wall_s: float
    drift: Drift | None
    server: ServerBeside | None
    speculation: Speculation | None
    goodput: Goodput | None
    samples: tuple[Sample, ...] = ()
    open: OpenFigures | None = None
    overload: OverloadFigures | None = None
    swarm: SwarmFigures | None = None
    sessions: SessionFigures | None = None
    ingest: IngestFigures | None = None
    lanes: Mapping[str, LaneFigures] = field(default_factory=dict)

    @property
    def is_valid(self) -> bool:
        return self.cell.is_valid

    @property
    def is_open(self) -> bool:
        """Arrivals do not wait for answers: the headline latencies are those from the schedule."""
        return self.cell.kind in OPEN_KINDS

    @property
    def headline_ttft_ms(self) -> Percentiles:
        return self.ttft_scheduled_ms if self.is_open else self.ttft_ms

    @property
    def headline_e2e_ms(self) -> Percentiles:
        return self.e2e_scheduled_ms if self.is_open else self.e2e_ms

    def as_json(self) -> dict[str, Json]:
        """The cell by its name, the rest in full."""
        rest = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name != "cell"}
        return {"workload": self.cell.workload, "cell": self.cell.id, **rest}


def cell_figures(cell: CellRecord, requests: Sequence[RequestRecord]) -> CellFigures:
    """Derive everything from one cell's raw record, of whatever kind of load.

    A foreign cell without requests gives figures that are all None; `figures.stated` has what its tool states.
    """
    main, spans = main_of(cell, requests), main_spans(cell, requests)
    good = good_of(main)
    events = event_columns(good)
    tpot = values_of(good, tpot_ms)
    decode = decode_totals(cell, main, spans)
    ttft = _percentiles(good, ttft_ms)
    slo = _slo(cell)
    judged = None if slo is None else goodput(main, spans, slo)
    return CellFigures(
        cell=cell,
        requests=len(main),
        good=len(good),
        other_phases=dict(Counter(r.phase for r in requests if r.phase != "main")),
        failures=dict(Counter(r.failure for r in main if r.failure is not None)),
        output_tok_per_s=decode.run,
        prompt_tok_per_s=rate_over(spans, good, lambda r: r.prompt_tok),
        per_user_tok_per_s=percentile(values_of(good, user_tok_per_s), 0.5),
        decode_tok_per_s=percentile([1000 / v for v in tpot], 0.5),
        decode_min_tok_per_s=1000 / max(tpot) if tpot else None,
        ttft_ms=ttft,
        ttft_adjusted_ms=percentiles(adjusted_values(main, ttft_ms)),
        ttft_scheduled_ms=_percentiles(good, ttft_scheduled_ms),
        ttft_scheduled_adjusted_ms=percentiles(adjusted_values(main, ttft_scheduled_ms)),
        ttfa_ms=_percentiles(good, ttfa_ms),
        ttfr_ms=_percentiles(good, ttfr_ms),
        queue_wait_ms=_percentiles(main, queue_wait_ms),
        lateness_ms=_percentiles(main, lateness_ms),
        tpot_ms=percentiles(tpot),
        itl_ms=itl_percentiles(events),
        itl_token_ms=itl_token_percentiles(events),
        e2e_ms=_percentiles(good, e2e_ms),
        e2e_adjusted_ms=percentiles(adjusted_values(main, e2e_ms)),
        e2e_scheduled_ms=_percentiles(good, e2e_scheduled_ms),
        e2e_scheduled_adjusted_ms=percentiles(adjusted_values(main, e2e_scheduled_ms)),
        normalised_ms=_percentiles(good, normalised_ms),
        decode=decode,
        concurrency=concurrency_of(cell, main, spans),
        prefill=prefill_by_server(good),
        cold=cold_prompt(good, ttft.p50),
        cold_repeats=cold_by_repeat(cell, requests),
        cached_share=cached_share(good),
        output_tok=_total(good),
        wall_s=cell.duration_s,
        drift=drift(main),
        server=server_beside(cell, good),
        speculation=speculation(cell),
        goodput=judged,
        samples=cell_samples(cell, requests, judged),
        open=open_figures(cell, main) if cell.kind in OPEN_KINDS else None,
        overload=overload_figures(requests) if cell.kind == "overload" else None,
        swarm=swarm_figures(cell.concurrency, requests) if cell.kind == "swarm" else None,
        sessions=session_figures(main) if cell.kind == "sessions" or any(r.turn for r in main) else None,
        ingest=ingest_figures(main, spans) if cell.kind == "ingest" else None,
        lanes=lane_figures(main),
    )


def efficiency(point: CellFigures, single: CellFigures | None) -> float | None:
    """Share of perfect scaling from the one-user cell of the same kind and sizes."""
    if single is None or point.output_tok_per_s is None or single.output_tok_per_s is None:
        return None
    perfect = point.cell.concurrency * single.output_tok_per_s.mean
    return point.output_tok_per_s.mean / perfect if perfect > 0 else None


def find_single(point: CellFigures, others: Sequence[CellFigures]) -> CellFigures | None:
    """The one-user cell that `efficiency` compares with."""
    return next((o for o in others if o.cell.concurrency == 1 and _load_key(o.cell) == _load_key(point.cell)), None)


def _load_key(cell: CellRecord) -> tuple[str, str, int, int, int, int]:
    return cell.workload, cell.kind, cell.prompt_tok, cell.output_tok, cell.depth_tok, cell.prefix_tok


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


def _percentiles(requests: Sequence[RequestRecord], value: Value) -> Percentiles:
    return percentiles(values_of(requests, value))


def _slo(cell: CellRecord) -> Slo | None:
    """None also for one that a newer program wrote: the record's other figures stand."""
    try:
        return Slo.from_json(cell.slo) if cell.slo else None
    except InputError:
        return None


def _total(good: Sequence[RequestRecord]) -> int | None:
    counts = [r.output_tok for r in good]
    return None if not counts or None in counts else sum(c for c in counts if c is not None)
