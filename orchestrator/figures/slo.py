"""Service levels by use, as data: what must hold for which share of the requests, and why that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from orchestrator.errors import InputError
from orchestrator.records import slo_presets
from orchestrator.values import Json

STARTS = ("schedule", "send")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """A request meets it when it meets all that are set.

    Attributes:
        ttft_s, e2e_s: From `start`: `schedule` (when the request was due: what a person waits) or `send`.
        tpot_ms: Time per output token after the first.
        share: Of the requests that must meet it, in (0, 1].
        reason: Where the limits come from.
    """

    name: str = ""
    ttft_s: float | None = None
    tpot_ms: float | None = None
    e2e_s: float | None = None
    share: float = 0.95
    start: str = "schedule"
    reason: str = ""

    def as_json(self) -> dict[str, Json]:
        """As a cell's record holds it: what is set, `from` for the start."""
        limits = {"ttft_s": self.ttft_s, "tpot_ms": self.tpot_ms, "e2e_s": self.e2e_s}
        known = {key: value for key, value in limits.items() if value is not None}
        return {"name": self.name, **known, "share": self.share, "from": self.start}

    @classmethod
    def from_json(cls, raw: Mapping[str, Json]) -> Self:
        """
        Raises:
            InputError: A limit that is no positive number, no limit at all, a share or a start that is none.
        """
        ttft_s, tpot_ms, e2e_s = (_limit(raw, key) for key in ("ttft_s", "tpot_ms", "e2e_s"))
        share, start = raw.get("share", 0.95), raw.get("from", STARTS[0])
        if ttft_s is None and tpot_ms is None and e2e_s is None:
            raise InputError(f"slo {raw.get('name', '')!s}: no limit", hint="set ttft_s, tpot_ms or e2e_s")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise InputError(f"slo share: {share!r}", hint="a number above 0, at most 1 (0.95: 95 % of the requests)")
        if start not in STARTS:
            raise InputError(f"slo from: {start!r}", hint=f"one of {', '.join(STARTS)}")
        return cls(
            name=str(raw.get("name") or ""),
            ttft_s=ttft_s,
            tpot_ms=tpot_ms,
            e2e_s=e2e_s,
            share=float(share),
            start=str(start),
        )

    @property
    def words(self) -> str:
        """`95 % first token within 1 s`: how it is printed beside a verdict."""
        limits = []
        if self.ttft_s is not None:
            limits.append(f"first token within {self.ttft_s:g} s")
        if self.tpot_ms is not None:
            limits.append(f"{self.tpot_ms:g} ms a token")
        if self.e2e_s is not None:
            limits.append(f"whole answer within {self.e2e_s:g} s")
        start = "" if self.start == STARTS[0] else " from dispatch"
        return f"{self.share * 100:g} % {', '.join(limits)}{start}"


def _limit(raw: Mapping[str, Json], key: str) -> float | None:
    value = raw.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise InputError(f"slo {key}: {value!r}", hint="a positive number")
    return float(value)


PRESETS: Mapping[str, Slo] = {
    p.name: Slo(name=p.name, ttft_s=p.ttft_s, tpot_ms=p.tpot_ms, e2e_s=p.e2e_s, share=p.share, reason=p.reason)
    for p in slo_presets.PRESETS.values()
}
"""By name."""


def find_slo(name: str) -> Slo:
    """
    Raises:
        InputError: No preset of that name.
    """
    if name not in PRESETS:
        raise InputError(f"no service level named {name!r}", hint=f"one of {', '.join(PRESETS)}, or its limits")
    return PRESETS[name]
