"""GuideLLM report v2 JSON: one point a benchmark, with its requests.

Its names are swapped against ours: their `inter_token_latency` is our TPOT (one value a request), their
`time_per_output_token` our E2E per token. It keeps no gaps, so no ITL comes of it. Its clock is the wall's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from orchestrator.records.exchange.foreign import UNCLASSIFIED, Foreign, Point, make_point, scalar, told
from orchestrator.records.exchange.parts import Part
from orchestrator.records.exchange.stamps import MAX_ERROR_CHARS, ns
from orchestrator.records.record import Failure, RequestRecord, TokenSource
from orchestrator.values import Json

TOOL = "guidellm"
FIGURES = {
    "ttft_ms": ("time_to_first_token_ms", "ms", 1),
    "ttfa_ms": ("time_to_first_output_token_ms", "ms", 1),
    "tpot_ms": ("inter_token_latency_ms", "ms", 1),
    "e2e_per_tok_ms": ("time_per_output_token_ms", "ms", 1),
    "e2e_ms": ("request_latency", "ms", 1000),
    "e2e_scheduled_ms": ("request_scheduled_latency", "ms", 1000),
    "dispatch_delay_ms": ("request_dispatch_delay", "ms", 1000),
    "output_tok_per_s": ("output_tokens_per_second", "tok/s", 1),
    "input_tok_per_s": ("prompt_tokens_per_second", "tok/s", 1),
    "total_tok_per_s": ("tokens_per_second", "tok/s", 1),
    "request_per_s": ("requests_per_second", "req/s", 1),
    "good_request_per_s": ("request_goodput", "req/s", 1),
    "mean_concurrency": ("request_concurrency", "requests", 1),
    "prompt_len_tok": ("prompt_token_count", "tok", 1),
    "output_len_tok": ("output_token_count", "tok", 1),
    "events_per_request": ("request_streaming_iterations_count", "events", 1),
    "tok_per_event": ("output_tokens_per_iteration", "tok", 1),
}
"""Our name -> theirs, the unit, and what theirs is to be multiplied with."""

WORDS = {"mean": "mean", "p50": "median", "sd": "std_dev", "min": "min", "max": "max"}
STATES = {"successful": None, "incomplete": Failure.CANCELLED.value, "errored": UNCLASSIFIED}


def is_such(document: Mapping[str, Any]) -> bool:
    runs = document.get("benchmarks")
    is_run = isinstance(runs, list) and bool(runs) and isinstance(runs[0], Mapping)
    return is_run and "metrics" in runs[0] and ("metadata" in document or "scheduler_metrics" in runs[0])  # type: ignore[index]


def read(parts: Sequence[Part]) -> Foreign:
    report = parts[0]
    head = report.find_part("metadata")
    if head is not None and head.find_count("version") not in (None, 2):
        raise head.wrong("version", f"{head.raw['version']} was found, gate0 reads 2")
    runs = report.parts("benchmarks")
    backend = _at(runs[0].raw, "config", "backend")
    return Foreign(
        tool=TOOL,
        title=TOOL,
        form="GuideLLM report",
        points=tuple(_point(run) for run in runs),
        version=head.find_text("guidellm_version") if head else None,
        model=str(_at(backend, "model") or ""),
        base_url=str(_at(backend, "target") or "") or None,
        created_at=_utc(_at(runs[0].raw, "start_time")),
        extra={**(head.rest() if head else {}), **report.rest()},
    )


def _point(run: Part) -> Point:
    metrics = run.part("metrics")
    strategy = Part(_at(run.raw, "config", "strategy") or {}, where=run.where, path=f"{run.path}.config.strategy")
    name = strategy.find_text("type_") or ""
    rate = strategy.find_number("rate")
    users = strategy.find_count("streams") or strategy.find_count("max_concurrency")
    stated = told({ours: _figure(metrics, *how) for ours, how in FIGURES.items()})
    duration_s = run.find_number("duration") or 0.0
    made = Part(_at(run.raw, "scheduler_metrics", "requests_made") or {}, where=run.where, path=run.path)
    stated.update(
        told(
            {
                "requests_good": scalar(made.find_number("successful"), "requests", f"{TOOL}/requests_made"),
                "requests_failed": scalar(made.find_number("errored"), "requests", f"{TOOL}/requests_made"),
                "requests_cut": scalar(made.find_number("incomplete"), "requests", f"{TOOL}/requests_made"),
                "attainment": scalar(metrics.find_number("slo_attainment"), "share", f"{TOOL}/slo_attainment"),
                "duration_s": scalar(run.find_number("duration"), "s", f"{TOOL}/duration"),
            }
        )
    )
    requests = _requests(run)
    is_open = rate is not None or name == "trace"
    return make_point(
        tool=TOOL,
        kind="open" if is_open else "closed",
        concurrency=1 if name == "synchronous" else users or 0,
        prompt_tok=_mean(stated, "prompt_len_tok"),
        output_tok=_mean(stated, "output_len_tok"),
        rate_rps=rate,
        stated=stated,
        requests=requests,
        requests_per_repeat=made.find_count("total") or len(requests),
        duration_s=duration_s,
        spans_ns=((0, ns(duration_s)),) if duration_s else (),
        started_at=_utc(run.find_number("start_time")),
        definitions={"clock": "guidellm: time.time() for each line; the wall clock may step"},
        extra={**run.rest(but=("requests", "type_")), "metrics": metrics.rest()},
    )


def _figure(metrics: Part, name: str, unit: str, factor: int) -> dict[str, Json] | None:
    """Of the successful requests; the other three distributions stay in the copy of the file."""
    split = metrics.find_part(name)
    good = split.find_part("successful") if split else None
    if good is None or good.find_count("count") == 0:
        return None
    values = {ours: good.find_number(theirs) for ours, theirs in WORDS.items()}
    shares = good.find_part("percentiles")
    for key in ("p90", "p95", "p99"):
        values[key] = shares.find_number(key) if shares else None
    found: dict[str, Json] = {k: v * factor for k, v in values.items() if v is not None}
    definition = f"{TOOL}/{name.removesuffix('_ms')}"
    return {**found, "n": good.find_count("count"), "unit": unit, "definition": definition}


def _requests(run: Part) -> tuple[RequestRecord, ...]:
    groups = run.find_part("requests")
    found = [(part, failure) for state, failure in STATES.items() for part in _group(groups, state)]
    starts = [s for part, _ in found if (s := _at(part.raw, "info", "timings", "request_start")) is not None]
    zero = min(starts, default=0.0)
    ordered = sorted(found, key=lambda f: _at(f[0].raw, "info", "timings", "request_start") or zero)
    return tuple(_request(i, part, failure, zero) for i, (part, failure) in enumerate(ordered))


def _group(groups: Part | None, state: str) -> tuple[Part, ...]:
    return groups.parts(state) if groups is not None and groups.has(state) else ()


def _request(index: int, part: Part, failure: str | None, zero: float) -> RequestRecord:
    info = part.part("info")
    timings = info.part("timings")
    error = info.find_text("error")

    def at(name: str) -> int | None:
        value = timings.find_number(name)
        return None if value is None else ns(value - zero)

    sent = at("request_start")
    return RequestRecord(
        repeat=0,
        index=index,
        scheduled_ns=at("targeted_start") or sent or 0,
        ready_ns=at("scheduled_at"),
        sent_ns=sent,
        first_event_ns=at("first_request_iteration"),
        first_token_ns=at("first_token_iteration"),
        first_answer_ns=at("first_output_token_iteration"),
        last_token_ns=at("last_token_iteration"),
        end_ns=at("request_end"),
        failure=failure,
        error=error[:MAX_ERROR_CHARS] if error else None,
        prompt_tok=part.find_count("prompt_tokens"),
        output_tok=part.find_count("output_tokens"),
        cached_tok=part.find_count("cached_tokens"),
        token_source=TokenSource.USAGE_TOTAL.value,
        turn=info.find_count("turn_index") or 0,
        nonce=part.find_text("request_id"),
    )


def _mean(stated: Mapping[str, Mapping[str, Json]], name: str) -> float | None:
    value = stated.get(name, {}).get("mean")
    return value if isinstance(value, int | float) else None


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _utc(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
