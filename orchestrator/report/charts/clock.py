"""When it was, by UTC, at the zero of a repeat's clock.

Requests are stamped on a monotonic clock, telemetry in UTC. A lap tells when it was begun by UTC (`started_at`, before
its prompts were cut and its load process was started) and how long all of it took (`duration_s`); its clock began after
the one and early enough for all its requests to fit before the other:

    started_at  <=  UTC of the clock's zero  <=  started_at + duration_s - the last answer's end

That is a bracket as wide as what the lap did beside its load. All load processes of a run read one monotonic clock
(`epoch_ns`), so that UTC - monotonic is one number, which lies in the brackets of all laps: their intersection is the
answer, its middle is used and its half width is the error that is said. Where the brackets have nothing in common (the
machine was started anew or its clock was set between two attempts) a lap's own bracket stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.figures.request import NS_PER_S
from orchestrator.records.record import CellRecord
from orchestrator.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Zero:
    """`utc_s`: seconds since 1970 at the zero of the repeat's own clock, right within `error_s` either way.

    `offset_ns`: what the cell's clock shows then.
    """

    utc_s: float
    error_s: float
    offset_ns: int


def lap_zero(cell: CellRecord, repeat: int, cells: Sequence[CellRecord]) -> Zero | None:
    """None: the record does not tell enough.

    Args:
        cells: All of the run, this one too.
    """
    lap = next((lap for lap in cell.laps if lap.get("repeat") == repeat), None)
    own = None if lap is None else _bracket(lap)
    if lap is None or own is None:
        return None
    low, high = own
    epoch, offset = _epoch_s(lap), lap.get("offset_ns")
    if epoch is not None:
        brackets = [
            (a - e, b - e) for c in cells for o in c.laps if (e := _epoch_s(o)) and (ab := _bracket(o)) for a, b in [ab]
        ]
        both = max(a for a, _ in brackets), min(b for _, b in brackets)
        low, high = (both[0] + epoch, both[1] + epoch) if both[0] <= both[1] else own
    return Zero(utc_s=(low + high) / 2, error_s=(high - low) / 2, offset_ns=offset if isinstance(offset, int) else 0)


def utc_s(stamp: object) -> float | None:
    """Of an ISO-8601 stamp with its zone."""
    try:
        at = datetime.fromisoformat(str(stamp))
    except ValueError:
        return None
    return None if at.tzinfo is None else at.timestamp()


def _bracket(lap: Mapping[str, Json]) -> tuple[float, float] | None:
    began, took = utc_s(lap.get("started_at")), lap.get("duration_s")
    offset, end = lap.get("offset_ns", 0), _last_end_ns(lap)
    if began is None or not isinstance(took, int | float) or not isinstance(offset, int) or end is None:
        return None
    last = began + took - (end - offset) / NS_PER_S
    return (began, last) if last >= began else None


def _last_end_ns(lap: Mapping[str, Json]) -> int | None:
    phases = lap.get("phases")
    spans = [p.get("span_ns") for p in phases if isinstance(p, Mapping)] if isinstance(phases, list | tuple) else []
    ends = [s[1] for s in (*spans, lap.get("span_ns")) if isinstance(s, list | tuple) and len(s) == 2]
    return max((e for e in ends if isinstance(e, int)), default=None)


def _epoch_s(lap: Mapping[str, Json]) -> float | None:
    phases = lap.get("phases")
    first = phases[0] if isinstance(phases, list | tuple) and phases else None
    epoch = first.get("epoch_ns") if isinstance(first, Mapping) else None
    return epoch / NS_PER_S if isinstance(epoch, int) else None
