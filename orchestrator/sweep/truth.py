"""What the server counts itself, read before and after a repeat, and what the difference says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from orchestrator.records.record import RequestRecord
from orchestrator.values import Clock, Json, Sleep

Counters = Mapping[str, float]
"""By our names (`prompt_tok`, `output_tok`, `cache_hits_tok`, `running`, …); a metric that is not there has no key."""

STARTED = "started_at_s"
STARTED_METRIC = "process_start_time_seconds"
IN_FLIGHT = ("running", "waiting")
GAUGES = frozenset({*IN_FLIGHT, "kv_usage", "spec_acceptance_length", STARTED})
"""Values of the moment; all others only grow while the process lives."""
TIMES = ("ttft", "queue", "prefill", "decode", "itl", "e2e")
"""Histograms that are read as `<name>_sum_s` and `<name>_n`: their buckets are too coarse for more than a mean."""
CALM_S = 1.5
CALM_POLL_S = 0.1


class Metrics(Protocol):
    """The part of a target that is asked."""

    def metrics(self) -> Mapping[str, float] | None: ...


def read_counters(target: Metrics, names: Mapping[str, str]) -> Counters | None:
    """The engine's counters by our names; None: it tells none."""
    if not names:
        return None
    found = target.metrics()
    if found is None:
        return None
    told = {ours: found[theirs] for ours, theirs in names.items() if theirs in found}
    if STARTED_METRIC in found:
        told[STARTED] = found[STARTED_METRIC]
    return told or None


def read_calm(
    target: Metrics, names: Mapping[str, str], *, clock: Clock = time.monotonic, sleep: Sleep = time.sleep
) -> Counters | None:
    """The counters once nothing is in flight, or as they are after 1.5 s: an engine's gauges come after its answers."""
    found, deadline_s = read_counters(target, names), clock() + CALM_S
    while found is not None and any(found.get(name) for name in IN_FLIGHT) and clock() < deadline_s:
        sleep(CALM_POLL_S)
        found = read_counters(target, names)
    return found


def fallen(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[str, ...]:
    """Counters that are lower than before: another process counts."""
    pairs = ((name, before[name], after[name]) for name in before if name in after and name not in GAUGES)
    return tuple(n for n, b, a in pairs if isinstance(b, int | float) and isinstance(a, int | float) and a < b)


def server_side(laps: Sequence[Mapping[str, Json]], requests: Iterable[RequestRecord]) -> dict[str, Json]:
    """What the server says of the whole cell, its own totals beside ours: `CellRecord.server`.

    Returns:
        By our names the counters' growth, summed over the repeats whose counters were read on both sides and did not
        fall (`repeats` of them): warm-up and every phase are in it. `<time>_ms`: mean of the server's own histogram.
        `ours`: what the requests of those repeats tell, warm-up included. `cached_by_counters`, `cached_by_usage`:
        cached prompt tokens by either. Empty: the server has no metrics.
    """
    counted = [(lap, deltas) for lap in laps if (deltas := _deltas(lap)) is not None]
    if not counted:
        return {}
    totals: dict[str, float] = {}
    for name in sorted(set.intersection(*(set(deltas) for _, deltas in counted))):
        totals[name] = sum(deltas[name] for _, deltas in counted)
    repeats = {lap.get("repeat") for lap, _ in counted}
    ours = [r for r in requests if r.repeat in repeats]
    warm = [w for lap, _ in counted if isinstance(w := lap.get("unrecorded"), Mapping)]
    return {
        "repeats": len(counted),
        **totals,
        **_means(totals),
        "cached_by_counters": totals.get("cache_hits_tok"),
        "cached_by_usage": _told(ours, warm, "cached_tok", lambda r: r.cached_tok),
        "ours": {
            "requests": len(ours) + sum(_count(w, "requests") for w in warm),
            "prompt_tok": _told(ours, warm, "prompt_tok", lambda r: r.prompt_tok),
            "output_tok": _told(ours, warm, "output_tok", lambda r: r.output_tok),
        },
    }


def _deltas(lap: Mapping[str, Json]) -> dict[str, float] | None:
    before, after = lap.get("server_before"), lap.get("server_after")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or fallen(before, after):
        return None
    pairs = ((name, before[name], after[name]) for name in before if name in after and name not in GAUGES)
    return {n: a - b for n, b, a in pairs if isinstance(b, int | float) and isinstance(a, int | float)}


def _means(totals: Mapping[str, float]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name in TIMES:
        seconds, n = totals.get(f"{name}_sum_s"), totals.get(f"{name}_n")
        if seconds is not None and n:
            found[f"{name}_ms"] = seconds / n * 1000
    return found


def _told(
    requests: Sequence[RequestRecord],
    warm: Sequence[Mapping[str, Json]],
    name: str,
    value: Callable[[RequestRecord], int | None],
) -> int | None:
    """The sum over the good requests that told it, warm-up included; None: none did."""
    told = [v for r in requests if (v := value(r)) is not None]
    return sum(told) + sum(_count(w, name) for w in warm) if told else None


def _count(told: Mapping[str, Json], name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else 0
