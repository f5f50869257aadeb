"""SGLang `bench_serving` JSONL: one object a run, appended; a bare `Infinity` is an unlimited rate.

Its details have no starts, so each request counts from its own start; its E2E ends at `[DONE]`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.records.exchange.foreign import Foreign, Point, make_point, same_length, scalar, told
from orchestrator.records.exchange.parts import Part
from orchestrator.records.exchange.stamps import request_of
from orchestrator.records.record import RequestRecord
from orchestrator.values import Json

LATENCIES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "itl_ms": "itl", "e2e_ms": "e2e_latency"}
RATES = {
    "output_tok_per_s": ("output_throughput", "tok/s"),
    "input_tok_per_s": ("input_throughput", "tok/s"),
    "total_tok_per_s": ("total_throughput", "tok/s"),
    "request_per_s": ("request_throughput", "req/s"),
    "mean_concurrency": ("concurrency", "requests"),
    "peak_events_per_s": ("max_output_tokens_per_s", "events/s"),
    "peak_concurrency": ("max_concurrent_requests", "requests"),
    "requests_good": ("completed", "requests"),
    "prompt_tok_total": ("total_input_tokens", "tok"),
    "output_tok_total": ("total_output_tokens", "tok"),
    "output_tok_retokenized": ("total_output_tokens_retokenized", "tok"),
    "accepted_length": ("accept_length", "tok"),
    "duration_s": ("duration", "s"),
}
LISTS = ("input_lens", "output_lens", "ttfts", "itls", "errors", "cached_tokens", "start_times", "latencies")
_PERCENTILE = re.compile(r"p(\d+)_(.+)_ms")


def is_such(document: Mapping[str, Any]) -> bool:
    return "request_throughput" in document and bool(
        {"total_throughput", "mean_e2e_latency_ms", "server_info"} & set(document)
    )


def read(parts: Sequence[Part]) -> Foreign:
    points = tuple(_point(part) for part in parts)
    backend = parts[0].find_text("backend") or ""
    server = parts[0].raw.get("server_info")
    args = server if isinstance(server, Mapping) else {}
    return Foreign(
        tool="sglang",
        title="sglang bench_serving",
        form="SGLang bench_serving result",
        points=points,
        engine="sglang" if args or backend.startswith("sglang") else backend or "unknown",
        engine_version=_text(args.get("version")),
        model=_text(args.get("served_model_name")) or _text(args.get("model_path")) or "",
        extra={"server_info": {k: v for k, v in args.items() if isinstance(v, str | int | float | bool)}},
    )


def _point(part: Part) -> Point:
    duration_s, completed = part.number("duration"), part.count("completed")
    rate, cap = part.find_number("request_rate"), part.find_count("max_concurrency")
    is_open = rate is not None and math.isfinite(rate)
    requests = _requests(part)
    stated = {
        **{ours: _distribution(part, theirs) for ours, theirs in LATENCIES.items()},
        **{o: scalar(part.find_number(t), unit, f"sglang/{t}") for o, (t, unit) in RATES.items()},
        "cached_share": _cached(part),
    }
    prompt, output = part.find_number("total_input_tokens"), part.find_number("total_output_tokens")
    return make_point(
        tool="sglang",
        kind="open" if is_open else "closed" if cap else "batch",
        concurrency=cap or (0 if is_open else completed),
        prompt_tok=prompt / completed if prompt is not None and completed else None,
        output_tok=output / completed if output is not None and completed else None,
        stated=told(stated),
        requests=requests,
        definitions={"clock": "sglang: perf_counter; each request from its own start unless starts are told"},
        requests_per_repeat=len(requests) or completed,
        rate_rps=rate if is_open else None,
        duration_s=duration_s,
        spans_ns=((0, round(duration_s * 1e9)),),
        extra=part.rest(but=("generated_texts",)),
    )


def _distribution(part: Part, name: str) -> dict[str, Json] | None:
    found = {
        ours: part.find_number(f"{theirs}_{name}_ms")
        for ours, theirs in (("mean", "mean"), ("p50", "median"), ("sd", "std"))
    }
    for key in part.raw:
        match = _PERCENTILE.fullmatch(key)
        if match and match[2] == name:
            found[f"p{match[1]}"] = part.find_number(key)
    if all(v is None for v in found.values()):
        return None
    return {**{k: v for k, v in found.items() if v is not None}, "unit": "ms", "definition": f"sglang/{name}"}


def _cached(part: Part) -> dict[str, Json] | None:
    report = part.find_part("cache_report")
    if report is None:
        return None
    percent = report.find_number("cache_hit_rate_pct")
    figure = scalar(None if percent is None else percent / 100, "share", "sglang/cache_hit_rate")
    return None if figure is None else {**figure, "report": report.rest()}


def _requests(part: Part) -> tuple[RequestRecord, ...]:
    if not (part.has("ttfts") and part.has("itls")):
        return ()
    lists = {name: part.find_list(name) for name in LISTS}
    count = same_length(part.where, lists)
    ttfts, starts = part.find_numbers("ttfts") or [], part.find_numbers("start_times")
    first = min((s for s in starts or () if s is not None), default=0.0)
    done = []
    for i in range(count):
        gaps = (lists["itls"] or [])[i]
        if not isinstance(gaps, list):
            raise part.wrong(f"itls[{i}]", f"{gaps!r:.60} is not a list of numbers")
        done.append(
            request_of(
                i,
                start_s=(starts[i] or 0.0) - first if starts else None,
                ttft_s=ttfts[i],
                gaps_s=gaps,
                latency_s=_at(lists["latencies"], i),
                output_tok=_count(lists["output_lens"], i),
                prompt_tok=_count(lists["input_lens"], i),
                cached_tok=_count(lists["cached_tokens"], i),
                error=str(_at(lists["errors"], i) or "") or None,
            )
        )
    return tuple(done)


def _at(values: Sequence[Any] | None, index: int) -> Any:
    return values[index] if values else None


def _count(values: Sequence[Any] | None, index: int) -> int | None:
    value = _at(values, index)
    return round(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
