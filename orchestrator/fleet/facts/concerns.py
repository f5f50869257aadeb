"""What is known to go wrong on such a box, seen in its facts: rules as a table, each with what to do.

The rules are public field reports about DGX Sparks; a concern warns, a blocker says that the box cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.fleet.facts.model import HostFacts

GIB = 2**30
_LOW_DISK_BYTES = 40 * GIB
_LOW_MEMORY_SHARE = 0.85
_HOT_C = 88.0
_SLOW_SM_MHZ = 1500.0
_CLOCK_SLACK_S = 30.0
_CPU_CAP = 0.9


class Level(StrEnum):
    """How bad it is."""

    BLOCKER = "blocker"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """One thing to know before a run. `code` is stable; `hint` is what to do about it."""

    code: str
    level: Level
    message: str
    hint: str


def concerns(facts: HostFacts) -> tuple[Concern, ...]:
    """Everything that the rules find, the worst first."""
    found = [concern for rule in RULES for concern in rule(facts)]
    order = list(Level)
    return tuple(sorted(found, key=lambda c: order.index(c.level)))


def _docker(facts: HostFacts) -> Iterator[Concern]:
    problem = facts.docker.problem
    if problem is None:
        return
    message, hint = {
        "absent": ("no `docker` command", "install Docker Engine, or use `runtime: process`"),
        "not_running": ("the Docker daemon does not run", "`sudo systemctl start docker`"),
        "no_permission": (
            f"{facts.user or 'the SSH user'} may not use Docker",
            f"`sudo usermod -aG docker {facts.user or 'USER'}`, then log in again",
        ),
    }.get(problem, (f"Docker does not answer: {problem}", "`docker info` on the host says more"))
    yield Concern(code="docker", level=Level.BLOCKER, message=message, hint=hint)


def _gpu_problem(facts: HostFacts) -> Iterator[Concern]:
    if facts.gpu_problem is not None:
        yield Concern(
            code="gpu_driver",
            level=Level.WARNING,
            message=f"nvidia-smi fails: {facts.gpu_problem}",
            hint="the GPU cannot be used; is the driver loaded (`lsmod | grep nvidia`), built for this kernel?",
        )


def _gpu_without_runtime(facts: HostFacts) -> Iterator[Concern]:
    if facts.has_gpu and facts.docker.is_reachable and facts.docker.runtimes and "nvidia" not in facts.docker.runtimes:
        yield Concern(
            code="no_nvidia_runtime",
            level=Level.WARNING,
            message="the host has a GPU, but Docker has no nvidia runtime",
            hint="install nvidia-container-toolkit and run `nvidia-ctk runtime configure`; CDI alone works as well",
        )


def _cma(facts: HostFacts) -> Iterator[Concern]:
    total, free = facts.memory.cma_total_bytes, facts.memory.cma_free_bytes
    if total == 0 and free is not None and free > 0:
        yield Concern(
            code="cma_anomaly",
            level=Level.WARNING,
            message=f"CmaTotal is 0 while CmaFree is {free // 1024} kB: RDMA memory registration fails at NCCL's start",
            hint="boot with `kho=off` or a 6.17 kernel before using both Sparks for one engine",
        )


def _kernel(facts: HostFacts) -> Iterator[Concern]:
    if facts.kernel and re.match(r"7\.0\.0-1019\b", facts.kernel):
        yield Concern(
            code="kernel",
            level=Level.WARNING,
            message=f"kernel {facts.kernel}: GPU allocations fail and the host hangs at engine start",
            hint="boot a 6.17 kernel",
        )


def _driver(facts: HostFacts) -> Iterator[Concern]:
    if facts.is_gb10 and (facts.driver or "").startswith("590."):
        yield Concern(
            code="driver",
            level=Level.WARNING,
            message=f"driver {facts.driver}: CUDA graphs deadlock on GB10",
            hint="use a 580 driver",
        )


def _disk(facts: HostFacts) -> Iterator[Concern]:
    for path, free in facts.disk_free_bytes.items():
        if free < _LOW_DISK_BYTES:
            yield Concern(
                code="disk",
                level=Level.WARNING,
                message=f"{free / GIB:.1f} GiB free at {path}: images take 10 to 30 GiB, weights more",
                hint="`docker system prune` or remove weights that are not used",
            )


def _swap(facts: HostFacts) -> Iterator[Concern]:
    if facts.is_gb10 and facts.memory.swap_total_bytes == 0:
        yield Concern(
            code="no_swap",
            level=Level.NOTE,
            message="no swap: loading a model near the size of memory can hang the host instead of failing",
            hint="16 GiB of swap is enough to survive the peak while loading",
        )


def _gpu_processes(facts: HostFacts) -> Iterator[Concern]:
    for found in facts.gpu_processes or ():
        size = "" if found.memory_bytes is None else f" holds {found.memory_bytes / GIB:.1f} GiB"
        yield Concern(
            code="gpu_process",
            level=Level.WARNING,
            message=f"GPU process {found.pid} ({found.name or 'unnamed'}){size}",
            hint="a server that still runs, or one left over: an engine core can outlive its container",
        )


def _memory(facts: HostFacts) -> Iterator[Concern]:
    total, available = facts.memory.total_bytes, facts.memory.available_bytes
    if facts.is_gb10 and total and available is not None and available < _LOW_MEMORY_SHARE * total:
        yield Concern(
            code="memory_in_use",
            level=Level.WARNING,
            message=f"{available / GIB:.1f} of {total / GIB:.1f} GiB available before anything starts",
            hint="stop what uses it; after a crash memory can take minutes to come back",
        )


def _hugepages(facts: HostFacts) -> Iterator[Concern]:
    if facts.memory.hugepages:
        yield Concern(
            code="hugepages",
            level=Level.NOTE,
            message=f"{facts.memory.hugepages} huge pages are reserved: MemAvailable does not tell what CUDA can have",
            hint="`sysctl vm.nr_hugepages=0` unless something needs them",
        )


def _watchdogs(facts: HostFacts) -> Iterator[Concern]:
    for name in facts.watchdogs or ():
        yield Concern(
            code="watchdog",
            level=Level.NOTE,
            message=f"{name} runs: it may kill the engine while it loads",
            hint="exempt the engine from it, or stop it during runs",
        )


def _clock_stuck(facts: HostFacts) -> Iterator[Concern]:
    for gpu in facts.gpus:
        busy, clock = gpu.utilization_percent, gpu.sm_clock_mhz
        if busy is not None and clock is not None and busy > 90 and clock < _SLOW_SM_MHZ:
            yield Concern(
                code="low_clock",
                level=Level.WARNING,
                message=f"GPU at {clock:.0f} MHz under {busy:.0f} % load (healthy: about 2400): stuck in low power",
                hint="unplug the power supply for a minute; check that it is the original 240 W one",
            )


def _hot(facts: HostFacts) -> Iterator[Concern]:
    readings = {"GPU": max((g.temperature_c for g in facts.gpus if g.temperature_c is not None), default=None)}
    readings.update(facts.temperatures_c)
    for name, degrees in readings.items():
        if degrees is not None and degrees > _HOT_C:
            yield Concern(
                code="hot",
                level=Level.WARNING,
                message=f"{name} at {degrees:.0f} °C before anything starts",
                hint="give it air; above 95 °C a Spark may switch itself off",
            )


def _cpu_capped(facts: HostFacts) -> Iterator[Concern]:
    if facts.cpu_max_khz is not None and facts.cpu_max_khz[0] < _CPU_CAP * facts.cpu_max_khz[1]:
        limit, hardware = (khz / 1e6 for khz in facts.cpu_max_khz)
        yield Concern(
            code="cpu_capped",
            level=Level.WARNING,
            message=f"the CPU is limited to {limit:.2f} of {hardware:.2f} GHz",
            hint="`cpupower frequency-set` or the power profile takes the limit away",
        )


def _time_skew(facts: HostFacts) -> Iterator[Concern]:
    if facts.clock_ahead_s is not None and abs(facts.clock_ahead_s) > _CLOCK_SLACK_S:
        yield Concern(
            code="clock",
            level=Level.NOTE,
            message=f"its clock is {abs(facts.clock_ahead_s):.0f} s {'ahead' if facts.clock_ahead_s > 0 else 'behind'}",
            hint="`timedatectl set-ntp true`",
        )


RULES: tuple[Callable[[HostFacts], Iterator[Concern]], ...] = (
    _docker,
    _gpu_problem,
    _gpu_without_runtime,
    _kernel,
    _driver,
    _cma,
    _memory,
    _gpu_processes,
    _clock_stuck,
    _hot,
    _cpu_capped,
    _disk,
    _watchdogs,
    _hugepages,
    _swap,
    _time_skew,
)
