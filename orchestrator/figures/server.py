"""What the server says of its own times, beside what the client saw; speculative acceptance from its counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.figures.plain import Plain
from orchestrator.figures.request import ttft_ms
from orchestrator.figures.stats import Percentiles, percentile, percentiles
from orchestrator.records.record import CellRecord, RequestRecord
from orchestrator.values import Json

GAP_MS = 5.0
GAP_SHARE = 0.03
SPEC_KEYS = ("spec_drafts", "spec_draft_tok", "spec_accepted_tok")


def number_of(told: Mapping[str, Json], key: str) -> float | None:
    """A number that a server told; anything else, or nothing, is None."""
    value = told.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTimes(Plain):
    """One request by the server's clock.

    Attributes:
        ttft_ms: Scheduled to first token, without the queue (vLLM `time_to_first_token_ms`; llama.cpp `prompt_ms`).
        queue_ms: None: the server does not tell it.
        decode_ms: After the first token (vLLM `generation_time_ms`; llama.cpp `predicted_ms`).
    """

    ttft_ms: float | None
    queue_ms: float | None
    decode_ms: float | None


def server_times(request: RequestRecord) -> ServerTimes:
    told = request.server
    ttft = number_of(told, "time_to_first_token_ms")
    decode = number_of(told, "generation_time_ms")
    return ServerTimes(
        ttft_ms=ttft if ttft is not None else number_of(told, "prompt_ms"),
        queue_ms=number_of(told, "queue_time_ms"),
        decode_ms=decode if decode is not None else number_of(told, "predicted_ms"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBeside(Plain):
    """Client and server of one cell side by side, ms.

    Attributes:
        gap_ms: Client TTFT - (queue + server TTFT): network, HTTP, tokenizer, our own stamps, and the queue where the
            server does not tell it (`has_queue` False).
        is_client_or_network_bound: The median gap exceeds both 5 ms and 3 % of the median TTFT. None: not decidable,
            the gap may be the server's queue.
    """

    n: int
    ttft_ms: Percentiles
    queue_ms: Percentiles | None
    gap_ms: Percentiles
    has_queue: bool
    is_client_or_network_bound: bool | None


def server_beside(cell: CellRecord, good: Sequence[RequestRecord]) -> ServerBeside | None:
    """Of the requests that the server told its time of; None when there is none."""
    rows = [
        (client, of_server.ttft_ms, of_server.queue_ms)
        for r in good
        if (client := ttft_ms(r)) is not None and (of_server := server_times(r)).ttft_ms is not None
    ]
    if not rows:
        return None
    own = [ttft for _, ttft, _ in rows if ttft is not None]
    queues = [queue for _, _, queue in rows if queue is not None]
    has_queue = len(queues) == len(rows)
    gap = percentiles([client - (ttft or 0.0) - (queue or 0.0) for client, ttft, queue in rows])
    is_alone = cell.concurrency == 1 and not cell.is_queueing
    return ServerBeside(
        n=len(rows),
        ttft_ms=percentiles(own),
        queue_ms=percentiles(queues) if has_queue else None,
        gap_ms=gap,
        has_queue=has_queue,
        is_client_or_network_bound=_is_bound(gap.p50, [c for c, _, _ in rows]) if has_queue or is_alone else None,
    )


def _is_bound(gap_ms: float | None, client_ms: Sequence[float]) -> bool | None:
    whole = percentile(client_ms, 0.5)
    return None if gap_ms is None or whole is None else gap_ms > max(GAP_MS, GAP_SHARE * whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation(Plain):
    """Speculative decoding over the cell, from the server's counters.

    Attributes:
        acceptance_length: 1 + accepted tokens / drafts: tokens a step, the target model's own included.
        acceptance_rate: Accepted / drafted tokens.
    """

    acceptance_length: float | None
    acceptance_rate: float | None
    drafts: float | None
    draft_tok: float | None
    accepted_tok: float


def speculation(cell: CellRecord) -> Speculation | None:
    """Summed over the laps; a cell without laps by what `server` says of it. None without counters, without any draft,
    or when a counter fell (the server was restarted).
    """
    deltas = [_delta(lap) for lap in cell.laps] or [{key: number_of(cell.server, key) for key in SPEC_KEYS}]
    drafts, draft_tok, accepted = (_total([d[key] for d in deltas]) for key in SPEC_KEYS)
    if accepted is None or not (drafts or draft_tok):
        return None
    return Speculation(
        acceptance_length=1 + accepted / drafts if drafts else None,
        acceptance_rate=accepted / draft_tok if draft_tok else None,
        drafts=drafts,
        draft_tok=draft_tok,
        accepted_tok=accepted,
    )


def _delta(lap: Mapping[str, Json]) -> dict[str, float | None]:
    before, after = lap.get("server_before"), lap.get("server_after")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return dict.fromkeys(SPEC_KEYS)
    ends = {key: (number_of(before, key), number_of(after, key)) for key in SPEC_KEYS}
    return {key: None if a is None or b is None or b < a else b - a for key, (a, b) in ends.items()}


def _total(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None
