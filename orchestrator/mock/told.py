"""What the mock says of an answer beside the answer: usage, its own times, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.mock.ask import Ask
from orchestrator.mock.settings import Cached, Flavour, MockSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """A stream's own times, monotonic ns: request in hand, prefill begun, first and last token event written.

    Attributes:
        events: Events with tokens. draft_tok, accepted_tok: what they stand for under speculation.
    """

    received_ns: int
    started_ns: int
    first_ns: int
    last_ns: int
    events: int = 0
    draft_tok: int = 0
    accepted_tok: int = 0

    @property
    def queue_ms(self) -> float:
        return max(0, self.started_ns - self.received_ns) / 1e6

    @property
    def prefill_ms(self) -> float:
        return max(0, self.first_ns - self.started_ns) / 1e6

    @property
    def decode_ms(self) -> float:
        return (self.last_ns - self.first_ns) / 1e6


NO_TIMES = Times(received_ns=0, started_ns=0, first_ns=0, last_ns=0)


def usage_json(prompt_tok: int, output_tok: int, cached_tok: int | None, settings: MockSettings) -> dict[str, Any]:
    """The usage object after `output_tok` tokens. `cached_tok` None: a running usage, which has no such detail."""
    usage: dict[str, Any] = {
        "prompt_tokens": prompt_tok,
        "completion_tokens": output_tok,
        "total_tokens": prompt_tok + output_tok,
    }
    if cached_tok is not None and settings.reports_cached_tok:
        usage |= _cached_details(cached_tok, settings.cached)
    if settings.reasoning_tok:
        reasoned = min(settings.reasoning_tok, output_tok)
        if settings.flavour is Flavour.SGLANG:
            usage["reasoning_tokens"] = reasoned
        elif settings.flavour is Flavour.VLLM:
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoned}
    return usage


def _cached_details(cached_tok: int, how: Cached) -> dict[str, Any]:
    if how is Cached.ABSENT or (how is Cached.OMITS_ZERO and cached_tok == 0):
        return {}
    if how is Cached.DETAILS_NULL:
        return {"prompt_tokens_details": None}
    told = {Cached.ZERO: 0, Cached.NULL: None}.get(how, cached_tok)
    return {"prompt_tokens_details": {"cached_tokens": told}}


def metrics_json(ask: Ask, times: Times, settings: MockSettings) -> dict[str, Any]:
    """vLLM's per-request `metrics`: first token from the start of the prefill, so without the queue."""
    total_s = (times.prefill_ms + times.decode_ms) / 1000
    metrics: dict[str, Any] = {
        "time_to_first_token_ms": times.prefill_ms,
        "generation_time_ms": times.decode_ms,
        "queue_time_ms": times.queue_ms,
        "mean_itl_ms": times.decode_ms / (ask.output_tok - 1) if ask.output_tok > 1 else None,
        "tokens_per_second": ask.output_tok / total_s if total_s > 0 else None,
    }
    if drafts_tok(settings):
        metrics["speculative_decoding"] = {
            "num_spec_steps": times.events,
            "num_draft_tokens": times.draft_tok,
            "num_accepted_draft_tokens": times.accepted_tok,
        }
    return metrics


def timings_json(ask: Ask, output_tok: int, cached_tok: int, times: Times, settings: MockSettings) -> dict[str, Any]:
    """llama-server's `timings`."""
    timings: dict[str, Any] = {
        "cache_n": cached_tok,
        "prompt_n": ask.prompt_tok - cached_tok,
        "prompt_ms": times.prefill_ms,
        "predicted_n": output_tok,
        "predicted_ms": times.decode_ms,
    }
    if drafts_tok(settings):
        timings |= {"draft_n": times.draft_tok, "draft_n_accepted": times.accepted_tok}
    return timings


def drafts_tok(settings: MockSettings) -> int:
    """Tokens that each step drafts beside the one it is sure of; 0 without speculation."""
    return max(settings.tokens_pattern or (settings.tokens_per_event,)) - 1 + settings.rejected_tok


def error_json(status: int, message: str, settings: MockSettings) -> bytes:
    """An error body in the flavour's shape."""
    if status == 401 and settings.flavour is Flavour.VLLM:
        return b'{"error":"Unauthorized"}'
    kind = "exceed_context_size_error" if settings.flavour is Flavour.LLAMACPP else "BadRequestError"
    if status == 503:
        kind = "unavailable_error" if settings.flavour is Flavour.LLAMACPP else "ServiceUnavailableError"
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": status}})
