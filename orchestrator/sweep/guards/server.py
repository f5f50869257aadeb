"""What the server's own counters show: that it was ours alone, and one process from start to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.record import Guard, RequestRecord
from orchestrator.sweep.guards.cell import GuardInput, mapping, number
from orchestrator.sweep.truth import STARTED, fallen
from orchestrator.values import Json

FOREIGN_SHARE = 0.02
FOREIGN_TOK = 64


def server_restarted(cell: GuardInput) -> Guard | None:
    """Another process answers after a repeat than before it."""
    for lap in cell.laps:
        before, after = mapping(lap, "server_before"), mapping(lap, "server_after")
        if before is None or after is None:
            continue
        was, now = number(before, STARTED), number(after, STARTED)
        if was is not None and now is not None and was != now:
            how = f"its process is {now - was:.1f} s younger than the one before"
        elif name := next(iter(fallen(before, after)), None):
            how = f"its counter {name} went from {number(before, name):.0f} to {number(after, name):.0f}"
        else:
            continue
        message = f"the server was restarted in repeat {lap.get('repeat')}: {how}"
        return Guard(name="server_restarted", message=message)
    return None


def foreign_traffic(cell: GuardInput) -> Guard | None:
    """Somebody else's requests: in flight before a repeat, or in the server's counts of tokens after it."""
    for lap in cell.laps:
        before, after = mapping(lap, "server_before"), mapping(lap, "server_after")
        if before is None:
            continue
        repeat = lap.get("repeat")
        busy = {name: n for name in ("running", "waiting") if (n := number(before, name))}
        if busy:
            words = " and ".join(f"{n:.0f} {name}" for name, n in busy.items())
            return Guard(name="foreign_traffic", message=f"before repeat {repeat} the server had {words} already")
        if after is None or fallen(before, after):
            continue
        for name, ours_tok in _most(lap, cell.of_lap(lap)).as_counters().items():
            was, now = number(before, name), number(after, name)
            if was is None or now is None or ours_tok is None:
                continue
            excess = now - was - ours_tok
            if excess > FOREIGN_TOK and excess > FOREIGN_SHARE * ours_tok:
                return Guard(
                    name="foreign_traffic",
                    message=f"in repeat {repeat} the server counted {now - was:.0f} {WORDS[name]}, ours were "
                    f"{ours_tok}: somebody else uses it",
                )
    return None


WORDS: Mapping[str, str] = {
    "prompt_tok": "prompt tokens",
    "prompt_computed_tok": "computed prompt tokens",
    "output_tok": "output tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """The most that our own requests of a repeat can have added to the server's counters; None: cannot be said."""

    prompt_tok: int | None
    computed_tok: int | None
    output_tok: int | None

    def as_counters(self) -> dict[str, int | None]:
        return {
            "prompt_tok": self.prompt_tok,
            "prompt_computed_tok": self.computed_tok,
            "output_tok": self.output_tok,
        }


def _most(lap: Mapping[str, Json], requests: Sequence[RequestRecord]) -> Ours:
    """What was not told of a request (it failed, or the server is silent) counts as all that was asked for."""
    unrecorded = mapping(lap, "unrecorded") or {}
    if unrecorded and unrecorded.get("is_complete") is not True:
        return Ours(prompt_tok=None, computed_tok=None, output_tok=None)
    warm_prompt, warm_output = _count(unrecorded, "prompt_tok"), _count(unrecorded, "output_tok")
    prompts = [r.expected_prompt_tok if r.prompt_tok is None else r.prompt_tok for r in requests]
    outputs = [r.asked_output_tok if r.output_tok is None else r.output_tok for r in requests]
    prompt_tok = _sum(prompts, warm_prompt)
    cached_tok = sum(r.cached_tok or 0 for r in requests) + _count(unrecorded, "cached_tok")
    return Ours(
        prompt_tok=prompt_tok,
        computed_tok=None if prompt_tok is None else prompt_tok - cached_tok,
        output_tok=_sum(outputs, warm_output),
    )


def _sum(parts: Sequence[int | None], start: int) -> int | None:
    known = [p for p in parts if p is not None]
    return start + sum(known) if len(known) == len(parts) else None


def _count(told: Mapping[str, Json], key: str) -> int:
    value = told.get(key)
    return value if isinstance(value, int) else 0
