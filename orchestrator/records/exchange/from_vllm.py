"""vLLM `bench serve` JSON: one object, several appended ones, or a sweep's `summary.json`; InferenceX's bench too.

With `--save-detailed` it holds the stamps of each request; without, only `latencies` and `queue_times` (older files:
not even those). vLLM tells no version of itself. Its ITL is per chunk, and its peak counts chunks.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.records.exchange.foreign import Foreign, Point, make_point, same_length, scalar, told
from orchestrator.records.exchange.parts import Part
from orchestrator.records.exchange.stamps import request_of
from orchestrator.records.record import RequestRecord
from orchestrator.values import Json

LATENCIES = {
    "ttft_ms": "ttft",
    "tpot_ms": "tpot",
    "itl_ms": "itl",
    "e2e_ms": "e2el",
    "client_queue_ms": "client_queue_time",
    "e2e_scheduled_ms": "e2el_including_client_queue",
}
"""Our name of a latency -> theirs."""

RATES = {
    "output_tok_per_s": ("output_throughput", "tok/s"),
    "total_tok_per_s": ("total_token_throughput", "tok/s"),
    "request_per_s": ("request_throughput", "req/s"),
    "good_request_per_s": ("request_goodput", "req/s"),
    "peak_events_per_s": ("max_output_tokens_per_s", "events/s"),
    "peak_concurrency": ("max_concurrent_requests", "requests"),
    "requests_good": ("completed", "requests"),
    "requests_failed": ("failed", "requests"),
    "prompt_tok_total": ("total_input_tokens", "tok"),
    "output_tok_total": ("total_output_tokens", "tok"),
    "duration_s": ("duration", "s"),
    "accepted_share_pct": ("spec_decode_acceptance_rate", "%"),
    "accepted_length": ("spec_decode_acceptance_length", "tok"),
    "drafts": ("spec_decode_num_drafts", "drafts"),
    "drafted_tok": ("spec_decode_draft_tokens", "tok"),
    "accepted_tok": ("spec_decode_accepted_tokens", "tok"),
}
LISTS = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "errors")
SERVER_LISTS = {"server_queue_times": "queue_s", "server_ttfts": "ttft_s"}
ENGINES = ("vllm", "sglang", "tgi", "llama.cpp", "tensorrt-llm", "lmdeploy", "deepspeed-mii")
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)_(.+)_ms")


def is_such(document: Mapping[str, Any]) -> bool:
    return "request_throughput" in document and bool(
        {"total_token_throughput", "output_throughput", "mean_ttft_ms"} & set(document)
    )


def read(parts: Sequence[Part]) -> Foreign:
    """One point an object; what the objects say of model and backend must be the same to be told of the whole."""
    points = tuple(_point(part) for part in parts)
    first = parts[0]
    backend = first.find_text("backend") or first.find_text("endpoint_type") or ""
    is_sweep = any("run_number" in p.raw for p in parts)
    return Foreign(
        tool="vllm",
        title="vllm bench",
        form="vLLM bench sweep summary" if is_sweep else "vLLM bench serve result",
        points=points,
        engine=backend if backend in ENGINES else "unknown",
        model=first.find_text("model_id") or "",
        created_at=_created_at(first.find_text("date")),
    )


def _point(part: Part) -> Point:
    duration_s = part.number("duration")
    completed = part.count("completed")
    rate = part.find_number("request_rate")
    cap = part.find_count("max_concurrency")
    asked = part.find_count("num_prompts")
    requests = _requests(part)
    stated = told(
        {
            **{ours: _distribution(part, theirs) for ours, theirs in LATENCIES.items()},
            **{o: scalar(part.find_number(t), unit, f"vllm/{t}") for o, (t, unit) in RATES.items()},
        }
    )
    if not requests:
        stated = {**_from_latencies(part), **stated}
    is_open = rate is not None and math.isfinite(rate)
    return make_point(
        tool="vllm",
        kind="open" if is_open else "closed" if cap else "batch",
        concurrency=cap or (0 if is_open else asked or completed),
        prompt_tok=_mean(part.find_number("total_input_tokens"), completed),
        output_tok=_mean(part.find_number("total_output_tokens"), completed),
        stated=stated,
        requests=requests,
        definitions={"clock": "vllm: perf_counter, when the message is taken apart"},
        requests_per_repeat=asked or completed + (part.find_count("failed") or 0),
        rate_rps=rate if is_open else None,
        burstiness=part.find_number("burstiness") if is_open else None,
        duration_s=duration_s,
        spans_ns=((0, round(duration_s * 1e9)),),
        started_at=_created_at(part.find_text("date")),
        extra=part.rest(but=("generated_texts",)),
    )


def _distribution(part: Part, name: str) -> dict[str, Json] | None:
    found: dict[str, float | None] = {
        ours: part.find_number(f"{theirs}_{name}_ms")
        for ours, theirs in (("mean", "mean"), ("p50", "median"), ("sd", "std"))
    }
    for key in part.raw:
        match = _PERCENTILE.fullmatch(key)
        if match and match[2] == name:
            found[f"p{match[1]}"] = part.find_number(key)
    if all(v is None for v in found.values()):
        return None
    return {**{k: v for k, v in found.items() if v is not None}, "unit": "ms", "definition": f"vllm/{name}"}


def _from_latencies(part: Part) -> dict[str, Mapping[str, Json]]:
    """Without `--save-detailed` the latencies alone are left: their distribution, if all requests succeeded."""
    values = [v for v in part.find_numbers("latencies") or () if v is not None]
    if not values or part.find_count("failed"):
        return {}
    found: dict[str, Json] = {"mean": statistics.fmean(values) * 1000, "p50": statistics.median(values) * 1000}
    return {"e2e_ms": {**found, "n": len(values), "unit": "ms", "definition": "vllm/e2el"}}


def _requests(part: Part) -> tuple[RequestRecord, ...]:
    if not (part.has("ttfts") and part.has("itls")):
        return ()
    lists: dict[str, list[Any] | None] = {name: part.find_list(name) for name in LISTS}
    server = {ours: part.find_numbers(theirs) for theirs, ours in SERVER_LISTS.items()}
    count = same_length(part.where, {**lists, **server})
    starts = part.find_numbers("start_times")
    ttfts, latencies = part.find_numbers("ttfts"), part.find_numbers("latencies")
    queues, prompts, outputs = (part.find_numbers(k) for k in ("queue_times", "input_lens", "output_lens"))
    first = min((s for s in starts or () if s is not None), default=0.0)
    done = []
    for i in range(count):
        start = starts[i] if starts else None
        error = (lists["errors"] or [""] * count)[i]
        done.append(
            request_of(
                i,
                start_s=None if start is None else start - first,
                ttft_s=ttfts[i] if ttfts else None,
                gaps_s=_gaps(part, lists["itls"] or [], i),
                latency_s=latencies[i] if latencies else None,
                output_tok=_at(outputs, i),
                prompt_tok=_at(prompts, i),
                queue_s=(queues[i] or 0.0) if queues else 0.0,
                error=str(error) if error else None,
                server={name: values[i] for name, values in server.items() if values and values[i] is not None},
            )
        )
    return tuple(done)


def _gaps(part: Part, itls: Sequence[Any], index: int) -> list[float]:
    gaps = itls[index]
    if not isinstance(gaps, list) or any(isinstance(g, bool) or not isinstance(g, int | float) for g in gaps):
        raise part.wrong(f"itls[{index}]", f"{gaps!r:.60} is not a list of numbers")
    return gaps


def _at(values: Sequence[float | None] | None, index: int) -> int | None:
    value = values[index] if values else None
    return None if value is None else round(value)


def _mean(total: float | None, count: int) -> float | None:
    return total / count if total is not None and count else None


def _created_at(date: str | None) -> str:
    """Their `YYYYmmdd-HHMMSS` is local time of an unknown zone: taken as it stands, without the Z of UTC."""
    try:
        return datetime.strptime(date or "", "%Y%m%d-%H%M%S").isoformat()
    except ValueError:
        return date or ""
