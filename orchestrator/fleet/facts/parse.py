"""From a command's output to values. Each takes stdout and gives the fact's fields; what is not there is left out.

A GB10 answers `[N/A]`, `Not Supported` or nothing where other GPUs have a number: that is "does not say", not zero.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestrator.fleet.facts.model import Container, Gpu, GpuProcess, Memory

Fields = Mapping[str, Any]
"""Values for `HostFacts` attributes."""

OWNER_LABEL = "dev.gate0.run="
WATCHDOGS = ("earlyoom", "systemd-oomd", "nohang", "dgx-anti-oom", "dgx-oom", "oomd", "psi-monitor")
GPU_QUERY = (
    "name",
    "uuid",
    "driver_version",
    "compute_cap",
    "temperature.gpu",
    "power.draw",
    "clocks.sm",
    "clocks.max.sm",
    "utilization.gpu",
    "pstate",
)
_SILENT = re.compile(r"\[?(n/a|not supported|unknown error|insufficient permissions|-)\]?|\[.*\]", re.IGNORECASE)


def uname(text: str) -> Fields:
    """`uname -snrm`: system, host name, kernel release, machine."""
    words = text.split()
    if len(words) < 4:
        return {}
    return {"hostname": words[1], "kernel": words[2], "arch": words[3]}


def one(name: str, convert: Callable[[str], Any] = str) -> Callable[[str], Fields]:
    """A parser for a command that prints one value."""

    def parse(text: str) -> Fields:
        word = text.strip()
        try:
            return {name: convert(word)} if word else {}
        except ValueError:
            return {}

    return parse


def meminfo(text: str) -> Fields:
    kib = {m[1]: int(m[2]) for m in re.finditer(r"^(\w[\w()]*):\s+(\d+)", text, re.MULTILINE)}

    def in_bytes(key: str) -> int | None:
        return kib[key] * 1024 if key in kib else None

    return {
        "memory": Memory(
            total_bytes=in_bytes("MemTotal"),
            available_bytes=in_bytes("MemAvailable"),
            free_bytes=in_bytes("MemFree"),
            cached_bytes=in_bytes("Cached"),
            mlocked_bytes=in_bytes("Mlocked"),
            swap_total_bytes=in_bytes("SwapTotal"),
            swap_free_bytes=in_bytes("SwapFree"),
            cma_total_bytes=in_bytes("CmaTotal"),
            cma_free_bytes=in_bytes("CmaFree"),
            hugepages=kib.get("HugePages_Total"),
        )
    }


def os_release(text: str) -> Fields:
    name = _assignments(text).get("PRETTY_NAME")
    return {"os": name} if name else {}


def dgx_release(text: str) -> Fields:
    """/etc/dgx-release: the software build, and the last over-the-air update when there was one."""
    found = _assignments(text)
    version = found.get("DGX_OTA_VERSION") or found.get("DGX_SWBUILD_VERSION")
    return {"dgx_release": version} if version else {}


def loadavg(text: str) -> Fields:
    first = _number(text.split(maxsplit=1)[0]) if text.split() else None
    return {} if first is None else {"load_1m": first}


def uptime(text: str) -> Fields:
    first = _number(text.split(maxsplit=1)[0]) if text.split() else None
    return {} if first is None else {"uptime_s": first}


def memory_pressure(text: str) -> Fields:
    found = re.search(r"^some avg10=([\d.]+)", text, re.MULTILINE)
    return {"memory_stall_percent": float(found[1])} if found else {}


def gpus(text: str) -> Fields:
    """`nvidia-smi --query-gpu=GPU_QUERY --format=csv,noheader,nounits`."""
    rows = [dict(zip(GPU_QUERY, cells, strict=False)) for cells in _csv(text) if len(cells) == len(GPU_QUERY)]
    return {
        "gpus": tuple(
            Gpu(
                name=_said(row["name"]),
                uuid=_said(row["uuid"]),
                driver=_said(row["driver_version"]),
                compute_capability=_said(row["compute_cap"]),
                temperature_c=_number(row["temperature.gpu"]),
                power_w=_number(row["power.draw"]),
                sm_clock_mhz=_number(row["clocks.sm"]),
                sm_clock_max_mhz=_number(row["clocks.max.sm"]),
                utilization_percent=_number(row["utilization.gpu"]),
                pstate=_said(row["pstate"]),
            )
            for row in rows
        )
    }


CLOCK_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Bits of nvidia-smi's `clocks_event_reasons.active` (NVML: nvmlClocksEventReasons)."""


def clock_reasons(text: str) -> list[str] | None:
    """Why the clock is below its maximum, by nvidia-smi's own names; None: it does not say."""
    try:
        mask = int(text.strip(), 16)
    except ValueError:
        return None
    return [name for bit, name in CLOCK_REASONS.items() if mask & bit]


def vmstat(text: str) -> dict[str, int]:
    """/proc/vmstat, since boot: pages read back from swap, and processes that the kernel killed for memory."""
    told = dict(re.findall(r"^(pswpin|oom_kill) (\d+)$", text, re.MULTILINE))
    ours = {"pswpin": "swapped_in_pages", "oom_kill": "oom_kills"}
    return {name: int(told[theirs]) for theirs, name in ours.items() if theirs in told}


def gpu_problem(text: str) -> Fields:
    """What `nvidia-smi` says when it is there and fails: its first line."""
    lines = text.strip().splitlines()
    return {"gpu_problem": lines[0] if lines else "nvidia-smi failed and said nothing"}


