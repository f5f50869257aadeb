"""A cell of ours as vLLM `bench serve --save-detailed` would have written it: its keys, and its definitions.

Computed from our raw stamps by vLLM's formulas, which are not ours: TPOT divides by output tokens - 1, ITL is per
chunk, E2E ends at the last token chunk, throughput is over the whole run (here: all repeats' spans together),
deviations are the population's, percentiles are interpolated, the two peaks count chunks and requests by whole seconds.
A good request whose tokens the server did not count makes every total null. We keep no answers: no `generated_texts`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise

from orchestrator import __version__
from orchestrator.errors import InputError
from orchestrator.records.record import CellRecord, RequestRecord, RunRecord
from orchestrator.values import Json

SHARES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
NS_PER_S = 1e9


def vllm_result(run: RunRecord, cell: CellRecord, requests: Sequence[RequestRecord]) -> dict[str, Json]:
    """
    Raises:
        InputError: The cell has no requests, or no span: there is nothing to compute from.
    """
    main = sorted((r for r in requests if r.phase == "main"), key=lambda r: (r.sent_ns is None, r.sent_ns or 0))
    duration_s = sum(end - start for start, end in cell.spans_ns) / NS_PER_S
    if not main or duration_s <= 0:
        raise InputError(f"{cell.workload} {cell.id} has no requests to compute from", hint=_hint(cell))
    good = [r for r in main if r.failure is None]
    is_open = cell.rate_rps is not None
    return {
        "date": _date(cell.started_at),
        "endpoint_type": "openai-chat" if cell.endpoint == "chat" else "openai",
        "backend": "openai-chat" if cell.endpoint == "chat" else "openai",
        "label": None,
        "model_id": run.model or run.served_name,
        "tokenizer_id": run.model or run.served_name,
        "num_prompts": len(main),
        **_about(run, cell),
        "request_rate": cell.rate_rps if is_open else "inf",
        "burstiness": cell.burstiness if cell.burstiness is not None else 1.0,
        "max_concurrency": cell.concurrency or None,
        "duration": duration_s,
        "completed": len(good),
        "failed": len(main) - len(good),
        **_totals(good, duration_s),
        "request_goodput": _goodput(cell, good, duration_s),
        **_lists(main),
        **_peaks(good),
        "rtfx": 0.0,
        **_latencies(good),
    }


def _about(run: RunRecord, cell: CellRecord) -> dict[str, Json]:
    """Free keys, as vLLM's `--metadata` adds them; all text."""
    return {
        "exported_by": f"gate0 {__version__}",
        "gate0_run": run.id,
        "gate0_cell": f"{cell.workload}/{cell.id}",
        "gate0_kind": cell.kind,
        "gate0_vantage": cell.vantage,
        "gate0_repeats": str(len(cell.spans_ns)),
        "gate0_source": str(run.source.get("title") or ""),
        "gate0_guards": ", ".join(g.get("name", "") for g in cell.guards),
    }


def _totals(good: Sequence[RequestRecord], duration_s: float) -> dict[str, Json]:
    prompt, output = _sum([r.prompt_tok for r in good]), _sum([r.output_tok for r in good])
    both = None if prompt is None or output is None else prompt + output
    return {
        "total_input_tokens": prompt,
        "total_output_tokens": output,
        "request_throughput": len(good) / duration_s,
        "output_throughput": None if output is None else output / duration_s,
        "total_token_throughput": None if both is None else both / duration_s,
    }


def _lists(main: Sequence[RequestRecord]) -> dict[str, Json]:
    """One value a request, in seconds; a failed one has 0 where vLLM has."""
    return {
        "input_lens": [r.prompt_tok if r.prompt_tok is not None else r.expected_prompt_tok for r in main],
        "output_lens": [r.output_tok if r.failure is None else 0 for r in main],
        "ttfts": [ttft_s(r) or 0.0 for r in main],
        "itls": [list(gaps_s(r)) for r in main],
        "latencies": [latency_s(r) or 0.0 for r in main],
        "start_times": [(r.sent_ns or 0) / NS_PER_S for r in main],
        "queue_times": [_queue_s(r) for r in main],
        "errors": ["" if r.failure is None else f"{r.failure}: {r.error or ''}".rstrip(": ") for r in main],
    }


