"""Rules that a cell must keep to be valid. A cell that breaks one is invalid, not footnoted.

Too few slots is no guard: queueing is a thing one may want to measure. It is named in the record (`is_queueing`).
Neither is a gap between the server's times and ours, or a drift over the repeats: those are figures.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.records.record import Guard
from orchestrator.sweep.guards.answers import cached_tokens, failures, output_length, prompt_length, token_source
from orchestrator.sweep.guards.cell import GuardInput
from orchestrator.sweep.guards.client import client_lag, late_sends
from orchestrator.sweep.guards.host import memory_exhausted, throttled
from orchestrator.sweep.guards.server import foreign_traffic, server_restarted

__all__ = ["CHECKS", "GuardInput", "broken_guards"]

CHECKS: tuple[Callable[[GuardInput], Guard | None], ...] = (
    failures,
    prompt_length,
    output_length,
    cached_tokens,
    token_source,
    client_lag,
    late_sends,
    server_restarted,
    foreign_traffic,
    throttled,
    memory_exhausted,
)


def broken_guards(cell: GuardInput) -> tuple[Guard, ...]:
    """Every rule that the cell broke, at most once each, the worst case named."""
    return tuple(guard for check in CHECKS if (guard := check(cell)) is not None)
