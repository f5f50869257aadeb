"""What a cell's repeats brought, judged and in the shape of its record."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from orchestrator.figures.definitions import definitions
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.sweep.guards import GuardInput, broken_guards
from orchestrator.sweep.guards.answers import cache_notes
from orchestrator.sweep.spec import MAIN, CellProgress, LoadTarget
from orchestrator.sweep.truth import Counters, server_side
from orchestrator.sweep.workload import Cell
from orchestrator.values import Json

GAP_NS = 1_000_000_000
"""Between repeats on the cell's clock; it carries no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """One repeat of one cell.

    Attributes:
        record: As `CellRecord.laps` keeps it: `repeat`, `started_at`, `duration_s`, `span_ns` (phase `main`), `phases`,
            `cpu_s`, `lag_n`, `lag_ms_p50`, `lag_ms_p99`, `stamp_lag_ms`, `unrecorded`, `server_before`, `server_after`,
            `template_overhead_tok`; from a sweep also `order` and `hosts` (`sweep.hosts.host_summary`); `offset_ns`
            once it has its place on the cell's clock.
        requests: On the repeat's own clock until then.
    """

    record: Mapping[str, Json]
    requests: tuple[RequestRecord, ...]
    is_cancelled: bool = False

    @property
    def repeat(self) -> int:
        value = self.record["repeat"]
        assert isinstance(value, int)
        return value

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """First byte sent to last response ended, phase `main`."""
        span = self.record.get("span_ns")
        return (int(span[0]), int(span[1])) if isinstance(span, list | tuple) else None

    @classmethod
    def cancelled(cls, repeat: int, *, started_at: str) -> Self:
        """One that was given up before anything was sent."""
        return cls(record={"repeat": repeat, "started_at": started_at}, requests=(), is_cancelled=True)

    def placed(self, offset_ns: int) -> Lap:
        """The same, on the cell's clock."""
        if "offset_ns" in self.record:
            return self
        record = dict(self.record) | {"offset_ns": offset_ns}
        if (span := self.span_ns) is not None:
            record["span_ns"] = [span[0] + offset_ns, span[1] + offset_ns]
        phases = self.record.get("phases")
        if isinstance(phases, list):
            record["phases"] = [_shifted_phase(p, offset_ns) for p in phases]
        return replace(self, record=record, requests=tuple(shifted(r, offset_ns) for r in self.requests))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """A cell as it is written down. `laps`: its repeats, in place on the cell's clock."""

    record: CellRecord
    requests: tuple[RequestRecord, ...]
    laps: tuple[Lap, ...] = ()

    @property
    def is_cancelled(self) -> bool:
        return self.record.status == "cancelled"


@dataclass(slots=True)
class Heard:
    """What the child has said so far."""

    requests: list[RequestRecord] = field(default_factory=list)
    phases: list[dict[str, Json]] = field(default_factory=list)
    lags_ns: list[int] = field(default_factory=list)
    stamp_lags_ns: list[int] = field(default_factory=list)
    unrecorded: dict[str, Json] = field(default_factory=dict)
    is_cancelled: bool = False

    def take(self, message: Mapping[str, Any], on_progress: Callable[[CellProgress], None]) -> None:
        if (progress := message.get("progress")) is not None:
            on_progress(CellProgress(**progress))
        elif (request := message.get("request")) is not None:
            request["events"] = tuple((t, n) for t, n in request["events"])
            self.requests.append(RequestRecord.from_json(request))
        elif (phase := message.get("phase")) is not None:
            self.lags_ns += phase.pop("lags_ns")
            self.stamp_lags_ns += phase.pop("stamp_lags_ns")
            self.phases.append(phase)
        elif (unrecorded := message.get("unrecorded")) is not None:
            self.unrecorded = _added(self.unrecorded, unrecorded)
        elif (done := message.get("done")) is not None:
            self.is_cancelled = done["is_cancelled"]

    @property
    def output_tok(self) -> int:
        """All that the server should have counted by now, as far as it told."""
        warm = self.unrecorded.get("output_tok")
        return sum(r.output_tok or 0 for r in self.requests) + (warm if isinstance(warm, int) else 0)

    def lap(
        self,
        repeat: int,
        *,
        started_at: str,
        duration_s: float,
        before: Counters | None = None,
        after: Counters | None = None,
        template_overhead_tok: int | None = None,
    ) -> Lap:
        spans = [p["span_ns"] for p in self.phases if p["name"] == MAIN]
        record: dict[str, Json] = {
            "repeat": repeat,
            "started_at": started_at,
            "duration_s": duration_s,
            "span_ns": spans[0] if spans else None,
            "phases": list(self.phases),
            "cpu_s": sum(v for p in self.phases if isinstance(v := p["cpu_s"], float)),
            "lag_n": len(self.lags_ns),
            "lag_ms_p50": lag_ms(self.lags_ns, 0.5),
            "lag_ms_p99": lag_ms(self.lags_ns, 0.99),
            "stamp_lag_ms": _stamp_lag(self.stamp_lags_ns),
            "unrecorded": dict(self.unrecorded),
            "server_before": None if before is None else dict(before),
            "server_after": None if after is None else dict(after),
            "template_overhead_tok": template_overhead_tok,
        }
        return Lap(record=record, requests=tuple(self.requests), is_cancelled=self.is_cancelled)


