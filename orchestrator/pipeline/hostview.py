"""A host's facts as the preflight judges them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from orchestrator.errors import HostError
from orchestrator.fleet.facts import HostFacts
from orchestrator.fleet.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """What `deploy.preflight.judge` needs; `disk_free_bytes` is the fullest of the places that matter."""

    memory_total_bytes: int | None
    memory_available_bytes: int | None
    disk_free_bytes: int | None
    listening_ports: Sequence[int] | None
    gpu_processes: Sequence[object] | None

    @classmethod
    def of(cls, facts: HostFacts) -> Self:
        return cls(
            memory_total_bytes=facts.memory_total_bytes,
            memory_available_bytes=facts.memory_available_bytes,
            disk_free_bytes=min(facts.disk_free_bytes.values(), default=None),
            listening_ports=facts.listening,
            gpu_processes=facts.gpu_processes,
        )


def memory_available(host: Host) -> int | None:
    """MemAvailable of the host now, bytes; None where it has no such thing or does not answer."""
    try:
        done = host.run(("cat", "/proc/meminfo"), timeout_s=10.0)
    except HostError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB", done.stdout, re.M)
    return int(found[1]) * 1024 if done.is_ok and found else None
