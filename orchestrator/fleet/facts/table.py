"""The facts that are read: each one command (argv, never a shell line) and its parse. All may be missing on a host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.fleet.facts import parse
from orchestrator.fleet.facts.docker_info import docker_fact
from orchestrator.fleet.host import Completed

_NOT_THERE = (126, 127)
CSV = "--format=csv,noheader,nounits"


def _of(parser: Callable[[str], parse.Fields]) -> Callable[[Completed], parse.Fields]:
    """A parser of stdout. A command that failed may have printed the half that it could: that half counts."""
    return lambda done: parser(done.stdout)


def _if_ok(parser: Callable[[str], parse.Fields]) -> Callable[[Completed], parse.Fields]:
    """A parser of stdout whose empty output means "none", so that a failure must not read as "none"."""
    return lambda done: parser(done.stdout) if done.is_ok else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One command and what it tells. `timeout_s`: then it is left out and named in `HostFacts.unread`."""

    name: str
    argv: tuple[str, ...]
    parse: Callable[[Completed], parse.Fields]
    timeout_s: float = 8.0


def _gpus(done: Completed) -> parse.Fields:
    """The GPUs; or nvidia-smi's complaint, which is something else than no nvidia-smi."""
    if done.is_ok:
        return parse.gpus(done.stdout)
    return {} if done.exit_code in _NOT_THERE else parse.gpu_problem(done.stdout or done.stderr)


def _find(folder: str, *names: str) -> tuple[str, ...]:
    """Print every such file below a folder as `path:value`, without a shell to expand patterns."""
    either = [word for name in names for word in ("-o", "-name", name)][1:]
    grep = ("-exec", "grep", "-H", ".", "{}", "+")
    return ("find", "-L", folder, "-maxdepth", "2", "(", *either, ")", *grep)


FACTS: tuple[Fact, ...] = (
    # The slowest first: five commands run at once, and these should not be the last to start.
    Fact(name="firmware", argv=("fwupdmgr", "get-devices", "--json"), parse=_of(parse.firmware)),
    Fact(name="docker", argv=("docker", "info", "--format", "{{json .}}"), parse=lambda d: {"docker": docker_fact(d)}),
    Fact(
        name="gpu",
        argv=("nvidia-smi", f"--query-gpu={','.join(parse.GPU_QUERY)}", CSV),
        parse=_gpus,
    ),
    Fact(
        name="gpu_processes",
        argv=("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", CSV),
        parse=_if_ok(parse.gpu_processes),
    ),
    Fact(name="cuda_driver", argv=("nvidia-smi",), parse=_of(parse.cuda_driver)),
    Fact(
        name="containers",
        argv=("docker", "ps", "--no-trunc", "--format", "{{json .}}"),
        parse=_if_ok(parse.containers),
    ),
    Fact(name="uname", argv=("uname", "-snrm"), parse=_of(parse.uname)),
    Fact(name="user", argv=("id", "-un"), parse=_of(parse.one("user"))),
    Fact(name="home", argv=("printenv", "HOME"), parse=_of(parse.one("home"))),
    Fact(name="os", argv=("cat", "/etc/os-release"), parse=_of(parse.os_release)),
    Fact(name="dgx_release", argv=("cat", "/etc/dgx-release"), parse=_of(parse.dgx_release)),
    Fact(name="boot_id", argv=("cat", "/proc/sys/kernel/random/boot_id"), parse=_of(parse.one("boot_id"))),
    Fact(name="uptime", argv=("cat", "/proc/uptime"), parse=_of(parse.uptime)),
    Fact(name="memory", argv=("cat", "/proc/meminfo"), parse=_of(parse.meminfo)),
    Fact(name="memory_pressure", argv=("cat", "/proc/pressure/memory"), parse=_of(parse.memory_pressure)),
    Fact(name="load", argv=("cat", "/proc/loadavg"), parse=_of(parse.loadavg)),
    Fact(name="cpu_count", argv=("getconf", "_NPROCESSORS_ONLN"), parse=_of(parse.one("cpu_count", int))),
    Fact(
        name="cpu_limits",
        argv=_find("/sys/devices/system/cpu/cpufreq", "scaling_max_freq", "cpuinfo_max_freq"),
        parse=_of(parse.cpu_limits),
    ),
    Fact(name="temperatures", argv=_find("/sys/class/thermal", "type", "temp"), parse=_of(parse.temperatures)),
    Fact(name="dmi", argv=_find("/sys/class/dmi/id", "product_name", "bios_version"), parse=_of(parse.dmi)),
    Fact(name="cuda_toolkit", argv=("/usr/local/cuda/bin/nvcc", "--version"), parse=_of(parse.nvcc)),
    Fact(name="listening", argv=("ss", "-Hltn"), parse=_if_ok(parse.listening)),
    Fact(name="watchdogs", argv=("ps", "-e", "-o", "args="), parse=_if_ok(parse.watchdogs)),
)
