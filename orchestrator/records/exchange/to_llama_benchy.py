"""The grid cells of a run as llama-benchy's JSON, by its definitions, computed from our raw stamps.

A repeat stands for one of its batches, also where ours was refilled (`closed`); where a run has a `batch` cell of the
same sizes, which is what llama-benchy runs, the closed one is left out: its lines would have the same name. Prompt
speed of all together is null where a repeat was refilled: between its first and its last prompt lie whole answers. No
latency is taken off our time to the first response, so `latency_mode` is `none` and est_ppt is ttfr. Token stamps are
the events' own, each as often as it carried tokens; where a server did not count them, the figures that need them are
null: its even spread is not made up.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby

from orchestrator import __version__
from orchestrator.errors import InputError
from orchestrator.records.record import CellRecord, RequestRecord, RunRecord
from orchestrator.records.store import StoredCell
from orchestrator.values import Json

GRID = ("closed", "batch")
NS_PER_S = 1e9
WINDOW_S = 1.0


def is_grid(cell: CellRecord) -> bool:
    """A cell that llama-benchy has a line for, with requests of its own."""
    return cell.kind in GRID and not cell.variant


def doubles(cells: Sequence[StoredCell]) -> tuple[CellRecord, ...]:
    """Closed cells of which there is a batch of the same sizes: llama-benchy has one line for both."""
    grid = [c.cell for c in cells if is_grid(c.cell) and c.requests]
    batches = {_sizes(cell) for cell in grid if cell.kind == "batch"}
    return tuple(cell for cell in grid if cell.kind != "batch" and _sizes(cell) in batches)


def llama_benchy_report(run: RunRecord, cells: Sequence[StoredCell]) -> dict[str, Json]:
    """
    Raises:
        InputError: There is no grid cell with requests among them.
    """
    left_out = doubles(cells)
    found = [c for c in cells if is_grid(c.cell) and c.requests and c.cell not in left_out]
    grid = sorted(found, key=lambda c: _order(c.cell))
    if not grid:
        raise InputError(f"{run.id} has no grid cell ({', '.join(GRID)}) with requests", hint="`--format csv` has all")
    benchmarks: list[Json] = []
    for stored in grid:
        for phase in ("context", "main"):
            requests = [r for r in stored.requests if r.phase == phase]
            if requests:
                benchmarks.append(_benchmark(stored.cell, requests, is_context=phase == "context"))
    return {
        "version": f"gate0 {__version__}",
        "timestamp": run.created_at,
        "latency_mode": "none",
        "latency_ms": 0.0,
        "model": run.model or run.served_name,
        "prefix_caching_enabled": any(r.phase == "context" for c in grid for r in c.requests),
        "max_concurrency": max(c.cell.concurrency for c in grid),
        "benchmarks": benchmarks,
    }


def _order(cell: CellRecord) -> tuple[tuple[int, int, int, int], str]:
    return _sizes(cell), cell.id


def _sizes(cell: CellRecord) -> tuple[int, int, int, int]:
    return cell.depth_tok, cell.prompt_tok, cell.output_tok, cell.concurrency


def _benchmark(cell: CellRecord, requests: Sequence[RequestRecord], *, is_context: bool) -> dict[str, Json]:
    good = [r for r in requests if r.failure is None]
    asked = cell.depth_tok if is_context else cell.prompt_tok
    ordered = sorted(good, key=lambda r: r.repeat)
    batches = [list(found) for _, found in groupby(ordered, key=lambda r: r.repeat)]
    pp_req = [v for r in good if (v := _prefill_rate(r, asked)) is not None]
    tg_req = [v for r in good if (v := _decode_rate(r)) is not None]
    is_many = cell.concurrency > 1
    is_refilled = cell.requests_per_repeat > cell.concurrency and not is_context
    pp = [v for b in batches if (v := _batch_prefill(b, asked)) is not None and not is_refilled] if is_many else pp_req
    tg = [v for b in batches if (v := _batch_decode(b)) is not None] if is_many else tg_req
    return {
        "concurrency": cell.concurrency,
        "context_size": cell.depth_tok,
        "prompt_size": cell.prompt_tok,
        "response_size": cell.output_tok,
        "is_context_prefill_phase": is_context,
        "pp_throughput": _metric(pp),
        "pp_req_throughput": _metric(pp_req),
        "tg_throughput": _metric(tg),
        "tg_req_throughput": _metric(tg_req),
        "peak_throughput": _metric([v for b in batches if (v := _peak(b)) is not None]),
        "peak_req_throughput": _metric([v for r in good if (v := _peak([r])) is not None]),
        "ttfr": _metric([v for r in good if (v := _since_sent(r, r.first_event_ns)) is not None], 1000),
        "est_ppt": _metric([v for r in good if (v := _since_sent(r, r.first_event_ns)) is not None], 1000),
        "e2e_ttft": _metric([v for r in good if (v := _since_sent(r, r.first_token_ns)) is not None], 1000),
        "throughput_over_time": None,
        "requests_throughput_over_time": None,
    }


def _metric(values: Sequence[float], factor: float = 1.0) -> Mapping[str, Json] | None:
    """Mean and the population's deviation."""
    if not values:
        return None
    scaled = [v * factor for v in values]
    return {"mean": statistics.fmean(scaled), "std": statistics.pstdev(scaled), "values": scaled}


