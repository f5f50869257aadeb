"""What this machine itself added: stamps taken late, requests sent late."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from orchestrator.records.record import Guard
from orchestrator.sweep.guards.cell import GuardInput, mapping, number
from orchestrator.values import Json

LAG_SHARE = 0.1
LAG_FLOOR_MS = 10.0
"""A lag below this is a scheduler's time slice; on a machine that also serves, no client stays under it."""
LEAST_STAMPS = 100
"""Of fewer the 99th percentile is the largest: one time slice of another process."""
LATE_NS = 5_000_000
LATE_SHARE = 0.01


def client_lag(cell: GuardInput) -> Guard | None:
    """A p99 lateness above 10 % of the median gap between events.

    By the kernel's receive stamps where there are some (how late each read was) and by how late the process woke, the
    worse of the two: a read after a stall carries the stamp of its newest packet, and shows of the stall only its end.
    """
    gaps_ms = [(b[0] - a[0]) / 1e6 for r in cell.good for a, b in zip(r.events, r.events[1:], strict=False)]
    stamps_ms = stamp_lag_ms(cell.laps)
    woke_ms = loop_lag_ms(cell.laps, least=1 if stamps_ms is None else LEAST_STAMPS)
    told = [(stamps_ms, "its stamps were late against the kernel's"), (woke_ms, "it woke late")]
    lag_ms, what = max(((ms, words) for ms, words in told if ms is not None), default=(None, ""))
    if lag_ms is None or not gaps_ms:
        return None
    gap_ms = statistics.median(gaps_ms)
    limit_ms = max(LAG_SHARE * gap_ms, LAG_FLOOR_MS)
    if lag_ms <= limit_ms:
        return None
    return Guard(
        name="client_lag",
        message=f"this machine is too slow or too busy for the load: {what} by {lag_ms:.1f} ms (p99) where "
        f"{limit_ms:.1f} ms is the limit for gaps of {gap_ms:.1f} ms",
    )


def late_sends(cell: GuardInput) -> Guard | None:
    """Of what was to come by the clock, more than 1 % left more than 5 ms after it could have."""
    sent = [
        (r.sent_ns - (r.scheduled_ns if r.ready_ns is None else r.ready_ns)) / 1e6
        for r in cell.requests
        if r.sent_ns is not None and cell.is_timed(r)
    ]
    late = [ms for ms in sent if ms > LATE_NS / 1e6]
    if not late or len(late) <= LATE_SHARE * len(sent):
        return None
    return Guard(
        name="late_sends",
        message=f"{len(late)} of {len(sent)} requests left this machine more than {LATE_NS / 1e6:.0f} ms late, the "
        f"worst {max(late):.1f} ms: the arrivals are not those asked for",
    )


def stamp_lag_ms(laps: Sequence[Mapping[str, Json]]) -> float | None:
    """The worst repeat's p99 against the kernel's stamps; None: no repeat has enough of them for a 99th percentile."""
    told = [mapping(lap, "stamp_lag_ms") or {} for lap in laps]
    enough = [stamps for stamps in told if (number(stamps, "n") or 0) >= LEAST_STAMPS]
    return max((v for stamps in enough if (v := number(stamps, "p99")) is not None), default=None)


def loop_lag_ms(laps: Sequence[Mapping[str, Json]], *, least: int = 1) -> float | None:
    """The worst repeat's p99 of how late the load process woke; None: no repeat woke at least so often."""
    enough = [lap for lap in laps if (number(lap, "lag_n") or 1) >= least]
    return max((v for lap in enough if (v := number(lap, "lag_ms_p99")) is not None), default=None)