def gpu_processes(text: str) -> Fields:
    """`nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv,noheader,nounits`, in MiB."""
    found = []
    for cells in _csv(text):
        if len(cells) >= 3 and cells[0].isdecimal():
            mib = _number(cells[-1])
            memory = None if mib is None else int(mib * 1024 * 1024)
            name = _said(", ".join(cells[1:-1]))
            found.append(GpuProcess(pid=int(cells[0]), name=name, memory_bytes=memory))
    return {"gpu_processes": tuple(found)}


def cuda_driver(text: str) -> Fields:
    """The head of plain `nvidia-smi`."""
    found = re.search(r"CUDA Version:\s*(\d[\d.]*)", text)
    return {"cuda_driver": found[1]} if found else {}


def nvcc(text: str) -> Fields:
    found = re.search(r"release [\d.]+, V(\d[\d.]*)", text)
    return {"cuda_toolkit": found[1]} if found else {}


def containers(text: str) -> Fields:
    """`docker ps --no-trunc --format {{json .}}`, one object a line."""
    rows = [row for row in map(_object, text.splitlines()) if row]
    return {
        "containers": tuple(
            Container(
                name=str(row.get("Names", "")),
                image=str(row.get("Image", "")),
                is_ours=OWNER_LABEL in str(row.get("Labels", "")),
            )
            for row in rows
        )
    }


def disk_free(text: str) -> dict[str, int]:
    """`df -P -B1 PATH`: the free bytes, under `free`; empty when it says nothing."""
    for line in text.splitlines()[1:]:
        cells = line.split()
        if len(cells) >= 6 and cells[3].isdecimal():
            return {"free": int(cells[3])}
    return {}


def listening(text: str) -> Fields:
    """`ss -Hltn`: ports, and which of them are bound beyond loopback."""
    everywhere, beyond = set(), set()
    for line in text.splitlines():
        cells = line.split()
        if len(cells) < 4 or cells[0] != "LISTEN":
            continue
        address, _, port = cells[3].rpartition(":")
        if port.isdecimal():
            everywhere.add(int(port))
            if not re.match(r"\[?(127\.|::1\b|::ffff:127\.)", address):
                beyond.add(int(port))
    return {"listening": tuple(sorted(everywhere)), "listening_beyond_loopback": tuple(sorted(beyond))}


def watchdogs(text: str) -> Fields:
    """`ps -e -o args=`: programs that kill others when memory is short. Only their names are kept."""
    words = {word.rpartition("/")[2] for line in text.splitlines() for word in line.split()[:2]}
    found = {name for name in WATCHDOGS for word in words if word == name or word.startswith(f"{name}.")}
    return {"watchdogs": tuple(sorted(found))}


def cpu_limits(text: str) -> Fields:
    """`grep -H . …/cpufreq/policy*/{scaling,cpuinfo}_max_freq`: the fastest cores' limits, kHz."""
    policies: dict[str, dict[str, int]] = {}
    for path, value in _path_values(text):
        policy, _, name = path.rpartition("/")
        if value.isdecimal():
            policies.setdefault(policy, {})[name] = int(value)
    pairs = [
        (p["scaling_max_freq"], p["cpuinfo_max_freq"])
        for p in policies.values()
        if {"scaling_max_freq", "cpuinfo_max_freq"} <= p.keys()
    ]
    return {"cpu_max_khz": max(pairs, key=lambda pair: pair[1])} if pairs else {}


def temperatures(text: str) -> Fields:
    """`grep -H . …/thermal_zone*/{type,temp}`: millidegrees by type."""
    zones: dict[str, dict[str, str]] = {}
    for path, value in _path_values(text):
        folder, _, name = path.rpartition("/")
        zones.setdefault(folder, {})[name] = value
    hottest: dict[str, float] = {}
    for zone in zones.values():
        milli = _number(zone.get("temp", ""))
        kind = zone.get("type")
        if milli is not None and kind:
            hottest[kind] = max(milli / 1000, hottest.get(kind, milli / 1000))
    return {"temperatures_c": hottest}


def dmi(text: str) -> Fields:
    """`grep -H . /sys/class/dmi/id/{product_name,bios_version}`."""
    found = {path.rpartition("/")[2]: value for path, value in _path_values(text)}
    fields: dict[str, Any] = {}
    if "product_name" in found:
        fields["machine"] = found["product_name"]
    if "bios_version" in found:
        fields["firmware"] = {"bios": found["bios_version"]}
    return fields


def firmware(text: str) -> Fields:
    """`fwupdmgr get-devices --json`: versions by device name."""
    devices = (_object(text) or {}).get("Devices")
    if not isinstance(devices, list):
        return {}
    named = [d for d in devices if isinstance(d, dict) and d.get("Name") and d.get("Version")]
    return {"firmware": {str(d["Name"]): str(d["Version"]) for d in named}} if named else {}


def _assignments(text: str) -> dict[str, str]:
    """`NAME="value"` lines; of a name that stands twice the last word holds (/etc/dgx-release appends its updates)."""
    return {m[1]: m[2].strip("\"'") for m in re.finditer(r"^(\w+)=(.*)$", text, re.MULTILINE)}


def _csv(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.strip():
            yield [cell.strip() for cell in line.split(",")]


def _path_values(text: str) -> Iterator[tuple[str, str]]:
    """`grep -H .` lines: path, value."""
    for line in text.splitlines():
        path, colon, value = line.partition(":")
        if colon:
            yield path, value.strip()


def _said(cell: str) -> str | None:
    return None if not cell or _SILENT.fullmatch(cell) else cell


def _number(cell: str) -> float | None:
    """A number, its unit ignored; None for anything that is none."""
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*(?:%|W|MHz|MiB|C)?", cell.strip())
    return float(found[1]) if found else None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
