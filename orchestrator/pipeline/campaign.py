"""Several roads at once: deploys in parallel, sweeps one host group at a time unless told otherwise.

Why one at a time: two loads from one machine disturb each other's clock, and two Sparks behind one switch each other's
network. `--sweep-together` is for who measures both as one service.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

from orchestrator.errors import Gate0Error
from orchestrator.pipeline.road import Road
from orchestrator.pipeline.run import travel
from orchestrator.records.record import RunRecord


class Turns:
    """Hands out the turn to sweep: one at a time, or everyone at once."""

    def __init__(self, *, together: bool) -> None:
        self._lock: AbstractContextManager[object] = nullcontext() if together else threading.Lock()

    def __call__(self) -> AbstractContextManager[object]:
        return self._lock


def travel_all(roads: Sequence[Road]) -> tuple[RunRecord, ...]:
    """Take all roads; their records in order. A fault of gate0 itself on one road is raised once all have ended."""
    if len(roads) == 1:
        return (travel(roads[0]),)
    with ThreadPoolExecutor(len(roads), thread_name_prefix="road") as pool:
        futures = [pool.submit(travel, road) for road in roads]
    return tuple(future.result() for future in futures)


def exit_code(errors: Sequence[Gate0Error | None]) -> int:
    """The command's exit code: interrupted, our bug, the box, the input, a gate, in this order of weight."""
    codes = {error.exit_code for error in errors if error is not None}
    return next((code for code in (130, 4, 3, 2, 1) if code in codes), 0)
