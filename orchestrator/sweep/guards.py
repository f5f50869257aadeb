"""Rules that a cell must keep to be valid. A cell that breaks one is invalid, not footnoted.

Too few slots is no guard: queueing is a thing one may want to measure. It is named in the record (`is_queueing`).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.record import Guard, RequestRecord
from orchestrator.sweep.spec import MAIN, LoadTarget
from orchestrator.sweep.workload import Cell
from orchestrator.values import Json

PROMPT_SHARE = 0.02
LAG_SHARE = 0.1
LAG_FLOOR_MS = 10.0
"""A lag below this is a scheduler's time slice; on a machine that also serves, no client stays under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardInput:
    """A cell as far as its guards need it.

    Attributes:
        laps: The repeats as `CellRecord.laps` keeps them, `requests` those of all of them and of all phases.
        lag_ms_p99: The load process's own lateness in the worst repeat; None: too short to tell.
    """

    cell: Cell
    target: LoadTarget
    laps: Sequence[Mapping[str, Json]]
    requests: Sequence[RequestRecord]
    lag_ms_p99: float | None = None


def broken_guards(cell: GuardInput) -> tuple[Guard, ...]:
    """Every rule that the cell broke, at most once each, worst request named."""
    checks: tuple[Callable[[GuardInput], Guard | None], ...] = (
        _failures,
        _prompt_length,
        _output_length,
        _cached_tokens,
        _client_lag,
    )
    return tuple(guard for check in checks if (guard := check(cell)) is not None)


def _good(cell: GuardInput) -> list[RequestRecord]:
    return [r for r in cell.requests if r.failure is None]


def _asked(cell: GuardInput, request: RequestRecord) -> int:
    return cell.cell.output_tok if request.asked_output_tok is None else request.asked_output_tok


def _failures(cell: GuardInput) -> Guard | None:
    main = [r for r in cell.requests if r.phase == MAIN]
    expected = cell.cell.requests_per_repeat * len(cell.laps) or len(main)
    missing = expected - len(main)
    counts = Counter(r.failure for r in cell.requests if r.failure is not None)
    if missing > 0:
        counts["not_sent"] = missing
    if not counts:
        return None
    listed = ", ".join(f"{name} {n}" for name, n in counts.most_common())
    first = next((r.error for r in cell.requests if r.error), None)
    message = f"{sum(counts.values())} of {expected} requests failed: {listed}"
    return Guard(name="failures", message=f"{message} ({first})" if first else message)


def _prompt_length(cell: GuardInput) -> Guard | None:
    off = [
        r
        for r in _good(cell)
        if r.prompt_tok is not None
        and r.expected_prompt_tok is not None
        and abs(r.prompt_tok - r.expected_prompt_tok) > PROMPT_SHARE * r.expected_prompt_tok
    ]
    if not off:
        return None
    worst = max(off, key=lambda r: abs((r.prompt_tok or 0) - (r.expected_prompt_tok or 0)))
    return Guard(
        name="prompt_length",
        message=f"{len(off)} prompts are more than {PROMPT_SHARE:.0%} off: "
        f"asked {worst.expected_prompt_tok} tokens, the server counted {worst.prompt_tok}",
    )


def _output_length(cell: GuardInput) -> Guard | None:
    if not cell.cell.is_length_fixed:
        return None
    off = [r for r in _good(cell) if r.output_tok is not None and r.output_tok != _asked(cell, r)]
    if not off:
        return None
    worst = max(off, key=lambda r: abs((r.output_tok or 0) - _asked(cell, r)))
    return Guard(
        name="output_length",
        message=f"{len(off)} answers have another length: asked {_asked(cell, worst)} tokens, "
        f"got {worst.output_tok} (finish reason {worst.finish_reason})",
    )


def _cached_tokens(cell: GuardInput) -> Guard | None:
    off = [
        r
        for r in _good(cell)
        if r.cached_tok is not None
        and r.expected_cached_tok is not None
        and r.cached_tok > r.expected_cached_tok + cell.target.cache_unit_tok
    ]
    if not off:
        return None
    worst = max(off, key=lambda r: r.cached_tok or 0)
    return Guard(
        name="cached_tokens",
        message=f"{len(off)} fresh prompts came from the prefix cache: expected at most {worst.expected_cached_tok} "
        f"tokens and one unit of {cell.target.cache_unit_tok}, saw {worst.cached_tok}",
    )


def _client_lag(cell: GuardInput) -> Guard | None:
    gaps = [(b[0] - a[0]) / 1e6 for r in _good(cell) for a, b in zip(r.events, r.events[1:], strict=False)]
    if cell.lag_ms_p99 is None or not gaps:
        return None
    limit = max(LAG_SHARE * statistics.median(gaps), LAG_FLOOR_MS)
    if cell.lag_ms_p99 <= limit:
        return None
    return Guard(
        name="client_lag",
        message=f"this machine was late by {cell.lag_ms_p99:.1f} ms (p99) where {limit:.1f} ms is the limit "
        f"for gaps of {statistics.median(gaps):.1f} ms: its own delay is in the figures",
    )