def ttft_s(request: RequestRecord) -> float | None:
    if request.sent_ns is None or request.first_token_ns is None:
        return None
    return (request.first_token_ns - request.sent_ns) / NS_PER_S


def latency_s(request: RequestRecord) -> float | None:
    """vLLM's E2E: it ends with the last token chunk."""
    if request.sent_ns is None or request.last_token_ns is None:
        return None
    return (request.last_token_ns - request.sent_ns) / NS_PER_S


def gaps_s(request: RequestRecord) -> tuple[float, ...]:
    return tuple((b - a) / NS_PER_S for (a, _), (b, _) in pairwise(request.events))


def _queue_s(request: RequestRecord) -> float:
    ready = request.ready_ns if request.ready_ns is not None else request.sent_ns
    return 0.0 if ready is None else max(0, ready - request.scheduled_ns) / NS_PER_S


def tpot_s(request: RequestRecord) -> float | None:
    """vLLM's: over the tokens but one; None where it takes none into its list."""
    first, whole, count = ttft_s(request), latency_s(request), request.output_tok
    if first is None or whole is None or count is None or count <= 1:
        return None
    return (whole - first) / (count - 1)


def _latencies(good: Sequence[RequestRecord]) -> dict[str, Json]:
    values = {
        "ttft": [v for r in good if (v := ttft_s(r)) is not None],
        "tpot": [v for r in good if (v := tpot_s(r)) is not None],
        "itl": [gap for r in good for gap in gaps_s(r)],
        "e2el": [v for r in good if (v := latency_s(r)) is not None],
    }
    found: dict[str, Json] = {}
    for name, seconds in values.items():
        if not seconds:
            continue
        ordered = sorted(s * 1000 for s in seconds)
        found[f"mean_{name}_ms"] = statistics.fmean(ordered)
        found[f"median_{name}_ms"] = interpolated(ordered, 50)
        found[f"std_{name}_ms"] = statistics.pstdev(ordered)
        found |= {f"{word}_{name}_ms": interpolated(ordered, share) for word, share in SHARES.items()}
    return found


def interpolated(ordered: Sequence[float], percent: float) -> float:
    """numpy's default percentile: linear between the two nearest ranks."""
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _peaks(good: Sequence[RequestRecord]) -> dict[str, Json]:
    """Chunks, and requests touched, by whole seconds from the first start: what vLLM calls peaks."""
    timed = [r for r in good if r.sent_ns is not None and r.last_token_ns is not None]
    zero = min((r.sent_ns or 0 for r in timed), default=0)
    chunks: dict[int, int] = {}
    users: dict[int, int] = {}
    for request in timed:
        for at, _ in request.events:
            chunks[_second(at, zero)] = chunks.get(_second(at, zero), 0) + 1
        for second in range(_second(request.sent_ns or 0, zero), _second(request.last_token_ns or 0, zero) + 1):
            users[second] = users.get(second, 0) + 1
    return {
        "max_output_tokens_per_s": float(max(chunks.values(), default=0)),
        "max_concurrent_requests": max(users.values(), default=0),
    }


def _second(at_ns: int, zero_ns: int) -> int:
    return (at_ns - zero_ns) // 1_000_000_000


def _goodput(cell: CellRecord, good: Sequence[RequestRecord], duration_s: float) -> float | None:
    """Requests a second that met all of the SLO; as in vLLM a failed one is no miss, and one token has a TPOT of 0."""
    limits = {k: v for k in ("ttft_s", "tpot_ms", "e2e_s") if isinstance(v := cell.slo.get(k), int | float)}
    if not limits:
        return None
    return sum(_meets(r, limits) for r in good) / duration_s


def _meets(request: RequestRecord, limits: Mapping[str, float]) -> bool:
    seen = {
        "ttft_s": ttft_s(request) or 0.0,
        "tpot_ms": (tpot_s(request) or 0.0) * 1000,
        "e2e_s": latency_s(request) or 0.0,
    }
    return all(seen[name] <= limit for name, limit in limits.items())


def _sum(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(c for c in counts if c is not None)


def _date(started_at: str) -> str:
    try:
        return f"{datetime.fromisoformat(started_at.replace('Z', '+00:00')):%Y%m%d-%H%M%S}"
    except ValueError:
        return ""


def _hint(cell: CellRecord) -> str | None:
    return "another tool's record: its own file lies in the run's folder under foreign/" if cell.source else None
