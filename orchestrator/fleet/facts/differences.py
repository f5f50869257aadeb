"""What two boxes of one group do not have in common, as far as it changes results or stops two ranks from meeting."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.fleet.facts.model import HostFacts

_MEMORY_SLACK = 0.02
_CLOCK_SLACK_S = 2.0

_COMPARED: tuple[tuple[str, Callable[[HostFacts], str | int | None]], ...] = (
    ("kernel", lambda f: f.kernel),
    ("architecture", lambda f: f.arch),
    ("OS", lambda f: f.os),
    ("DGX OS", lambda f: f.dgx_release),
    ("GPU", lambda f: f.gpu_name),
    ("GPUs", lambda f: len(f.gpus)),
    ("driver", lambda f: f.driver),
    ("CUDA of the driver", lambda f: f.cuda_driver),
    ("Docker", lambda f: f.docker.version),
    ("CPUs", lambda f: f.cpu_count),
)


def differences(a: HostFacts, b: HostFacts) -> tuple[str, ...]:
    """Readable lines, `kernel: spark01 6.17.0-1014, spark02 6.17.0-1018`; what one does not tell is left out."""
    lines = [_line(name, a, read(a), b, read(b)) for name, read in _COMPARED]
    lines.append(_memory(a, b))
    names = sorted(a.firmware.keys() & b.firmware.keys())
    lines += [_line(f"firmware {name}", a, a.firmware[name], b, b.firmware[name]) for name in names]
    lines.append(_swap(a, b))
    lines.append(_clocks(a, b))
    return tuple(line for line in lines if line is not None)


def same_machine(a: HostFacts, b: HostFacts) -> bool:
    """Whether two names turned out to be one machine: one boot under one host name."""
    return a.boot_id is not None and (a.boot_id, a.hostname) == (b.boot_id, b.hostname)


def _line(what: str, a: HostFacts, of_a: str | int | None, b: HostFacts, of_b: str | int | None) -> str | None:
    if of_a is None or of_b is None or of_a == of_b:
        return None
    return f"{what}: {a.host} {of_a}, {b.host} {of_b}"


def _memory(a: HostFacts, b: HostFacts) -> str | None:
    of_a, of_b = a.memory.total_bytes, b.memory.total_bytes
    if of_a is None or of_b is None or abs(of_a - of_b) <= _MEMORY_SLACK * max(of_a, of_b):
        return None
    return f"memory: {a.host} {of_a / 2**30:.1f} GiB, {b.host} {of_b / 2**30:.1f} GiB"


def _swap(a: HostFacts, b: HostFacts) -> str | None:
    of_a, of_b = a.memory.swap_total_bytes, b.memory.swap_total_bytes
    if of_a is None or of_b is None or bool(of_a) == bool(of_b):
        return None
    return _line("swap", a, "on" if of_a else "off", b, "on" if of_b else "off")


def _clocks(a: HostFacts, b: HostFacts) -> str | None:
    if a.clock_ahead_s is None or b.clock_ahead_s is None:
        return None
    apart_s = a.clock_ahead_s - b.clock_ahead_s
    if abs(apart_s) <= _CLOCK_SLACK_S:
        return None
    return f"clock: {a.host} is {abs(apart_s):.1f} s {'ahead of' if apart_s > 0 else 'behind'} {b.host}"
