"""Run a command to its end or its deadline, with the processor time of all its processes along the way."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.bench_mock import CLIENT_CORE, CORES

SAMPLE_S = 0.1
KILL_GRACE_S = 5.0
TAIL_LINES = 6


class CommandFailed(Exception):
    """It ended with an error or did not end in time; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Sample:
    """At `at_ns`, monotonic: processor time of the whole tree so far, and of all that ran on its core since boot."""

    at_ns: int
    cpu_s: float
    core_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """A finished command; its samples ascend."""

    samples: tuple[Sample, ...]
    wall_s: float

    def at(self, at_ns: int) -> Sample:
        """The state then, between two samples by a straight line."""
        before = self.samples[0]
        for sample in self.samples:
            if sample.at_ns >= at_ns:
                span_ns = sample.at_ns - before.at_ns
                share = (at_ns - before.at_ns) / span_ns if span_ns else 1.0
                cpu_s = before.cpu_s + share * (sample.cpu_s - before.cpu_s)
                return Sample(at_ns, cpu_s, before.core_s + share * (sample.core_s - before.core_s))
            before = sample
        return before

    @property
    def end(self) -> Sample:
        return self.samples[-1]

    def others_share(self, from_ns: int, to_ns: int) -> float:
        """Share of the core's time that other jobs took, or the machine below it."""
        first, last = self.at(from_ns), self.at(to_ns)
        others_s = (last.core_s - first.core_s) - (last.cpu_s - first.cpu_s)
        return max(0.0, others_s) / ((to_ns - from_ns) / 1e9)


def run_metered(
    command: Sequence[str], *, log: Path, deadline_s: float, env: Mapping[str, str], answer: Path | None = None
) -> Metered:
    """
    Args:
        log: Gets stderr and, without `answer`, stdout.
        answer: Gets stdout alone.

    Raises:
        CommandFailed: With the end of the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    with log.open("wb") as errors, (answer or log).open("ab") as output:
        try:
            process = subprocess.Popen(command, stdout=output, stderr=errors, env=dict(env))
        except OSError as exc:
            raise CommandFailed(f"`{command[0]}` cannot be started: {exc}") from exc
        before_s = _ended_cpu_s()
        samples = [Sample(time.monotonic_ns(), 0.0, core_s())]
        try:
            has_ended = _watch(process, samples, began_s + deadline_s)
        finally:
            _end(process)
    used_s = max(_ended_cpu_s() - before_s, samples[-1].cpu_s)
    samples.append(Sample(time.monotonic_ns(), used_s, core_s()))
    if not has_ended or process.returncode != 0:
        why = f"exit code {process.returncode}" if has_ended else f"did not end within {deadline_s:.0f} s"
        raise CommandFailed(f"{why}; its last words, all in {log}:\n{tail(log)}")
    return Metered(samples=tuple(samples), wall_s=time.monotonic() - began_s)


def tail(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return "\n".join(lines[-TAIL_LINES:])


def _watch(process: subprocess.Popen[bytes], samples: list[Sample], deadline_s: float) -> bool:
    """Whether it ended by itself, before the monotonic `deadline_s`."""
    while process.poll() is None:
        if time.monotonic() > deadline_s:
            return False
        cpu_s = sum(map(_cpu_s, _tree(process.pid)))
        samples.append(Sample(time.monotonic_ns(), max(cpu_s, samples[-1].cpu_s), core_s()))
        time.sleep(SAMPLE_S)
    return True


def core_s() -> float:
    """Processor seconds that processes and the hypervisor took on the clients' core; interrupts are not in it."""
    if not CORES:
        return 0.0
    name = f"cpu{CORES[CLIENT_CORE % len(CORES)]} "
    line = next((x for x in Path("/proc/stat").read_text().splitlines() if x.startswith(name)), "")
    ticks = [int(field) for field in line.split()[1:]]
    return (sum(ticks[:3]) + sum(ticks[7:8])) / os.sysconf("SC_CLK_TCK")


def _ended_cpu_s() -> float:
    """Of our children that ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs of it, children first."""
    if process.poll() is None:
        for pid in reversed(_tree(process.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait(KILL_GRACE_S)


def _tree(pid: int) -> list[int]:
    """The process and all below it, parents first; those that ended meanwhile are missing."""
    found = [pid]
    for known in found:
        try:
            tasks = list(Path(f"/proc/{known}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except (OSError, ValueError):
            continue
    return found


def _cpu_s(pid: int) -> float:
    """User and system time of a process and of its children that ended and were waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
