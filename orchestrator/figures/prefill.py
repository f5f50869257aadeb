"""Prefill speed: prompt tokens that were really computed, over the time that took.

Never prompt tokens / TTFT: that counts cached tokens as work, and network, tokenizer and one decode step as prefill.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.figures.plain import Plain
from orchestrator.figures.request import uncached_tok
from orchestrator.figures.server import number_of
from orchestrator.figures.stats import percentile
from orchestrator.records.record import RequestRecord
from orchestrator.values import Json

if TYPE_CHECKING:
    from orchestrator.figures.cell import CellFigures

MIN_TOK = 64
"""Below it what was timed is the constant cost of a step, not prefill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillSpeed(Plain):
    """Uncached prompt tokens per second.

    Attributes:
        method: `server: prompt_ms` (llama.cpp), `server: time_to_first_token_ms` (vLLM), or
            `slope: 2048 to 8192 tokens at 1` (TTFT medians of two cold lengths, at that concurrency).
        n: Requests, or cells for a slope.
    """

    tok_per_s: float
    method: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefilled(Plain):
    """One request's prefill by the server's own clock."""

    tok: int
    seconds: float
    method: str


def server_prefill(request: RequestRecord) -> Prefilled | None:
    """None when the server tells no time, when it is not known how many tokens it computed, or when they were few."""
    told: Mapping[str, Json] = request.server
    if (ms := number_of(told, "prompt_ms")) is not None:
        tok, method = number_of(told, "prompt_n"), "server: prompt_ms"
    else:
        ms, tok = number_of(told, "time_to_first_token_ms"), uncached_tok(request)
        method = "server: time_to_first_token_ms"
    if ms is None or ms <= 0 or tok is None or tok < MIN_TOK:
        return None
    return Prefilled(tok=int(tok), seconds=ms / 1000, method=method)


def prefill_by_server(good: Sequence[RequestRecord]) -> PrefillSpeed | None:
    """The median over requests of tokens / second, each request by itself: others may have been prefilled beside it."""
    found = [p for r in good if (p := server_prefill(r)) is not None]
    if not found:
        return None
    median = statistics.median_low([p.tok / p.seconds for p in found])
    return PrefillSpeed(tok_per_s=median, method=found[0].method, n=len(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdPrompt(Plain):
    """What a slope needs of a cell whose prompts were all computed in full but for the template's head.

    Attributes:
        prompt_tok: Median of the tokens that were computed.
    """

    prompt_tok: float
    ttft_ms: float


def cold_prompt(good: Sequence[RequestRecord], ttft_p50_ms: float | None) -> ColdPrompt | None:
    """None when a prompt's length is unknown, or when some of it was cached or may have been."""
    lengths = [tok for r in good if (tok := uncached_tok(r)) is not None and _is_cold(r, tok)]
    if not good or len(lengths) < len(good) or ttft_p50_ms is None:
        return None
    median = percentile(lengths, 0.5)
    return None if median is None else ColdPrompt(prompt_tok=median, ttft_ms=ttft_p50_ms)


def _is_cold(request: RequestRecord, computed_tok: int) -> bool:
    """The cache gave at most what it gives every fresh prompt: the template before its first word."""
    expected_tok = 0 if request.nonce is None or request.shared_tok else request.expected_cached_tok or 0
    return request.prompt_tok is not None and request.prompt_tok - computed_tok <= expected_tok


def slope(shorter: ColdPrompt, longer: ColdPrompt) -> float | None:
    """(p2 - p1) / (TTFT(p2) - TTFT(p1)), tokens/s: constants cancel. None when the longer took no longer."""
    tok, ms = longer.prompt_tok - shorter.prompt_tok, longer.ttft_ms - shorter.ttft_ms
    return tok / ms * 1000 if tok > 0 and ms > 0 else None


def prefill_speed(point: CellFigures, others: Sequence[CellFigures]) -> PrefillSpeed | None:
    """By the server's own time, else by the slope to the nearest other cold length of the same series, else None.

    The slope is taken at the smallest concurrency that has two lengths, one user if possible: with more, TTFT holds the
    others' prefill too. A shorter neighbour is preferred to a longer one.
    """
    if point.prefill is not None or point.cold is None:
        return point.prefill
    for users in sorted({o.cell.concurrency for o in others if _is_series(point, o)}):
        series = [o for o in others if o.cell.concurrency == users and _is_series(point, o)]
        here = next((o for o in series if o.cell.prompt_tok == point.cell.prompt_tok), None)
        if here is None or here.cold is None:
            continue
        rest = sorted(
            (o.cold for o in series if o.cold is not None and o is not here),
            key=lambda cold: (cold.prompt_tok > here.cold.prompt_tok, abs(cold.prompt_tok - here.cold.prompt_tok)),  # type: ignore[union-attr]
        )
        for other in rest:
            pair = sorted((here.cold, other), key=lambda cold: cold.prompt_tok)
            if (found := slope(*pair)) is not None:
                words = f"slope: {pair[0].prompt_tok:.0f} to {pair[1].prompt_tok:.0f} tokens at {users}"
                return PrefillSpeed(tok_per_s=found, method=words, n=2)
    return None


def _is_series(point: CellFigures, other: CellFigures) -> bool:
    """The same load but for length and concurrency, and a valid cell."""
    a, b = point.cell, other.cell
    key = (a.workload, a.kind, a.variant, a.depth_tok, a.prefix_tok, a.vantage)
    return other.is_valid and key == (b.workload, b.kind, b.variant, b.depth_tok, b.prefix_tok, b.vantage)
