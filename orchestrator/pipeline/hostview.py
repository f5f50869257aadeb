"""A host's facts as the preflight judges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

from orchestrator.errors import HostError
from orchestrator.fleet.facts import HostFacts, parse, read_facts
from orchestrator.fleet.facts.model import plain_values
from orchestrator.fleet.facts.table import FACTS
from orchestrator.fleet.host import Host
from orchestrator.values import Json

QUICK = ("memory", "gpu", "docker", "home", "user", "uname", "listening", "boot_id")
"""What is asked before a start; the rest is read while the container starts: it decides nothing there."""

MEMORY = next(fact for fact in FACTS if fact.name == "memory")
GPU = next(fact for fact in FACTS if fact.name == "gpu")
SAMPLE_GPU = (
    "nvidia-smi",
    f"--query-gpu={','.join((*parse.GPU_QUERY, 'clocks_event_reasons.active'))}",
    "--format=csv,noheader,nounits",
)


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
    """One line of telemetry: memory in bytes, swap and OOM counts since boot, and per GPU temperature, power, clock,
    use, and why the clock is what it is.

    Raises:
        HostError: The host does not answer any more.
    """
    told = host.run(("cat", "/proc/meminfo", "/proc/vmstat"), timeout_s=MEMORY.timeout_s).stdout
    found: dict[str, Json] = {"memory": plain_values(parse.meminfo(told)["memory"])} if "MemTotal" in told else {}
    if pressure := parse.vmstat(told):
        found["pressure"] = pressure
    if has_gpu:
        found["gpus"] = _gpus(host)
    return found


def _gpus(host: Host) -> Json:
    """With `clock_reasons` where the driver knows the field: an unknown one fails the whole query."""
    done = host.run(SAMPLE_GPU, timeout_s=GPU.timeout_s)
    if not done.is_ok:
        plain: Json = plain_values(GPU.parse(host.run(GPU.argv, timeout_s=GPU.timeout_s)).get("gpus"))
        return plain
    rows = [line.rpartition(",") for line in done.stdout.splitlines()]
    gpus: list[dict[str, Json]] = plain_values(parse.gpus("\n".join(head for head, _, _ in rows))["gpus"])
    reasons = [parse.clock_reasons(mask) for _, _, mask in rows]
    if len(gpus) != len(reasons):
        return gpus
    return [{**gpu, "clock_reasons": why} for gpu, why in zip(gpus, reasons, strict=True)]
