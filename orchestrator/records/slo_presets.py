"""SLOs by the name of a use: the one place that workloads (`slo: chat`) and figures read them from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SloPreset:
    """What a request must keep to be good, and the share of the requests sent that must be good.

    Attributes:
        says: The whole of it in words, to be printed with each verdict.
        ttft_s, e2e_s: Seconds from the time the request was due; tpot_ms: milliseconds a token. None: does not count.
    """

    name: str
    says: str
    ttft_s: float | None = None
    tpot_ms: float | None = None
    e2e_s: float | None = None
    share: float = 0.95


PRESETS: Mapping[str, SloPreset] = {
    preset.name: preset
    for preset in (
        SloPreset(name="chat", says="first token within 1 s for 95 % of all requests", ttft_s=1.0),
        SloPreset(name="office", says="first token within 3 s for 95 % of all requests", ttft_s=3.0),
    )
}
