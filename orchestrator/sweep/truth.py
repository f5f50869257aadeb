"""What the server counts itself, read before and after a repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Counters = Mapping[str, float]
"""By our names (`prompt_tok`, `output_tok`, `cache_hits_tok`, `running`, …); a metric that is not there has no key."""

STARTED = "started_at_s"
STARTED_METRIC = "process_start_time_seconds"


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
