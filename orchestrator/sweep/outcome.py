"""What a cell brought, judged and in the shape of its record."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.sweep.guards import GuardInput, broken_guards
from orchestrator.sweep.spec import CellProgress, LoadTarget
from orchestrator.sweep.workload import Cell
from orchestrator.values import Json

DEFINITIONS: Mapping[str, str] = {
    "ttft": "first token (content, reasoning, tool call or token id) - first byte sent",
    "tpot": "(last token - first token) / tokens after the first token event",
    "itl": "gap between events that carried tokens",
    "e2e": "end of response - first byte sent",
    "clock": "monotonic, user space, at socket read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """A cell as it is written down."""

    record: CellRecord
    requests: tuple[RequestRecord, ...]

    @property
    def is_cancelled(self) -> bool:
        return self.record.status == "cancelled"


@dataclass(slots=True)
class Heard:
    """What the child has said so far."""

    requests: list[RequestRecord] = field(default_factory=list)
    spans_ns: list[tuple[int, int]] = field(default_factory=list)
    lags_ns: list[int] = field(default_factory=list)
    cpu_s: float = 0.0
    is_cancelled: bool = False

    def take(self, message: Mapping[str, Any], on_progress: Callable[[CellProgress], None]) -> None:
        if (progress := message.get("progress")) is not None:
            on_progress(CellProgress(**progress))
        elif (request := message.get("request")) is not None:
            request["events"] = tuple((t, n) for t, n in request["events"])
            self.requests.append(RequestRecord.from_json(request))
        elif (repeat := message.get("repeat")) is not None:
            if repeat["span_ns"] is not None:
                self.spans_ns.append((repeat["span_ns"][0], repeat["span_ns"][1]))
            self.lags_ns += repeat["lags_ns"]
            self.cpu_s += repeat["cpu_s"]
        elif (done := message.get("done")) is not None:
            self.is_cancelled = done["is_cancelled"]


def cell_outcome(target: LoadTarget, cell: Cell, heard: Heard, *, started_at: str, duration_s: float) -> CellOutcome:
    """The record, with the guards that were broken."""
    w, requests = cell.workload, tuple(heard.requests)
    lag_p99 = lag_ms(heard.lags_ns, 0.99)
    guards = broken_guards(
        GuardInput(
            requests=requests,
            requests_expected=w.repeats * cell.requests_per_repeat,
            output_tok=cell.output_tok,
            is_length_fixed=w.ignore_eos,
            cache_unit_tok=target.cache_unit_tok,
            lag_ms_p99=lag_p99,
        )
    )
    record = CellRecord(
        id=cell.id,
        workload=w.name,
        kind=cell.kind.value,
        concurrency=cell.concurrency,
        prompt_tok=cell.prompt_tok,
        output_tok=cell.output_tok,
        repeats=w.repeats,
        requests_per_repeat=cell.requests_per_repeat,
        digest=cell.load_digest(),
        status="cancelled" if heard.is_cancelled else "measured",
        started_at=started_at,
        duration_s=duration_s,
        spans_ns=tuple(heard.spans_ns),
        warmup_requests=w.warmup,
        slots=target.slots,
        slots_source=target.slots_source,
        is_queueing=target.slots is not None and cell.concurrency > target.slots,
        guards=tuple(g.as_json() for g in guards),
        vantage=target.vantage,
        is_ungated=target.is_ungated,
        temperature=w.temperature,
        endpoint=w.endpoint,
        seed=w.seed,
        batch_answers=w.batch_answers,
        client=_client(heard, lag_p99),
        definitions=dict(DEFINITIONS),
    )
    return CellOutcome(record=record, requests=requests)


def _client(heard: Heard, lag_p99: float | None) -> dict[str, Json]:
    """The load generator's own cost and lateness."""
    return {
        "cpu_s": heard.cpu_s,
        "wall_s": sum(end - start for start, end in heard.spans_ns) / 1e9,
        "tokens": sum(r.output_tok or 0 for r in heard.requests),
        "events": sum(len(r.events) for r in heard.requests),
        "loop_lag_ms_p50": lag_ms(heard.lags_ns, 0.5),
        "loop_lag_ms_p99": lag_p99,
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def lag_ms(lags_ns: list[int], share: float) -> float | None:
    """Nearest-rank percentile; None with fewer than ten samples (a p99 of those is their maximum)."""
    if len(lags_ns) < 10:
        return None
    ordered = sorted(lags_ns)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6
