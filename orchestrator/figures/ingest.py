"""Long in, short out: documents an hour, and how much of the time is prefill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.figures.plain import Plain
from orchestrator.figures.request import e2e_ms, ttft_ms
from orchestrator.figures.scope import Window, good_of, rate_over
from orchestrator.figures.server import server_times
from orchestrator.figures.stats import Spread
from orchestrator.records.record import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestFigures(Plain):
    """Beside a cell's standard figures (prompt tok/s).

    Attributes:
        documents_per_h: Good requests / time of the repeat, mean over repeats.
        prefill_share: Time to the first token / whole time, summed over requests: what decode levers cannot touch.
        prefill_share_by: `server` (its own prefill and decode times), or `client` (TTFT / E2E from send: a queue in the
            server counts as prefill).
    """

    documents_per_h: Spread | None
    prefill_share: float | None
    prefill_share_by: str | None


def ingest_figures(main: Sequence[RequestRecord], spans: Mapping[int, Window]) -> IngestFigures | None:
    """None without a `main` request."""
    if not main:
        return None
    good = good_of(main)
    per_s = rate_over(spans, good, lambda _: 1)
    hourly = None if per_s is None else Spread(mean=per_s.mean * 3600, sd=_times(per_s.sd, 3600), n=per_s.n)
    by_server = _share([(t.ttft_ms, t.decode_ms) for r in good for t in (server_times(r),)])
    by_client = _share([(first, None if first is None or end is None else end - first) for first, end in _stamps(good)])
    share = by_server if by_server is not None else by_client
    by = "server" if by_server is not None else "client" if by_client is not None else None
    return IngestFigures(documents_per_h=hourly, prefill_share=share, prefill_share_by=by)


def _stamps(good: Sequence[RequestRecord]) -> list[tuple[float | None, float | None]]:
    return [(ttft_ms(r), e2e_ms(r)) for r in good]


def _share(parts: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Sum of the first / sum of both; None as soon as one is unknown."""
    known = [(a, b) for a, b in parts if a is not None and b is not None]
    total = sum(a + b for a, b in known)
    return sum(a for a, _ in known) / total if known and len(known) == len(parts) and total > 0 else None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
