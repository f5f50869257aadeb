"""A box's facts as one frozen value. None means "it does not say", never zero."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """/proc/meminfo, in bytes. On a GB10 this is the GPU's memory too, and the only truth about it."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    free_bytes: int | None = None
    cached_bytes: int | None = None
    mlocked_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None
    cma_total_bytes: int | None = None
    cma_free_bytes: int | None = None
    hugepages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as nvidia-smi has it. `power_w` is the GPU's rail, about half of what the wall gives."""

    name: str | None = None
    uuid: str | None = None
    driver: str | None = None
    compute_capability: str | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    utilization_percent: float | None = None
    pstate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds GPU memory. `memory_bytes` None: not told."""

    pid: int
    name: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker:
    """What `docker info` says. `problem`: absent, not_running, no_permission, or its own words; None: it answers."""

    version: str | None = None
    containers_running: int | None = None
    root: str | None = None
    storage_driver: str | None = None
    runtimes: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def is_reachable(self) -> bool:
        return self.problem is None and self.version is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A running container. `is_ours`: gate0 started it."""

    name: str
    image: str
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """Everything that was read from one box at one moment.

    Attributes:
        clock_ahead_s: Its clock less ours; the error is at most half of the command's round trip.
        disk_free_bytes: Free bytes by path, for Docker's root and the user's home.
        listening: TCP ports that something listens on, any address.
        listening_beyond_loopback: Those that other machines reach.
        watchdogs: Programs that kill others when memory is short (earlyoom and its like).
        cpu_max_khz: (set limit, hardware limit) of the fastest cores; a lower set limit is a capped CPU.
        temperatures_c: By thermal zone's type; the hottest when a type stands more than once.
        gpu_problem: What nvidia-smi says when it is installed and fails.
        firmware: By device name; `bios` is the DMI version.
        cuda_driver: Newest CUDA that the driver takes. cuda_toolkit: installed on the host.
        unread: Facts whose command did not answer in time, by name.
    """

    host: str
    read_at: str
    hostname: str | None = None
    user: str | None = None
    home: str | None = None
    kernel: str | None = None
    arch: str | None = None
    os: str | None = None
    machine: str | None = None
    dgx_release: str | None = None
    boot_id: str | None = None
    uptime_s: float | None = None
    clock_ahead_s: float | None = None
    cpu_count: int | None = None
    cpu_max_khz: tuple[int, int] | None = None
    load_1m: float | None = None
    memory: Memory = field(default_factory=Memory)
    memory_stall_percent: float | None = None
    temperatures_c: Mapping[str, float] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
    gpu_problem: str | None = None
    gpu_processes: tuple[GpuProcess, ...] | None = None
    cuda_driver: str | None = None
    cuda_toolkit: str | None = None
    docker: Docker = field(default_factory=Docker)
    containers: tuple[Container, ...] | None = None
    disk_free_bytes: Mapping[str, int] = field(default_factory=dict)
    listening: tuple[int, ...] | None = None
    listening_beyond_loopback: tuple[int, ...] | None = None
    watchdogs: tuple[str, ...] | None = None
    firmware: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def memory_total_bytes(self) -> int | None:
        return self.memory.total_bytes

    @property
    def memory_available_bytes(self) -> int | None:
        return self.memory.available_bytes

    @property
    def has_gpu(self) -> bool:
        return bool(self.gpus)

    @property
    def is_gb10(self) -> bool:
        """One of its GPUs is the DGX Spark's: CPU and GPU share one memory."""
        return any("GB10" in (gpu.name or "") for gpu in self.gpus)

    @property
    def driver(self) -> str | None:
        return next((gpu.driver for gpu in self.gpus if gpu.driver), None)

    @property
    def gpu_name(self) -> str | None:
        return next((gpu.name for gpu in self.gpus if gpu.name), None)

    def as_json(self) -> dict[str, Any]:
        """Plain values for a record; keys are the attributes' names."""
        plain: dict[str, Any] = plain_values(self)
        return plain


def plain_values(value: Any) -> Any:
    """A fact as JSON has it: dataclasses and mappings as dicts, tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain_values(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain_values(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain_values(v) for v in value]
    return value