def _since_sent(request: RequestRecord, at_ns: int | None) -> float | None:
    return None if at_ns is None or request.sent_ns is None else (at_ns - request.sent_ns) / NS_PER_S


def _prompt_tok(request: RequestRecord, asked: int) -> int:
    """The server's count if it is within a fifth of what was asked, else what was asked: their rule."""
    told = request.prompt_tok
    return told if told and abs(told - asked) < asked * 0.2 else asked


def _prefill_rate(request: RequestRecord, asked: int) -> float | None:
    took_s = _since_sent(request, request.first_event_ns)
    return _prompt_tok(request, asked) / took_s if took_s else None


def _stamps_s(request: RequestRecord) -> list[float] | None:
    """One stamp a token; None when an event's count is unknown."""
    if not request.events or any(n is None for _, n in request.events):
        return None
    return [t / NS_PER_S for t, n in request.events for _ in range(n or 0)]


def _after_first(stamps: Sequence[float]) -> int:
    return sum(t > stamps[0] for t in stamps)


def _decode_rate(request: RequestRecord) -> float | None:
    stamps = _stamps_s(request)
    if not stamps or stamps[-1] <= stamps[0]:
        return None
    return _after_first(stamps) / (stamps[-1] - stamps[0])


def _batch_prefill(batch: Sequence[RequestRecord], asked: int) -> float | None:
    starts = [r.sent_ns for r in batch if r.sent_ns is not None]
    firsts = [r.first_token_ns for r in batch if r.first_token_ns is not None]
    if not starts or not firsts or max(firsts) <= min(starts):
        return None
    return sum(_prompt_tok(r, asked) for r in batch) / ((max(firsts) - min(starts)) / NS_PER_S)


def _batch_decode(batch: Sequence[RequestRecord]) -> float | None:
    stamps = [_stamps_s(r) for r in batch]
    counted = [s for s in stamps if s]
    if len(counted) != len(stamps) or not counted:
        return None
    took_s = max(s[-1] for s in counted) - min(s[0] for s in counted)
    return sum(_after_first(s) for s in counted) / took_s if took_s > 0 else None


def _peak(requests: Sequence[RequestRecord]) -> float | None:
    """Most tokens in one second that ends at a token; in a shorter run all tokens / its length."""
    stamps = [_stamps_s(r) for r in requests]
    if not stamps or any(s is None for s in stamps):
        return None
    ordered = sorted(t for s in stamps for t in s or ())
    if not ordered:
        return None
    if 0 < ordered[-1] - ordered[0] < WINDOW_S:
        return len(ordered) / (ordered[-1] - ordered[0])
    most, first = 0, 0
    for last, at in enumerate(ordered):
        while ordered[first] <= at - WINDOW_S:
            first += 1
        most = max(most, last - first + 1)
    return most / WINDOW_S
