"""A host's facts as the preflight judges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

from orchestrator.errors import HostError
from orchestrator.fleet.facts import HostFacts, read_facts
from orchestrator.fleet.facts.model import plain_values
from orchestrator.fleet.facts.table import FACTS
from orchestrator.fleet.host import Host
from orchestrator.values import Json

QUICK = ("memory", "gpu", "docker", "home", "user", "uname", "listening", "boot_id")
"""What is asked before a start; the rest is read while the container starts: it decides nothing there."""

MEMORY = next(fact for fact in FACTS if fact.name == "memory")
GPU = next(fact for fact in FACTS if fact.name == "gpu")


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


def quick_facts(host: Host) -> HostFacts:
    """What the start of a server depends on."""
    return read_facts(host, facts=tuple(fact for fact in FACTS if fact.name in QUICK))


def other_facts(host: Host) -> HostFacts:
    """Everything else that the record keeps of a host."""
    return read_facts(host, facts=tuple(fact for fact in FACTS if fact.name not in QUICK))


def joined(first: HostFacts, rest: HostFacts) -> HostFacts:
    """Both readings as one; what `first` has read stands."""
    blank = HostFacts(host=first.host, read_at=first.read_at)
    told = {f.name: getattr(rest, f.name) for f in fields(HostFacts) if f.name not in ("host", "read_at", "unread")}
    found = {
        name: value
        for name, value in told.items()
        if value != getattr(blank, name) and getattr(first, name) == getattr(blank, name)
    }
    return replace(first, unread=(*first.unread, *rest.unread), **found)


def memory_available(host: Host) -> int | None:
    """MemAvailable of the host now, bytes; None where it has no such thing or does not answer."""
    try:
        return read_facts(host, facts=(MEMORY,)).memory_available_bytes
    except HostError:
        return None


def sample(host: Host, has_gpu: bool) -> dict[str, Json]:
    """One line of telemetry: memory in bytes, and per GPU temperature, power, clock and use.

    Raises:
        HostError: The host does not answer any more.
    """
    memory = host.run(MEMORY.argv, timeout_s=MEMORY.timeout_s)
    found: dict[str, Json] = {"memory": plain_values(MEMORY.parse(memory)["memory"])} if memory.is_ok else {}
    if has_gpu:
        found["gpus"] = plain_values(GPU.parse(host.run(GPU.argv, timeout_s=GPU.timeout_s)).get("gpus"))
    return found
