"""The token events of many requests as flat columns, for what is counted over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from orchestrator.figures.request import NS_PER_MS
from orchestrator.figures.stats import SHARES, Percentiles, percentiles_of_sorted, values_needed
from orchestrator.records.record import RequestRecord

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventColumns:
    """All shapes (events,). Stamps are exact: whole ns below 2^53 (104 days).

    Attributes:
        at_ns: Time of each event, by request, ascending within one.
        tok: Its tokens; NaN where unknown.
        owner: Index of its request in the sequence that it was made from.
    """

    at_ns: Floats
    tok: Floats
    owner: NDArray[np.int64]

    @property
    def is_counted(self) -> bool:
        """The tokens of every event are known."""
        return not bool(np.isnan(self.tok).any())


def event_columns(requests: Sequence[RequestRecord]) -> EventColumns:
    lengths = np.fromiter((len(r.events) for r in requests), dtype=np.int64, count=len(requests))
    total = int(lengths.sum())
    flat = chain.from_iterable(chain.from_iterable(r.events for r in requests))
    pairs = np.fromiter(flat, dtype=np.float64, count=2 * total).reshape(total, 2)
    return EventColumns(
        at_ns=np.ascontiguousarray(pairs[:, 0]),
        tok=np.ascontiguousarray(pairs[:, 1]),
        owner=np.repeat(np.arange(len(requests), dtype=np.int64), lengths),
    )


def itl_percentiles(events: EventColumns) -> Percentiles:
    """Of the gaps between successive events of one request, ms, pooled: a chunk of k tokens counts once."""
    gaps_ms, _ = _gaps(events)
    gaps_ms.sort()
    return percentiles_of_sorted(_plain(gaps_ms), is_independent=False)


def itl_token_percentiles(events: EventColumns) -> Percentiles | None:
    """Of gap / tokens, each weighted by its tokens, ms; `n` is the number of gaps.

    None when the tokens of one event are unknown: the requests that can be counted are not like the others (under
    speculation they are those without an accepted draft).
    """
    gaps_ms, tok = _gaps(events)
    if np.isnan(tok).any():
        return None
    has_token = tok > 0
    values, weights = gaps_ms[has_token] / tok[has_token], tok[has_token]
    n = len(values)
    if n == 0:
        return percentiles_of_sorted(())
    order = np.argsort(values, kind="stable")
    values, upto = values[order], np.cumsum(weights[order])
    ranks = np.searchsorted(upto, [share * upto[-1] for share in SHARES.values()], side="left")
    shown = {
        name: float(values[min(rank, n - 1)])
        for (name, share), rank in zip(SHARES.items(), ranks, strict=True)
        if n >= values_needed(share)
    }
    return Percentiles(
        n=n,
        mean=float(gaps_ms[has_token].sum() / upto[-1]),
        p50=shown["p50"],
        p90=shown.get("p90"),
        p95=shown.get("p95"),
        p99=shown.get("p99"),
        min=float(values[0]),
        max=float(values[-1]),
    )


def _gaps(events: EventColumns) -> tuple[Floats, Floats]:
    """Gap to the event before of the same request (ms), and the tokens that came at its end."""
    is_same = events.owner[1:] == events.owner[:-1]
    return np.diff(events.at_ns)[is_same] / NS_PER_MS, events.tok[1:][is_same]


def _plain(values: Floats) -> list[float]:
    found: list[float] = values.tolist()
    return found
