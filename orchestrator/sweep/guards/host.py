"""What the telemetry of a repeat shows of its hosts: clocks that fell, memory that ran out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.records.record import Guard
from orchestrator.sweep.guards.cell import GuardInput, mapping, number
from orchestrator.values import Json

CLOCK_SHARE = 0.85
REASON_SHARE = 0.1
AVAILABLE_BYTES = 1 << 30
SWAPPED_IN_PAGES = 4096
"""16 MiB at 4 KiB a page: less is some sleeping daemon that woke."""


def throttled(cell: GuardInput) -> Guard | None:
    """A GPU that ended a repeat more than 15 % slower than it began, or was held back by heat or power."""
    for repeat, where, host in _hosts(cell):
        for gpu in _gpus(host):
            index, first, last = gpu.get("index"), number(gpu, "first_mhz"), number(gpu, "last_mhz")
            if first is not None and last is not None and last < CLOCK_SHARE * first:
                how = f"fell from {first:.0f} to {last:.0f} MHz"
            elif (reason := _reason(gpu)) is not None:
                how = f"was held back ({reason})"
            else:
                continue
            return Guard(name="throttled", message=f"{where}: the clock of GPU {index} {how} in repeat {repeat}")
    return None


def memory_exhausted(cell: GuardInput) -> Guard | None:
    """Less than 1 GiB left, pages read back from swap, or a process killed for memory."""
    for repeat, where, host in _hosts(cell):
        available, swapped = number(host, "available_min_bytes"), number(host, "swapped_in_pages")
        killed = number(host, "oom_kills")
        if killed:
            how = f"the kernel killed {killed:.0f} processes for memory"
        elif available is not None and available < AVAILABLE_BYTES:
            how = f"only {available / (1 << 20):.0f} MiB of memory were left"
        elif swapped is not None and swapped > SWAPPED_IN_PAGES:
            how = f"{swapped:.0f} pages were read back from swap"
        else:
            continue
        return Guard(name="memory_exhausted", message=f"{where}: {how} in repeat {repeat}")
    return None


def _reason(gpu: Mapping[str, Json]) -> str | None:
    """The reason that held in more than a tenth of the samples under load."""
    samples, reasons = number(gpu, "samples"), mapping(gpu, "throttle_reasons")
    if not samples or not reasons:
        return None
    often = {name: n / samples for name in reasons if (n := number(reasons, name)) is not None}
    name = max(often, key=lambda k: often[k], default=None)
    return f"{name}, {often[name]:.0%} of the time" if name is not None and often[name] > REASON_SHARE else None


def _hosts(cell: GuardInput) -> Iterator[tuple[Json, str, Mapping[str, Json]]]:
    for lap in cell.laps:
        for where, host in (mapping(lap, "hosts") or {}).items():
            if isinstance(host, Mapping):
                yield lap.get("repeat"), where, host


def _gpus(host: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    gpus = host.get("gpus")
    if isinstance(gpus, list | tuple):
        yield from (g for g in gpus if isinstance(g, Mapping))
