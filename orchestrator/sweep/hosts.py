"""What the telemetry of one repeat says of each host, in the few figures that its guards need."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.values import Json

BUSY_PERCENT = 50.0
"""A GPU below this waits for work, and its clock may fall as it likes."""
LEAST_BUSY = 6
HELD_BACK = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})
"""Reasons that are a fault of the box; a power cap is how many GPUs work under load."""

Sample = Mapping[str, Json]


def host_summary(samples: Mapping[str, Sequence[Sample]]) -> dict[str, Json]:
    """By host: `available_min_bytes`, growth of `swapped_in_pages` and `oom_kills`, and `gpus`.

    A GPU has `samples` (those under load), `first_mhz` and `last_mhz` (median of the first and of the last third of
    them; absent with fewer than six), and `throttle_reasons`: how many of them were held back, by reason.

    Args:
        samples: As `telemetry.jsonl` has them, in order; what a host does not tell is absent here too.
    """
    return {where: _host(found) for where, found in samples.items() if found}


def _host(samples: Sequence[Sample]) -> dict[str, Json]:
    available = [v for m in _parts(samples, "memory") if (v := _number(m, "available_bytes")) is not None]
    pressure = list(_parts(samples, "pressure"))
    found: dict[str, Json] = {"samples": len(samples)}
    if available:
        found["available_min_bytes"] = min(available)
    for name in ("swapped_in_pages", "oom_kills"):
        told = [v for p in pressure if (v := _number(p, name)) is not None]
        if len(told) > 1:
            found[name] = told[-1] - told[0]
    if gpus := _gpus(samples):
        found["gpus"] = gpus
    return found


def _gpus(samples: Sequence[Sample]) -> list[Json]:
    by_index: dict[int, list[Mapping[str, Json]]] = {}
    for sample in samples:
        gpus = sample.get("gpus")
        for index, gpu in enumerate(gpus if isinstance(gpus, list | tuple) else ()):
            if isinstance(gpu, Mapping) and (_number(gpu, "utilization_percent") or 0.0) >= BUSY_PERCENT:
                by_index.setdefault(index, []).append(gpu)
    return [_gpu(index, busy) for index, busy in sorted(by_index.items())]


def _gpu(index: int, busy: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {"index": index, "samples": len(busy)}
    clocks = [v for gpu in busy if (v := _number(gpu, "sm_clock_mhz")) is not None]
    if len(clocks) >= LEAST_BUSY:
        third = len(clocks) // 3
        found |= {"first_mhz": statistics.median(clocks[:third]), "last_mhz": statistics.median(clocks[-third:])}
    reasons: dict[str, int] = {}
    for gpu in busy:
        told = gpu.get("clock_reasons")
        for name in told if isinstance(told, list | tuple) else ():
            if name in HELD_BACK:
                reasons[str(name)] = reasons.get(str(name), 0) + 1
    return found | ({"throttle_reasons": reasons} if reasons else {})


def _parts(samples: Sequence[Sample], name: str) -> Iterator[Mapping[str, Json]]:
    for sample in samples:
        part = sample.get(name)
        if isinstance(part, Mapping):
            yield part


def _number(told: Mapping[str, Json], key: str) -> float | None:
    value = told.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
