"""The lab as tests see it: names, paths, witnesses on the hosts, and the claim that nothing was left there."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tools.lab import ADDRESSES, FAULTY_IMAGE, LLAMA_IMAGE, MODEL_PATH, Lab

RUN_LABEL = "dev.gate0.run"
# What a host runs when nobody uses it: its init, that one's sleep, the two daemons, and this listing.
AT_REST = ("/bin/sh /", "sleep 3600", "sshd: /usr/sbin/sshd -D", "/usr/sbin/dockerd ", "containerd --config", "ps -eo ")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProcess:
    """One line of a host's process list."""

    pid: int
    parent: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningLab:
    """Two hosts that answer: real sshd, real Docker Engine, no GPU."""

    lab: Lab
    host_names: tuple[str, ...] = tuple(ADDRESSES)
    llama_image: str = LLAMA_IMAGE
    faulty_image: str = FAULTY_IMAGE
    model_path: str = MODEL_PATH

    @property
    def hosts_yaml(self) -> Path:
        """gate0's own inventory of the two hosts."""
        return self.lab.paths.hosts_yaml

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`, and for gate0's ssh_config aliases."""
        return self.lab.paths.ssh_config

    @property
    def known_hosts(self) -> Path:
        """Both host keys."""
        return self.lab.paths.known_hosts

    @property
    def key(self) -> Path:
        """The private key that is let in."""
        return self.lab.paths.key

    def address(self, host: str) -> str:
        """Return the host's IP address, reachable from the tests."""
        return ADDRESSES[host]

    def ssh(self, host: str, *argv: str, deadline_s: float = 60) -> str:
        """Run a command over OpenSSH and return its stdout; a non-zero exit fails the test."""
        return _output_of(self.lab.ssh(host, argv, deadline_s=deadline_s))

    def exec(self, host: str, *argv: str, deadline_s: float = 60) -> str:
        """Run a command on the host without SSH and return its stdout; a non-zero exit fails the test."""
        return _output_of(self.lab.exec(host, argv, deadline_s=deadline_s))

    def docker(self, host: str, *argv: str, deadline_s: float = 60) -> str:
        """Run the host's own docker client, without SSH, and return its stdout; a non-zero exit fails the test."""
        return self.exec(host, "docker", *argv, deadline_s=deadline_s)

    def has(self, host: str, path: str) -> bool:
        """Say whether a file or folder is on the host."""
        return self.lab.exec(host, ["test", "-e", path]).returncode == 0

    def containers(self, host: str) -> tuple[str, ...]:
        """Return the names of gate0's containers there, ended ones included."""
        listed = self.docker(host, "ps", "-a", "--filter", f"label={RUN_LABEL}", "--format", "{{.Names}}")
        return tuple(listed.split())

    def processes(self, host: str) -> tuple[HostProcess, ...]:
        """Return what runs there beside the host at rest and beside containers: SSH sessions, and what they left."""
        listed = [
            _process(line) for line in self.exec(host, "ps", "-eo", "pid=,ppid=,args=", "-ww").splitlines() if line
        ]
        hidden = {one.pid for one in listed if "containerd-shim" in one.command}
        while more := {one.pid for one in listed if one.parent in hidden} - hidden:
            hidden |= more
        return tuple(one for one in listed if one.pid not in hidden and not one.command.startswith(AT_REST))

    def assert_clean(self, host: str, *, lock_path: str = "/tmp/gate0.lock", deadline_s: float = 10) -> None:
        """Claim that gate0 left nothing on the host: no container, lock, SSH session, tunnel or process.

        sshd notices a closed connection a moment late, hence the deadline.
        """
        end_s = time.monotonic() + deadline_s
        while (left := self._left_behind(host, lock_path)) and time.monotonic() < end_s:
            time.sleep(0.1)
        assert left == (), f"left behind on {host}: {left}"

    def _left_behind(self, host: str, lock_path: str) -> tuple[str, ...]:
        containers = tuple(f"container {name}" for name in self.containers(host))
        lock = (f"lock {lock_path}",) if self.has(host, lock_path) else ()
        return containers + lock + tuple(f"process {one.pid}: {one.command}" for one in self.processes(host))


def _process(line: str) -> HostProcess:
    pid, parent, command = line.split(maxsplit=2)
    return HostProcess(pid=int(pid), parent=int(parent), command=command)


def _output_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{done.args} exited {done.returncode}: {done.stderr}{done.stdout}"
    return done.stdout
