"""Two hosts on one machine, for tests that must be real: `lab.py up`, `down`, `status`.

Each host is a network namespace with its own address, sshd and Docker Engine; both reach a registry on the bridge.
There is no GPU: a fake `nvidia-smi` answers as a GB10 does, and the Docker Engines have no nvidia runtime.

    spark01  10.66.0.11      spark02  10.66.0.12      registry  10.66.0.1:5000
    ssh -F .lab/ssh_config spark01 docker ps

`up` reuses what stands and repairs what does not. `down` leaves no process, mount, namespace, bridge, rule or
file. Exit codes: 0 done; 1 the lab is broken, or (status) not up; 3 this machine cannot run it, with the reason.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
if str(CHECKOUT) not in sys.path:  # run as a script: its own folder is there, the checkout is not
    sys.path.insert(0, str(CHECKOUT))

from tools import parts  # noqa: E402
from tools.labkit import host as hosts  # noqa: E402
from tools.labkit import images, machine, network  # noqa: E402
from tools.labkit.base import (  # noqa: E402
    ADDRESSES,
    REGISTRY,
    LabBroken,
    LabError,
    LabHost,
    LabPaths,
    LabUnavailable,
    find_tool,
    lab_processes,
    run,
    say,
    wait_until,
)
from tools.labkit.images import FAULTY_IMAGE, LLAMA_IMAGE, MODEL_PATH  # noqa: E402

__all__ = ["ADDRESSES", "FAULTY_IMAGE", "LLAMA_IMAGE", "MODEL_PATH", "Lab", "LabBroken", "LabError", "LabUnavailable"]

SSH_CONFIG = """\
Host {name}
  HostName {address}
  User root
  IdentityFile "{key}"
  IdentitiesOnly yes
  UserKnownHostsFile "{known_hosts}"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""
