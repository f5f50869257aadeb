"""inference-perf: `summary_lifecycle_metrics.json`, `stage_N_…` (same shape) and `per_request_…`; all in seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from orchestrator.records.exchange.foreign import UNCLASSIFIED, Foreign, make_point, scalar, told
from orchestrator.records.exchange.parts import Part
from orchestrator.records.exchange.stamps import MAX_ERROR_CHARS, ns
from orchestrator.records.record import RequestRecord, TokenSource
from orchestrator.values import Json

TOOL = "inference-perf"
LATENCIES = {
    "ttft_ms": "time_to_first_token",
    "tpot_ms": "time_per_output_token",
    "itl_ms": "inter_token_latency",
    "e2e_ms": "request_latency",
    "e2e_per_tok_ms": "normalized_time_per_output_token",
}
RATES = {
    "input_tok_per_s": ("input_tokens_per_sec", "tok/s"),
    "output_tok_per_s": ("output_tokens_per_sec", "tok/s"),
    "total_tok_per_s": ("total_tokens_per_sec", "tok/s"),
    "request_per_s": ("requests_per_sec", "req/s"),
}
WORDS = {"mean": "mean", "median": "p50", "min": "min", "max": "max", "std": "sd", "std_dev": "sd"}
_PERCENTILE = re.compile(r"p\d+(?:\.\d+)?")


def is_such(document: Mapping[str, Any]) -> bool:
    return {"load_summary", "successes"} <= set(document)


def is_record(document: Mapping[str, Any]) -> bool:
    return {"start_time", "end_time", "info"} <= set(document)


def read(parts: Sequence[Part]) -> Foreign:
    part = parts[0]
    load, good = part.part("load_summary"), part.part("successes")
    latency, rates = good.find_part("latency"), good.find_part("throughput")
    failures = part.find_part("failures")
    stated: dict[str, Mapping[str, Json] | None] = {
        **{o: _distribution(latency, t, "ms", 1000) for o, t in LATENCIES.items()},
        **{o: scalar(rates.find_number(t) if rates else None, u, f"{TOOL}/{t}") for o, (t, u) in RATES.items()},
        "schedule_delay_ms": _distribution(load, "schedule_delay", "ms", 1000),
        "prompt_len_tok": _distribution(good, "prompt_len", "tok", 1) or _distribution(rates, "prompt_len", "tok", 1),
        "output_len_tok": _distribution(good, "output_len", "tok", 1) or _distribution(rates, "output_len", "tok", 1),
        "achieved_rate_per_s": scalar(load.find_number("achieved_rate"), "req/s", f"{TOOL}/achieved_rate"),
        "requests_good": scalar(good.number("count"), "requests", f"{TOOL}/successes"),
        "requests_failed": scalar(failures.find_number("count") if failures else None, "requests", f"{TOOL}/failures"),
    }
    rate, users = load.find_number("requested_rate"), load.find_count("concurrency")
    found = told(stated)
    point = make_point(
        tool=TOOL,
        kind="closed" if users else "open",
        concurrency=users or 0,
        rate_rps=None if users else rate,
        prompt_tok=_mean(found, "prompt_len_tok"),
        output_tok=_mean(found, "output_len_tok"),
        stated=found,
        requests_per_repeat=load.count("count"),
        definitions={"clock": "inference-perf: perf_counter, after the split at a blank line"},
        extra={
            **part.rest(),
            **{f"load_summary.{k}": v for k, v in load.rest().items()},
            **{f"successes.{k}": v for k, v in good.rest().items()},
            **{f"failures.{k}": v for k, v in (failures.rest() if failures else {}).items()},
        },
    )
    return Foreign(tool=TOOL, title=TOOL, form="inference-perf lifecycle metrics", points=(point,))


def _distribution(part: Part | None, name: str, unit: str, factor: int) -> dict[str, Json] | None:
    values = part.find_part(name) if part else None
    if values is None:
        return None
    found: dict[str, Json] = {}
    for key in values.raw:
        ours = WORDS.get(key) or (key if _PERCENTILE.fullmatch(key) else None)
        value = values.find_number(key) if ours else None
        if ours is not None and value is not None:
            found[ours] = value * factor
    return {**found, "unit": unit, "definition": f"{TOOL}/{name}"} if found else None


def read_records(parts: Sequence[Part]) -> Foreign:
    """The requests alone; prompts and answers stay in the copy of the file."""
    zero = min(part.number("start_time") for part in parts)
    ordered = sorted(parts, key=lambda p: p.number("start_time"))
    requests = tuple(_request(i, part, zero) for i, part in enumerate(ordered))
    ends = [r.end_ns for r in requests if r.end_ns is not None]
    prompts = [r.prompt_tok for r in requests if r.prompt_tok is not None]
    outputs = [r.output_tok for r in requests if r.output_tok is not None]
    point = make_point(
        tool=TOOL,
        kind="open",
        concurrency=0,
        prompt_tok=sum(prompts) / len(prompts) if prompts else None,
        output_tok=sum(outputs) / len(outputs) if outputs else None,
        stated={},
        requests=requests,
        spans_ns=((0, max(ends)),) if ends else (),
        definitions={
            "ttft": f"{TOOL}/time_to_first_token",
            "itl": f"{TOOL}/inter_token_latency",
            "e2e": f"{TOOL}/request_latency",
            "output_tok_per_s": f"{TOOL}/output_tokens_per_sec",
        },
    )
    return Foreign(tool=TOOL, title=TOOL, form="inference-perf per-request metrics", points=(point,))


def _request(index: int, part: Part, zero: float) -> RequestRecord:
    start, end = part.number("start_time"), part.number("end_time")
    info = part.find_part("info") or Part({}, where=part.where, path=part.path)
    answer = info.find_part("response_metrics") or info
    times = answer.find_numbers("output_token_times") or answer.find_numbers("chunk_times") or []
    stamps = [ns(t - zero) for t in times if t is not None]
    output = answer.find_count("output_tokens")
    has_counts = output is not None and output == len(stamps)
    events = tuple((t, sum(1 for _ in same) if has_counts else None) for t, same in groupby(stamps))
    error = part.find_part("error")
    words = (error.find_text("error_msg") or error.find_text("error_type") or UNCLASSIFIED) if error else None
    scheduled = part.find_number("scheduled_time")
    return RequestRecord(
        repeat=0,
        index=index,
        scheduled_ns=ns((start if scheduled is None else scheduled) - zero),
        sent_ns=ns(start - zero),
        first_token_ns=stamps[0] if stamps else None,
        last_token_ns=stamps[-1] if stamps else None,
        end_ns=ns(end - zero),
        events=events,
        failure=UNCLASSIFIED if error else None,
        error=words[:MAX_ERROR_CHARS] if words else None,
        prompt_tok=info.find_count("input_tokens"),
        output_tok=output,
        token_source=(TokenSource.CUMULATIVE_USAGE if has_counts else TokenSource.UNKNOWN).value,
    )


def _mean(stated: Mapping[str, Mapping[str, Json]], name: str) -> float | None:
    value = stated.get(name, {}).get("mean")
    return value if isinstance(value, int | float) else None
