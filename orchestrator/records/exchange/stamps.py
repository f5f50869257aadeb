"""Requests from what other tools keep of them: a start, a TTFT, the gaps, a latency; seconds in, nanoseconds out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from orchestrator.records.exchange.foreign import UNCLASSIFIED
from orchestrator.records.record import RequestRecord, TokenSource

NS_PER_S = 1e9
MAX_ERROR_CHARS = 500


def ns(value_s: float) -> int:
    return round(value_s * NS_PER_S)


def request_of(
    index: int,
    *,
    start_s: float | None,
    ttft_s: float | None,
    gaps_s: Sequence[float],
    latency_s: float | None,
    output_tok: int | None,
    error: str | None = None,
    queue_s: float = 0.0,
    **more: Any,
) -> RequestRecord:
    """One request from its own start.

    The gaps are those between chunks, so how many tokens an event carried is not known, unless there are as many chunks
    as tokens.

    Args:
        start_s: From the first start of the point; None: not told, the request counts from 0.
        queue_s: What it waited at the client's cap before its start.
        more: Further fields of the record.
    """
    sent = ns(start_s or 0.0)
    failure = UNCLASSIFIED if error else None
    has_first = bool(ttft_s) or (not error and ttft_s is not None)
    stamps = [sent + ns(t) for t in accumulate([ttft_s or 0.0, *gaps_s])] if has_first else []
    is_single = output_tok is not None and len(stamps) == output_tok
    return RequestRecord(
        repeat=0,
        index=index,
        scheduled_ns=sent - ns(queue_s),
        ready_ns=sent,
        sent_ns=sent,
        first_token_ns=stamps[0] if stamps else None,
        last_token_ns=stamps[-1] if stamps else None,
        end_ns=sent + ns(latency_s) if latency_s else None,
        events=tuple((t, 1 if is_single else None) for t in stamps),
        failure=failure,
        error=error[:MAX_ERROR_CHARS] if error else None,
        output_tok=output_tok,
        token_source=(TokenSource.ONE_PER_EVENT if is_single else TokenSource.USAGE_TOTAL).value,
        **more,
    )
