"""AIPerf `profile_export_aiperf.json` and GenAI-Perf's of the same shape, and AIPerf's `profile_export.jsonl`.

A metric is `{"unit", "avg", "p50", …}`. Their inter_token_latency is our TPOT, their inter_chunk_latency our ITL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.records.exchange.foreign import UNCLASSIFIED, Foreign, make_point, told
from orchestrator.records.exchange.parts import Part
from orchestrator.records.exchange.stamps import request_of
from orchestrator.records.record import Failure, RequestRecord
from orchestrator.values import Json

FIGURES = {
    "ttft_ms": "time_to_first_token",
    "ttfa_ms": "time_to_first_output_token",
    "second_token_ms": "time_to_second_token",
    "tpot_ms": "inter_token_latency",
    "itl_ms": "inter_chunk_latency",
    "e2e_ms": "request_latency",
    "output_tok_per_s": "output_token_throughput",
    "input_tok_per_s": "input_token_throughput",
    "total_tok_per_s": "total_token_throughput",
    "decode_tok_per_s": "output_token_throughput_per_user",
    "per_user_tok_per_s": "e2e_output_token_throughput",
    "prefill_per_user_tok_per_s": "prefill_throughput_per_user",
    "request_per_s": "request_throughput",
    "good_request_per_s": "goodput",
    "requests_good": "request_count",
    "requests_failed": "error_request_count",
    "prompt_len_tok": "input_sequence_length",
    "output_len_tok": "output_sequence_length",
    "prompt_tok_total": "total_isl",
    "output_tok_total": "total_output_tokens",
    "duration_s": "benchmark_duration",
}
"""Our name -> theirs."""

WORDS = {"mean": "avg", "sd": "std", "min": "min", "max": "max", "n": "count"}
PERCENTILES = ("p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")
TO_MS = {"ms": 1.0, "ns": 1e-6, "us": 1e-3, "sec": 1e3, "s": 1e3}
SINGLE = frozenset(f"{what}_per_s" for what in ("output_tok", "input_tok", "total_tok", "request", "good_request")) | {
    "requests_good",
    "requests_failed",
    "prompt_tok_total",
    "output_tok_total",
    "duration_s",
}
"""Figures that are one number, in "avg"."""

UNITS = {"tokens/sec": "tok/s", "tokens/sec/user": "tok/s", "requests/sec": "req/s", "tokens": "tok", "sec": "s"}


def is_such(document: Mapping[str, Any]) -> bool:
    metric = document.get("request_throughput") or document.get("request_latency")
    return isinstance(metric, Mapping) and {"unit", "avg"} <= set(metric)


def is_record(document: Mapping[str, Any]) -> bool:
    head = document.get("metadata")
    return isinstance(head, Mapping) and "request_start_ns" in head and "metrics" in document


def read(parts: Sequence[Part]) -> Foreign:
    part = parts[0]
    version = part.find_text("aiperf_version")
    tool = "aiperf" if version or "schema_version" in part.raw else "genai-perf"
    config = _mapping(part.raw.get("input_config"))
    stated = told({ours: _figure(part, ours, theirs, tool) for ours, theirs in FIGURES.items()})
    users, rate = _load(config)
    duration_s = _value(stated, "duration_s", "value") or 0.0
    point = make_point(
        tool=tool,
        kind="open" if rate is not None else "closed",
        concurrency=users or 0,
        rate_rps=rate,
        prompt_tok=_value(stated, "prompt_len_tok", "mean"),
        output_tok=_value(stated, "output_len_tok", "mean"),
        stated=stated,
        requests_per_repeat=round(_value(stated, "requests_good", "value") or 0),
        duration_s=duration_s,
        started_at=part.find_text("start_time") or "",
        definitions={"clock": f"{tool}: perf_counter, at the socket's read"},
        extra=part.rest(but=("input_config",)),
    )
    return Foreign(
        tool=tool,
        title=tool,
        form="AIPerf profile export" if tool == "aiperf" else "GenAI-Perf profile export",
        points=(point,),
        version=version,
        model=_model(config),
        created_at=point.cell.started_at,
        extra={"input_config": _plain(config)},
    )


def _figure(part: Part, ours: str, theirs: str, tool: str) -> dict[str, Json] | None:
    metric = part.find_part(theirs)
    if metric is None:
        return None
    unit = metric.find_text("unit") or ""
    if (ours.endswith("_ms") or ours == "duration_s") and unit not in TO_MS:
        raise metric.wrong("unit", f"{unit!r} is no unit of time that gate0 knows")
    factor = TO_MS[unit] if ours.endswith("_ms") else TO_MS[unit] / 1e3 if ours == "duration_s" else 1.0
    unit = "ms" if ours.endswith("_ms") else "s" if ours == "duration_s" else UNITS.get(unit, unit)
    tag = f"{tool}/{theirs}"
    if ours in SINGLE:
        value = metric.find_number("avg")
        return None if value is None else {"value": value * factor, "unit": unit, "definition": tag}
    values = {**{o: metric.find_number(t) for o, t in WORDS.items()}, **{p: metric.find_number(p) for p in PERCENTILES}}
    if all(v is None for v in values.values()):
        return None
    found: dict[str, Json] = {k: v * factor if k != "n" else int(v) for k, v in values.items() if v is not None}
    return {**found, "unit": unit, "definition": tag}


def read_records(parts: Sequence[Part]) -> Foreign:
    """The per-request lines alone; the phase of warm-up is left out, as their summary does."""
    kept = [p for p in parts if p.part("metadata").raw.get("benchmark_phase") != "warmup"]
    zero = min((p.part("metadata").count("request_start_ns") for p in kept), default=0)
    requests = tuple(_request(i, part, zero) for i, part in enumerate(kept))
    ends = [r.end_ns for r in requests if r.end_ns is not None]
    prompts = [r.prompt_tok for r in requests if r.prompt_tok is not None]
    outputs = [r.output_tok for r in requests if r.output_tok is not None]
    point = make_point(
        tool="aiperf",
        kind="closed",
        concurrency=0,
        prompt_tok=sum(prompts) / len(prompts) if prompts else None,
        output_tok=sum(outputs) / len(outputs) if outputs else None,
        stated={},
        requests=requests,
        spans_ns=((0, max(ends)),) if ends else (),
        definitions={
            "ttft": "aiperf/time_to_first_token",
            "itl": "aiperf/inter_chunk_latency",
            "e2e": "aiperf/request_latency",
            "output_tok_per_s": "aiperf/output_token_throughput",
        },
    )
    return Foreign(tool="aiperf", title="aiperf", form="AIPerf per-request records", points=(point,))


def _request(index: int, part: Part, zero: int) -> RequestRecord:
    head, metrics = part.part("metadata"), part.part("metrics")
    start = head.count("request_start_ns")
    issued = head.find_count("credit_issued_ns")
    gaps = _metric(metrics, "inter_chunk_latency")
    error = part.find_part("error")
    first, latency = _number(metrics, "time_to_first_token"), _number(metrics, "request_latency")
    request = request_of(
        index,
        start_s=(start - zero) / 1e9,
        ttft_s=None if first is None else first / 1e3,
        gaps_s=[g / 1e3 for g in gaps] if isinstance(gaps, list) else [],
        latency_s=None if latency is None else latency / 1e3,
        output_tok=_count(metrics, "usage_completion_tokens", "output_sequence_length"),
        prompt_tok=_count(metrics, "usage_prompt_tokens", "input_sequence_length"),
        cached_tok=_count(metrics, "usage_prompt_cache_read_tokens"),
        reasoning_tok=_count(metrics, "usage_reasoning_tokens", "reasoning_token_count"),
        queue_s=(start - issued) / 1e9 if issued is not None else 0.0,
        error=(error.find_text("message") or error.find_text("type") or UNCLASSIFIED) if error else None,
        nonce=head.find_text("x_request_id"),
        turn=head.find_count("turn_index") or 0,
    )
    if head.raw.get("was_cancelled"):
        return RequestRecord.from_json({**request.as_json(), "failure": Failure.CANCELLED.value})
    return request


def _metric(metrics: Part, name: str) -> Any:
    found = metrics.find_part(name)
    return None if found is None else found.raw.get("value")


def _number(metrics: Part, name: str) -> float | None:
    found = metrics.find_part(name)
    return None if found is None else found.find_number("value")


def _count(metrics: Part, *names: str) -> int | None:
    value = next((v for name in names if (v := _number(metrics, name)) is not None), None)
    return None if value is None else round(value)


def _load(config: Mapping[str, Any]) -> tuple[int | None, float | None]:
    """Users and rate, as each generation of the configuration says them."""
    phases = config.get("phases")
    last = phases[-1] if isinstance(phases, list) and phases else None
    stimulus = _mapping(_mapping(config.get("perf_analyzer")).get("stimulus"))
    for source in (_mapping(last), _mapping(config.get("loadgen")), stimulus, config):
        users, rate = source.get("concurrency"), source.get("rate") or source.get("request_rate")
        if isinstance(users, int) or isinstance(rate, int | float):
            return users if isinstance(users, int) else None, rate if isinstance(rate, int | float) else None
    return None, None


def _model(config: Mapping[str, Any]) -> str:
    items = _mapping(config.get("models")).get("items")
    if isinstance(items, list) and items:
        return str(_mapping(items[0]).get("name") or "")
    for source in (config, _mapping(config.get("endpoint"))):
        names = source.get("model_names")
        if isinstance(names, list) and names:
            return str(names[0])
    return ""


def _value(stated: Mapping[str, Mapping[str, Json]], name: str, word: str) -> float | None:
    value = stated.get(name, {}).get(word)
    return value if isinstance(value, int | float) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _plain(config: Mapping[str, Any]) -> dict[str, Json]:
    return Part(config, where="").rest()
