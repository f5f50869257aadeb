"""The lab's values, its two errors, and the ways to run a command and to wait, each with a deadline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GATEWAY = "10.66.0.1"
BRIDGE = "gate0lab"
ADDRESSES: Mapping[str, str] = {"spark01": "10.66.0.11", "spark02": "10.66.0.12"}
REGISTRY = f"{GATEWAY}:5000"
# /usr/local is left out on purpose: the hosts cover /usr/local/bin, so a tool found only there is lost inside.
TOOL_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class LabError(Exception):
    """The lab is not up. `exit_code` is what `tools/lab.py` ends with."""

    exit_code = 1


class LabUnavailable(LabError):
    """This machine cannot run the lab, whatever is repaired: not root, not Linux, no namespaces, a tool missing."""

    exit_code = 3


class LabBroken(LabError):
    """The lab should run here and does not; the message carries the tail of the log that tells why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabHost:
    """One host of the lab: a network namespace of the same name, and its folder under `.lab/`."""

    name: str
    address: str
    state: Path

    @property
    def link(self) -> str:
        """The bridge's end of the cable; the host's end is its eth0."""
        return f"g0-{self.name}"

    @property
    def mac(self) -> str:
        """Of the host's eth0: the same after a rebuild, or its neighbours would talk to the old one for a while."""
        return "02:42:" + ":".join(f"{int(part):02x}" for part in self.address.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPaths:
    """Where everything of the lab lies."""

    state: Path
    parts: Path

    @property
    def hosts(self) -> tuple[LabHost, ...]:
        """The hosts, in the order of their names."""
        return tuple(
            LabHost(name=name, address=address, state=self.state / name) for name, address in ADDRESSES.items()
        )

    @property
    def key(self) -> Path:
        """The private key that both hosts let in as root."""
        return self.state / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The host keys of both hosts, by address and by name."""
        return self.state / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`."""
        return self.state / "ssh_config"

    @property
    def hosts_yaml(self) -> Path:
        """For `gate0 --hosts`."""
        return self.state / "hosts.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabProcess:
    """A process started by a lab, recognised by its environment."""

    pid: int
    state: str
    role: str
    command: str
    is_init: bool


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def find_tool(name: str) -> str | None:
    """Return the path of a program that is found on this machine and inside the hosts alike."""
    return shutil.which(name, path=TOOL_PATH)


def run(
    argv: Sequence[str], *, deadline_s: float = 30, check: bool = True, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it printed.

    Raises:
        LabBroken: If it exits non-zero (unless `check` is off), or is not done by the deadline.
    """
    environment = {**os.environ, **(env or {}), "PATH": f"{TOOL_PATH}:{os.environ.get('PATH', '')}"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=deadline_s, check=False, env=environment, errors="replace"
        )
    except subprocess.TimeoutExpired as late:
        raise LabBroken(f"`{' '.join(argv)}` was not done after {deadline_s:.0f} s") from late
    if check and done.returncode:
        raise LabBroken(f"`{' '.join(argv)}` exited {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}")
    return done


def start_daemon(argv: Sequence[str], *, paths: LabPaths, role: str, log: Path) -> None:
    """Start a process that outlives this one, marked so that `lab_processes` finds it."""
    environment = {"PATH": TOOL_PATH, "LANG": "C.UTF-8", "GATE0_LAB": str(paths.state), "GATE0_LAB_ROLE": role}
    with log.open("ab") as output:
        subprocess.run(
            ["setsid", "-f", *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd="/",
            timeout=30,
            check=True,
        )


def wait_until(probe: Callable[[], bool], what: str, *, deadline_s: float, log: Path | None = None) -> None:
    """Wait until the probe says yes.

    Raises:
        LabBroken: At the deadline, with the tail of the log.
    """
    end_s = time.monotonic() + deadline_s
    while not probe():
        if time.monotonic() > end_s:
            raise LabBroken(f"{what}: not after {deadline_s:.0f} s{tail_of(log)}")
        time.sleep(0.05)


def tail_of(log: Path | None, *, lines: int = 15) -> str:
    """Return the last lines of a log, set off for an error message."""
    if log is None or not log.exists():
        return ""
    last = log.read_text(errors="replace").splitlines()[-lines:]
    return "\n".join([f"\n{log}:", *(f"  {line}" for line in last)])


def lab_processes() -> Iterator[LabProcess]:
    """Yield every process on this machine that a lab started, this checkout's and others'.

    What runs in a container or in an SSH session has another environment and is not listed; it lives in its
    host's PID namespace and goes with the host's init.
    """
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            status = (folder / "status").read_text(errors="replace")
        except OSError:  # it ended, or is a kernel thread
            continue
        values = {name: value.decode() for name, _, value in (item.partition(b"=") for item in variables) if value}
        if b"GATE0_LAB" in values and b"GATE0_LAB_ROLE" in values:
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            yield LabProcess(
                pid=int(folder.name),
                state=values[b"GATE0_LAB"],
                role=values[b"GATE0_LAB_ROLE"],
                command=fields["Name"],
                is_init=fields.get("NSpid", "").split()[1:] == ["1"],
            )