def cell_outcome(target: LoadTarget, cell: Cell, laps: Sequence[Lap], *, stop_reason: str = "all") -> CellOutcome:
    """The record of these repeats, with the guards that were broken.

    Args:
        laps: In the order of their `repeat`; those that an earlier attempt stored may stand among them.
        stop_reason: Why there are no more, see `CellRecord`.
    """
    w, placed = cell.workload, _placed(laps)
    requests = tuple(r for lap in placed for r in lap.requests)
    records = tuple(lap.record for lap in placed)
    judged = GuardInput(cell=cell, target=target, laps=records, requests=requests)
    is_cancelled = any(lap.is_cancelled for lap in placed)
    record = CellRecord(
        id=cell.id,
        workload=w.name,
        kind=cell.kind.value,
        variant=cell.variant,
        concurrency=cell.concurrency,
        prompt_tok=cell.prompt_tok,
        output_tok=cell.output_tok,
        depth_tok=cell.depth_tok,
        prefix_tok=cell.prefix_tok,
        rate_rps=cell.rate_rps,
        burstiness=None if cell.rate_rps is None else cell.burstiness,
        repeats=w.repeats,
        repeats_done=sum(not lap.is_cancelled for lap in placed),
        stop_reason="interrupted" if is_cancelled else stop_reason,
        requests_per_repeat=cell.requests_per_repeat,
        digest=cell.load_digest(),
        status="cancelled" if is_cancelled else "measured",
        started_at=str(placed[0].record.get("started_at", "")) if placed else "",
        duration_s=sum(v for lap in placed if isinstance(v := lap.record.get("duration_s"), float)),
        spans_ns=tuple(lap.span_ns or (0, 0) for lap in placed if lap.span_ns or not lap.is_cancelled),
        warmup_requests=w.warmup,
        slots=target.slots,
        slots_source=target.slots_source,
        is_queueing=target.slots is not None and cell.concurrency > target.slots,
        guards=tuple(g.as_json() for g in broken_guards(judged)),
        vantage=target.vantage,
        is_ungated=target.is_ungated,
        temperature=w.temperature,
        endpoint=w.endpoint,
        seed=w.seed,
        batch_answers=w.batch_answers,
        load=cell.load(),
        slo={} if cell.slo is None else cell.slo.as_json(),
        laps=records,
        server=_server(judged),
        client=_client(placed, requests),
        definitions=definitions(),
    )
    return CellOutcome(record=record, requests=requests, laps=placed)


def _server(cell: GuardInput) -> dict[str, Json]:
    notes = cache_notes(cell)
    return server_side(cell.laps, cell.requests) | ({"notes": list(notes)} if notes else {})


