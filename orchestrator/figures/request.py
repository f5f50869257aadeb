"""What one request's raw stamps mean. Times in ms unless the name says otherwise; None: the record does not tell."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, takewhile

from orchestrator.figures.plain import Plain
from orchestrator.records.record import RequestRecord

NS_PER_MS = 1e6
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFigures(Plain):
    """All figures of one request; each is defined in `figures.definitions` under its name."""

    ttft_ms: float | None
    ttft_scheduled_ms: float | None
    ttfa_ms: float | None
    ttfr_ms: float | None
    queue_wait_ms: float | None
    lateness_ms: float | None
    tpot_ms: float | None
    itl_ms: tuple[float, ...]
    itl_token_ms: tuple[tuple[float, int], ...] | None
    e2e_ms: float | None
    e2e_scheduled_ms: float | None
    per_user_tok_per_s: float | None
    normalised_ms: float | None


def request_figures(request: RequestRecord) -> RequestFigures:
    return RequestFigures(
        ttft_ms=ttft_ms(request),
        ttft_scheduled_ms=ttft_scheduled_ms(request),
        ttfa_ms=ttfa_ms(request),
        ttfr_ms=ttfr_ms(request),
        queue_wait_ms=queue_wait_ms(request),
        lateness_ms=lateness_ms(request),
        tpot_ms=tpot_ms(request),
        itl_ms=itl_ms(request),
        itl_token_ms=itl_token_ms(request),
        e2e_ms=e2e_ms(request),
        e2e_scheduled_ms=e2e_scheduled_ms(request),
        per_user_tok_per_s=user_tok_per_s(request),
        normalised_ms=normalised_ms(request),
    )


def ttft_ms(request: RequestRecord) -> float | None:
    """First token (content, reasoning, tool call) - first byte sent."""
    return between_ms(request.sent_ns, request.first_token_ns)


def ttft_scheduled_ms(request: RequestRecord) -> float | None:
    """First token - when the request was due: what a person waits, the cap's queue and our lateness included."""
    return between_ms(request.scheduled_ns, request.first_token_ns)


def ttfa_ms(request: RequestRecord) -> float | None:
    """First answer (content or tool call, after the reasoning) - first byte sent."""
    return between_ms(request.sent_ns, request.first_answer_ns)


def ttfr_ms(request: RequestRecord) -> float | None:
    """First event of the stream, with or without a token - first byte sent."""
    return between_ms(request.sent_ns, request.first_event_ns)


def queue_wait_ms(request: RequestRecord) -> float | None:
    """Ready - due: the wait for a place below the cap."""
    return between_ms(request.scheduled_ns, request.ready_ns)


def lateness_ms(request: RequestRecord) -> float | None:
    """First byte sent - ready: the client's own."""
    return between_ms(request.ready_ns, request.sent_ns)


def tpot_ms(request: RequestRecord) -> float | None:
    """(Last token - first token) / tokens after the first token event; None when the server told no token counts.

    All tokens that came with the first are left out of the divisor: under speculation its event may carry several, and
    a read may bring several events.
    """
    if request.first_token_ns is None or request.last_token_ns is None or request.output_tok is None:
        return None
    first_ns = request.first_token_ns
    upto_first = takewhile(lambda event: event[0] <= first_ns, request.events)
    at_first = [tok for t_ns, tok in upto_first if t_ns == first_ns]
    if not at_first or None in at_first:
        return None
    after_first = request.output_tok - sum(tok or 0 for tok in at_first)
    span_ns = request.last_token_ns - request.first_token_ns
    return span_ns / NS_PER_MS / after_first if after_first > 0 and span_ns > 0 else None


def itl_ms(request: RequestRecord) -> tuple[float, ...]:
    """Gaps between successive events that carried tokens; n - 1 of them, a chunk of k tokens counts once."""
    stamps = [t for t, _ in request.events]
    return tuple((b - a) / NS_PER_MS for a, b in pairwise(stamps))


def itl_token_ms(request: RequestRecord) -> tuple[tuple[float, int], ...] | None:
    """`(gap / k, k)` for each event after the first, k its tokens: the value and its weight.

    None when the tokens of one event are unknown; nothing is spread over guessed ones.
    """
    pairs = []
    for (before, _), (after, tok) in pairwise(request.events):
        if tok is None:
            return None
        if tok > 0:
            pairs.append(((after - before) / NS_PER_MS / tok, tok))
    return tuple(pairs)


def e2e_ms(request: RequestRecord) -> float | None:
    """End of the response - first byte sent."""
    return between_ms(request.sent_ns, request.end_ns)


def e2e_scheduled_ms(request: RequestRecord) -> float | None:
    """End of the response - when the request was due."""
    return between_ms(request.scheduled_ns, request.end_ns)


def user_tok_per_s(request: RequestRecord) -> float | None:
    """Output tokens / (end - first byte sent): prefill and all."""
    span_ms = e2e_ms(request)
    if span_ms is None or span_ms <= 0 or request.output_tok is None:
        return None
    return request.output_tok / span_ms * 1000


def normalised_ms(request: RequestRecord) -> float | None:
    """(End - first byte sent) / output tokens."""
    span_ms = e2e_ms(request)
    return None if span_ms is None or not request.output_tok else span_ms / request.output_tok


def uncached_tok(request: RequestRecord) -> int | None:
    """Prompt tokens that the server had to compute: all less the cached ones.

    Cached tokens that the server did not tell are taken as none only where none could be: a prompt with a nonce at its
    head, nothing shared, and nothing expected of the cache.
    """
    if request.prompt_tok is None:
        return None
    if request.cached_tok is not None:
        return max(0, request.prompt_tok - request.cached_tok)
    is_fresh = request.nonce is not None and not request.shared_tok and request.expected_cached_tok == 0
    return request.prompt_tok if is_fresh else None


def between_ms(start_ns: int | None, end_ns: int | None) -> float | None:
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / NS_PER_MS