HOSTS_YAML_LINE = "  {name}: {{address: {address}, user: root, key_file: {key}, known_hosts: {known_hosts}}}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """What answers on one host."""

    name: str
    address: str
    standing: bool
    ssh: bool
    docker: bool
    images: tuple[str, ...]

    @property
    def is_up(self) -> bool:
        """All of it does."""
        return self.standing and self.ssh and self.docker


@dataclass(frozen=True, slots=True, kw_only=True)
class LabStatus:
    """What answers in the lab."""

    registry: bool
    hosts: tuple[HostStatus, ...]

    @property
    def is_up(self) -> bool:
        """Both hosts and the registry do."""
        return self.registry and all(host.is_up for host in self.hosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The lab of one checkout: bring it up, ask it, use it, take it down."""

    paths: LabPaths

    @classmethod
    def of(cls, checkout: Path = CHECKOUT) -> Lab:
        """Return the lab whose files lie in the checkout's `.lab/`; nothing is started."""
        checkout = checkout.resolve()
        return cls(paths=LabPaths(state=checkout / ".lab", parts=checkout / ".parts"))

    def up(self, *, llama_on: Collection[str] = tuple(ADDRESSES)) -> None:
        """Make both hosts answer, with their images; what stands is reused, what is half dead is repaired.

        Args:
            llama_on: The hosts that have LLAMA_IMAGE pulled; on the others it is left as it is.

        Raises:
            LabUnavailable: If this machine cannot run a lab.
            LabBroken: If it can, and something does not come up; with the tail of its log.
        """
        machine.require_ability()
        with machine.lock():
            machine.require_no_other(self.paths)
            machine.require_packages()
            self._require_parts()
            network.ensure_bridge()
            self._ensure_hosts(anew=_write_keys(self.paths))
            _write_files(self.paths)
            images.ensure_registry(self.paths)
            images.ensure_image(FAULTY_IMAGE, self.paths, pulled_on=ADDRESSES)
            images.ensure_image(LLAMA_IMAGE, self.paths, pulled_on=llama_on)

    def down(self) -> None:
        """Stop both hosts and remove everything, `.lab/` included; the parts are kept.

        Raises:
            LabUnavailable: If not root on Linux, or the lab that is up is another checkout's.
        """
        machine.require_ability()
        with machine.lock():
            machine.require_no_other(self.paths)
            for host in self.paths.hosts:
                hosts.remove(host, self.paths)
            hosts.kill(self._processes(), signal.SIGKILL)
            wait_until(lambda: not self._processes(), "the lab's processes do not end", deadline_s=15)
            network.remove_bridge()
            _remove_tree(self.paths.state)

    def status(self) -> LabStatus:
        """Ask every part whether it answers; changes nothing, waits for nothing."""
        return LabStatus(
            registry=images.registry_answers(), hosts=tuple(self._status_of(host) for host in self.paths.hosts)
        )

    def exec(self, name: str, argv: Sequence[str], *, deadline_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command on a host without SSH, as a witness that does not share gate0's way in."""
        return hosts.exec_in(self.host(name), self.paths, list(argv), deadline_s=deadline_s)

    def ssh(self, name: str, argv: Sequence[str], *, deadline_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command on a host over real SSH; argv is joined by ssh and read by the host's shell."""
        return run(["ssh", "-F", str(self.paths.ssh_config), name, *argv], deadline_s=deadline_s, check=False)

    def host(self, name: str) -> LabHost:
        """Return the host of that name."""
        return next(host for host in self.paths.hosts if host.name == name)

    def _require_parts(self) -> None:
        self.paths.parts.mkdir(exist_ok=True)
        try:
            parts.ensure_llama(self.paths.parts)
            parts.ensure_smollm2(self.paths.parts)
        except parts.PartsUnavailable as problem:
            raise LabUnavailable(str(problem)) from problem

    def _ensure_hosts(self, *, anew: bool) -> None:
        for host in self.paths.hosts:
            if anew or not hosts.is_standing(host, self.paths):
                hosts.build(host, self.paths)
            network.attach(host)
        for host in self.paths.hosts:
            hosts.start_daemons(host, self.paths)
        for host in self.paths.hosts:
            self._wait_for(host)

    def _wait_for(self, host: LabHost) -> None:
        """Wait for the host's daemons; if a repair in place was not enough, build the host anew, once."""
        try:
            hosts.wait_for_daemons(host, self.paths)
        except LabBroken as problem:
            say(f"{problem}")
            hosts.build(host, self.paths)
            hosts.start_daemons(host, self.paths)
            hosts.wait_for_daemons(host, self.paths)

    def _processes(self) -> list[int]:
        return [one.pid for one in lab_processes() if one.state == str(self.paths.state)]

    def _status_of(self, host: LabHost) -> HostStatus:
        docker = hosts.answers_docker(host, self.paths)
        present = [image for image in (LLAMA_IMAGE, FAULTY_IMAGE) if docker and self._has(image, host)]
        return HostStatus(
            name=host.name,
            address=host.address,
            standing=hosts.is_standing(host, self.paths),
            ssh=hosts.answers_ssh(host),
            docker=docker,
            images=tuple(present),
        )

    def _has(self, image: str, host: LabHost) -> bool:
        return images.has_image(image, host, self.paths)


def _write_keys(paths: LabPaths) -> bool:
    """Make the client's and the hosts' keys where they are missing; say whether any was made."""
    paths.state.mkdir(exist_ok=True)
    paths.state.chmod(0o755)
    made = False
    for key in (paths.key, *(paths.state / f"{host.name}_host_ed25519" for host in paths.hosts)):
        if not (key.exists() and key.with_suffix(".pub").exists()):
            key.unlink(missing_ok=True)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gate0-lab", "-f", str(key)])
            made = True
    return made


def _write_files(paths: LabPaths) -> None:
    """Write what clients need: known_hosts, ssh_config, gate0's hosts.yaml."""
    places = {"key": paths.key, "known_hosts": paths.known_hosts}
    known, config, inventory = "", "", "hosts:\n"
    for host in paths.hosts:
        public = (paths.state / f"{host.name}_host_ed25519.pub").read_text().split()
        known += f"{host.name},{host.address} {public[0]} {public[1]}\n"
        config += SSH_CONFIG.format(name=host.name, address=host.address, **places)
        inventory += HOSTS_YAML_LINE.format(
            name=host.name,
            address=host.address,
            **{name: json.dumps(str(path)) for name, path in places.items()},  # a JSON string is a YAML string
        )
    paths.known_hosts.write_text(known)
    paths.ssh_config.write_text(config)
    paths.hosts_yaml.write_text(inventory)


def _remove_tree(folder: Path) -> None:
    """Remove the lab's folder, and first whatever a host that died halfway left mounted in it."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounts if place.startswith(f"{folder}/")), reverse=True):
        run(["umount", "-l", place], check=False)
    if folder.exists():
        shutil.rmtree(folder)


def _print_status(status: LabStatus, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"up": status.is_up, **asdict(status)}, indent=2))
        return
    print(f"registry  {REGISTRY}  {'up' if status.registry else 'down'}")
    for host in status.hosts:
        answers = ", ".join(f"{part} {'up' if getattr(host, part) else 'down'}" for part in ("ssh", "docker"))
        state = answers if host.standing else "down"
        print(f"{host.name}   {host.address}  {state}  {' '.join(host.images)}".rstrip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab.py", description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="start the lab, or reuse and repair it")
    up.add_argument(
        "--llama-on",
        default=",".join(ADDRESSES),
        metavar="HOSTS",
        help="hosts that have the llama-server image pulled, comma-separated, `none` for none (default: %(default)s)",
    )
    verbs.add_parser("down", help="stop the lab and remove everything of it")
    status = verbs.add_parser("status", help="say what answers; exit 1 if not all of it does")
    status.add_argument("--json", action="store_true", help="one JSON document")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    options = _parser().parse_args(argv)
    lab, begin_s = Lab.of(), time.monotonic()
    try:
        if options.verb == "up":
            lab.up(llama_on=set(options.llama_on.split(",")) & set(ADDRESSES))
            say(f"up after {time.monotonic() - begin_s:.1f} s: ssh -F {lab.paths.ssh_config} spark01")
        elif options.verb == "down":
            lab.down()
            say(f"down after {time.monotonic() - begin_s:.1f} s")
        status = lab.status() if find_tool("nsenter") else LabStatus(registry=False, hosts=())
    except LabError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    if options.verb != "down":
        _print_status(status, as_json=getattr(options, "json", False))
        return 0 if status.is_up and status.hosts else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
