"""Run a suite against a server, gate by gate, and say what the whole of it means."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.errors import Interrupted
from orchestrator.gating.gate import Status, Verdict
from orchestrator.gating.plugins import load_gates
from orchestrator.gating.suite_file import Suite, SuiteItem, adjust_suite, load_suite
from orchestrator.values import Clock, Json, utc_now
from orchestrator.wire.chat import Target

__all__ = [
    "GateEvent",
    "GateResult",
    "Suite",
    "SuiteItem",
    "SuiteOutcome",
    "adjust_suite",
    "load_gates",
    "load_suite",
    "run_gate",
    "run_suite",
]

_GOOD = {Status.PASS, Status.SKIP}
_LETS_THROUGH = {Status.PASS, Status.SKIP, Status.UNSTABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One gate's verdict, with what it was asked and how long it took. `started_at`: UTC, ISO-8601."""

    name: str
    title: str
    verdict: Verdict
    is_required: bool = True
    params: Mapping[str, Json] = field(default_factory=dict)
    started_at: str = ""
    duration_s: float = 0.0

    @property
    def is_blocking(self) -> bool:
        """True when no sweep may follow: required, and failed or undecided."""
        return self.is_required and self.verdict.status not in _LETS_THROUGH

    def as_json(self) -> dict[str, Json]:
        """The fields of a gate's record."""
        return {
            "name": self.name,
            "status": self.verdict.status.value,
            "summary": self.verdict.summary,
            "is_required": self.is_required,
            "measured": dict(self.verdict.measured),
            "evidence": [dict(e) for e in self.verdict.evidence],
            "params": dict(self.params),
            "hint": self.verdict.hint,
            "started_at": self.started_at,
            "duration_s": self.duration_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEvent:
    """Progress: a gate starts, or it has its result. `index` counts from 1 to `total`."""

    kind: Literal["started", "finished"]
    name: str
    title: str
    index: int
    total: int
    result: GateResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOutcome:
    """What a suite's results mean together. `suite`: as it ran, that is after `adjust_suite`."""

    suite: Suite
    results: tuple[GateResult, ...]

    @property
    def is_complete(self) -> bool:
        """True when every gate of the suite has a result."""
        return {r.name for r in self.results} == {i.gate.name for i in self.suite.items}

    @property
    def passed(self) -> bool:
        """True when a sweep may follow: complete, and every required gate is PASS, UNSTABLE or SKIP."""
        return self.is_complete and not self.blocking

    @property
    def blocking(self) -> tuple[GateResult, ...]:
        """The results that forbid a sweep."""
        return tuple(r for r in self.results if r.is_blocking)

    @property
    def is_clean(self) -> bool:
        """True when all gates, the optional ones too, are PASS or SKIP."""
        return self.is_complete and all(r.verdict.status in _GOOD for r in self.results)

    @property
    def label(self) -> str:
        """The one line for tables.

        'Gate 0 passed' stands for the shipped suite `gate0` as shipped, every required gate PASS or SKIP and at least
        one PASS. UNSTABLE is named, never a tick. Any other suite reads by its own name.
        """
        name = "Gate 0" if self.suite.is_main else f"suite {self.suite.name}"
        name += " (modified)" if self.suite.is_modified else ""
        required = [r for r in self.results if r.is_required]
        if self.blocking:
            return f"{name} failed: {_names(self.blocking)}"
        if not self.is_complete:
            return f"{name} not finished: {len(self.results)} of {len(self.suite.items)} gates ran"
        unstable = [r for r in required if r.verdict.status is Status.UNSTABLE]
        if unstable:
            return f"{name} unstable: {_names(unstable)}"
        if not any(r.verdict.status is Status.PASS for r in self.results):
            return f"{name} skipped: no gate applies"
        return f"{name} passed"


def run_suite(
    suite: Suite,
    target: Target,
    *,
    overrides: Mapping[str, Mapping[str, Json]] | None = None,
    optional: Sequence[str] = (),
    on_event: Callable[[GateEvent], None] = lambda _: None,
    is_cancelled: Callable[[], bool] = lambda: False,
    clock: Clock = time.monotonic,
) -> tuple[GateResult, ...]:
    """Run every gate in order and collect the results.

    Args:
        overrides: Parameters by gate name, over the suite's own.
        optional: Gates that may fail.
        on_event: Told when a gate starts and when it has its result.
        is_cancelled: Asked before each gate; True leaves the rest out (`SuiteOutcome.is_complete` is then False).

    Raises:
        InputError: An override that does not fit, before any gate runs.
        Interrupted: Passed on from a gate.
    """
    adjusted = adjust_suite(suite, params=overrides or {}, optional=optional)
    results: list[GateResult] = []
    for index, item in enumerate(adjusted.items, start=1):
        if is_cancelled():
            break
        name, title, total = item.gate.name, item.gate.title, len(adjusted.items)
        on_event(GateEvent(kind="started", name=name, title=title, index=index, total=total))
        result = run_gate(item, target, clock=clock)
        results.append(result)
        on_event(GateEvent(kind="finished", name=name, title=title, index=index, total=total, result=result))
    return tuple(results)


def run_gate(item: SuiteItem, target: Target, *, clock: Clock = time.monotonic) -> GateResult:
    """Run one gate. What it raises becomes an ERROR verdict: a plugin's bug must not end the run."""
    started_at, started_s = utc_now(), clock()
    try:
        verdict = item.gate.check(target, item.params)
    except Interrupted:
        raise
    except Exception as exc:  # noqa: BLE001 - a gate is a plugin: it may raise anything
        verdict = Verdict(
            status=Status.ERROR,
            summary=f"the gate itself broke: {type(exc).__name__}: {exc}",
            evidence=({"label": "traceback", "text": "".join(traceback.format_exception(exc))},),
            hint="this says nothing about the server; report it to whoever wrote the gate",
        )
    return GateResult(
        name=item.gate.name,
        title=item.gate.title,
        verdict=verdict,
        is_required=item.is_required,
        params=item.params,
        started_at=started_at,
        duration_s=round(clock() - started_s, 3),
    )


def _names(results: Sequence[GateResult]) -> str:
    return ", ".join(r.name for r in results)
