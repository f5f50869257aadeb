"""Service levels by use: the one place that workloads (`slo: chat`) and figures read them from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SloPreset:
    """What a request must keep to be good, and the share of the requests sent that must be good.

    Attributes:
        reason: Where the limits come from.
        ttft_s, e2e_s: Seconds from the time the request was due; tpot_ms: milliseconds a token. None: does not count.
        share: Failed requests are misses.
    """

    name: str
    reason: str
    ttft_s: float | None = None
    tpot_ms: float | None = None
    e2e_s: float | None = None
    share: float = 0.95


PRESETS: Mapping[str, SloPreset] = {
    preset.name: preset
    for preset in (
        SloPreset(
            name="chat",
            ttft_s=1.0,
            reason="a person who talks with it: after about a second of silence the thread of thought breaks",
        ),
        SloPreset(
            name="office",
            ttft_s=3.0,
            reason="a person who asks and reads on elsewhere: a few seconds are accepted if they are the rule",
        ),
        SloPreset(
            name="voice",
            ttft_s=0.5,
            tpot_ms=100.0,
            reason="spoken dialogue: longer pauses read as an interruption; speech uses about 4 tokens/s, so ten leave "
            "room for the synthesiser",
        ),
        SloPreset(
            name="agent",
            ttft_s=5.0,
            tpot_ms=50.0,
            reason="a step of an agent writes 400 tokens that nobody reads: within 25 s, so twenty steps in minutes",
        ),
        SloPreset(
            name="batch",
            e2e_s=600.0,
            share=0.99,
            reason="documents by the hundred: nobody waits for one, but none may be lost or hang the run",
        ),
    )
}
"""By name. `chat` and `office` are fixed: verdicts of different records must mean the same."""