def _placed(laps: Sequence[Lap]) -> tuple[Lap, ...]:
    """Repeats one after the other on the cell's clock."""
    placed: list[Lap] = []
    for lap in laps:
        end_ns = max((r.end_ns or r.scheduled_ns for p in placed for r in p.requests), default=-GAP_NS)
        placed.append(lap.placed(end_ns + GAP_NS))
    return tuple(placed)


def shifted(request: RequestRecord, offset_ns: int) -> RequestRecord:
    """The request with all its stamps moved."""

    def on(t_ns: int | None) -> int | None:
        return None if t_ns is None else t_ns + offset_ns

    return replace(
        request,
        scheduled_ns=request.scheduled_ns + offset_ns,
        ready_ns=on(request.ready_ns),
        sent_ns=on(request.sent_ns),
        headers_ns=on(request.headers_ns),
        first_event_ns=on(request.first_event_ns),
        first_token_ns=on(request.first_token_ns),
        first_answer_ns=on(request.first_answer_ns),
        last_token_ns=on(request.last_token_ns),
        end_ns=on(request.end_ns),
        events=tuple((t + offset_ns, n) for t, n in request.events),
    )


def _shifted_phase(phase: Json, offset_ns: int) -> Json:
    assert isinstance(phase, Mapping)
    span, start = phase.get("span_ns"), phase.get("start_ns")
    moved = [int(t) + offset_ns for t in span] if isinstance(span, list | tuple) else None
    return {**phase, "span_ns": moved, "start_ns": start + offset_ns if isinstance(start, int) else None}


def _added(a: Mapping[str, Json], b: Mapping[str, Json]) -> dict[str, Json]:
    """Counts added up; `is_complete` only if both are."""
    if not a:
        return dict(b)
    added: dict[str, Json] = {}
    for key, value in b.items():
        before = a.get(key)
        if isinstance(value, bool):
            added[key] = value and before is True
        elif isinstance(value, int) and isinstance(before, int):
            added[key] = value + before
    return added


def _client(laps: Sequence[Lap], requests: Sequence[RequestRecord]) -> dict[str, Json]:
    """The load generator's own cost and lateness."""
    spans = [lap.span_ns for lap in laps if lap.span_ns is not None]
    return {
        "cpu_s": sum(v for lap in laps if isinstance(v := lap.record.get("cpu_s"), float)),
        "wall_s": sum(end - start for start, end in spans) / 1e9,
        "tokens": sum(r.output_tok or 0 for r in requests),
        "events": sum(len(r.events) for r in requests),
        "loop_lag_ms_p50": _worst(laps, "lag_ms_p50"),
        "loop_lag_ms_p99": _worst(laps, "lag_ms_p99"),
        "stamp_lag_ms_p50": _worst_stamp(laps, "p50"),
        "stamp_lag_ms_p99": _worst_stamp(laps, "p99"),
        "backend": laps[0].record.get("backend") if laps else None,
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _worst(laps: Sequence[Lap], key: str) -> float | None:
    return max((v for lap in laps if isinstance(v := lap.record.get(key), float)), default=None)


def _worst_stamp(laps: Sequence[Lap], key: str) -> float | None:
    told = (lap.record.get("stamp_lag_ms") for lap in laps)
    return max((v for t in told if isinstance(t, Mapping) and isinstance(v := t.get(key), float)), default=None)


def _stamp_lag(lags_ns: list[int]) -> dict[str, Json] | None:
    """How late the user-space stamp was after the kernel's; None: no kernel stamps."""
    if not lags_ns:
        return None
    return {
        "n": len(lags_ns),
        "p50": lag_ms(lags_ns, 0.5),
        "p99": lag_ms(lags_ns, 0.99),
        "max": max(lags_ns) / 1e6,
    }


def lag_ms(lags_ns: list[int], share: float) -> float | None:
    """Nearest-rank percentile; None with fewer than ten samples (a p99 of those is their maximum)."""
    if len(lags_ns) < 10:
        return None
    ordered = sorted(lags_ns)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6
