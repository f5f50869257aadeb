"""One lab host: namespaces that pass for a machine, with an sshd and a Docker Engine of their own.

Theory of operation. `unshare --pid --fork` starts files/host-init.sh as PID 1 of the host; killing it ends all that
runs there, containers too, and with the last process go the host's mounts. Every start and repair enters
through that PID with nsenter. `ip netns exec` would not do: it remounts /sys and hides the cgroup mounts.
Nothing is remembered in pid files: who is alive is read from /proc (`lab_processes`).
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tools.labkit import network
from tools.labkit.base import (
    ADDRESSES,
    GATEWAY,
    REGISTRY,
    LabBroken,
    LabHost,
    LabPaths,
    lab_processes,
    run,
    say,
    start_daemon,
    tail_of,
    wait_until,
)

FILES = Path(__file__).resolve().parent / "files"
CGROUP_PARENT = "gate0-lab"
SSHD_CONFIG = """\
ListenAddress {address}
HostKey /etc/ssh/lab_host_ed25519
AuthorizedKeysFile /etc/ssh/lab_authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
MaxStartups 100
MaxSessions 100
PidFile /run/sshd.pid
Subsystem sftp internal-sftp
"""


def find_init(host: LabHost, paths: LabPaths) -> int | None:
    """Return the PID (seen from this machine) of the host's init."""
    wanted = (str(paths.state), f"init:{host.name}", True)
    return next((one.pid for one in lab_processes() if (one.state, one.role, one.is_init) == wanted), None)


def inside(init_pid: int) -> list[str]:
    """Return the argv prefix that runs a command in the host."""
    return ["nsenter", f"--target={init_pid}", "--mount", "--uts", "--net", "--pid", "--"]


def is_standing(host: LabHost, paths: LabPaths) -> bool:
    """Say whether the host has its namespaces and its cable; its daemons are looked at elsewhere."""
    init_pid = find_init(host, paths)
    return init_pid is not None and network.is_wired(host, init_pid) and _path_in(init_pid, "/run/ready").exists()


def daemon_pids(host: LabHost, paths: LabPaths, name: str) -> tuple[int, ...]:
    """List the host's processes of that name, by its PID namespace: sshd writes its title over its environment."""
    init_pid = find_init(host, paths)
    if init_pid is None:
        return ()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            same = (folder / "ns/pid").stat().st_ino == Path(f"/proc/{init_pid}/ns/pid").stat().st_ino
            if same and (folder / "comm").read_text().strip() == name:
                found.append(int(folder.name))
        except OSError:  # it ended
            continue
    return tuple(found)


def answers_ssh(host: LabHost) -> bool:
    """Say whether an sshd greets at the host's address."""
    try:
        with socket.create_connection((host.address, 22), timeout=2) as connection:
            connection.settimeout(2)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def answers_docker(host: LabHost, paths: LabPaths) -> bool:
    """Say whether the host's Docker Engine answers on its own socket."""
    init_pid = find_init(host, paths)
    if init_pid is None:
        return False
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(str(_path_in(init_pid, "/run/docker.sock")))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            return reply.status == 200
    except (OSError, http.client.HTTPException):
        return False


def build(host: LabHost, paths: LabPaths) -> None:
    """Make the host anew: folders, wires, namespaces. What was left of it is removed first; images are kept."""
    say(f"building {host.name} ({host.address})")
    remove(host, paths)
    _write_state(host, paths)
    network.add_host(host)
    argv = ["nsenter", f"--net={network.NAMESPACES / host.name}", "unshare", "--mount", "--uts", "--pid", "--fork"]
    argv += ["--kill-child", "--mount-proc", str(FILES / "host-init.sh"), host.name, str(host.state), str(paths.parts)]
    log = host.state / "init.log"
    start_daemon(argv, paths=paths, role=f"init:{host.name}", log=log)
    wait_until(lambda: is_standing(host, paths), f"{host.name} was not built", deadline_s=15, log=log)


def start_daemons(host: LabHost, paths: LabPaths) -> None:
    """Start whichever of sshd and dockerd does not answer, without waiting for it."""
    init_pid = find_init(host, paths)
    if init_pid is None:
        raise LabBroken(f"{host.name} died{tail_of(host.state / 'init.log')}")
    if not answers_ssh(host):
        _restart(host, paths, ["/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/lab_sshd_config"])
    if not answers_docker(host, paths):
        _restart(host, paths, ["/usr/sbin/dockerd", "--pidfile=/run/docker.pid", "--host=unix:///run/docker.sock"])


def wait_for_daemons(host: LabHost, paths: LabPaths) -> None:
    """Wait until both answer."""
    log = host.state / "sshd.log"
    wait_until(lambda: answers_ssh(host), f"sshd of {host.name} does not answer", deadline_s=15, log=log)
    log = host.state / "dockerd.log"
    wait_until(lambda: answers_docker(host, paths), f"dockerd of {host.name} does not answer", deadline_s=60, log=log)


def remove(host: LabHost, paths: LabPaths) -> None:
    """End everything that runs on the host and take its namespaces away; its folder stays."""
    init_pid = find_init(host, paths)
    if init_pid is not None and answers_docker(host, paths):
        _remove_containers(init_pid)
        _stop_dockerd(host, paths)
    kill((one.pid for one in lab_processes() if _is_of(one.role, host)), signal.SIGKILL)
    kill(network.processes_in(host), signal.SIGKILL)
    wait_until(
        lambda: not network.processes_in(host) and not any(_is_of(one.role, host) for one in lab_processes()),
        f"processes of {host.name} do not end",
        deadline_s=20,
    )
    network.remove_host(host)
    _remove_cgroups(host)


def kill(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal processes that may be gone already."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _path_in(init_pid: int, path: str) -> Path:
    return Path(f"/proc/{init_pid}/root{path}")


def _is_of(role: str, host: LabHost) -> bool:
    return role.endswith(f":{host.name}")


def _restart(host: LabHost, paths: LabPaths, argv: list[str]) -> None:
    daemon = Path(argv[0]).name
    role = f"{daemon}:{host.name}"
    # Only the daemon itself, hung or half dead: a new dockerd takes the old one's containerd over.
    kill(daemon_pids(host, paths, daemon), signal.SIGKILL)
    init_pid = find_init(host, paths)
    if init_pid is None:
        raise LabBroken(f"{host.name} died{tail_of(host.state / 'init.log')}")
    say(f"starting {daemon} on {host.name}")
    # The inner setsid lets nsenter end, so that the daemon is the child of the host's init.
    command = [*inside(init_pid), "setsid", "-f", *argv]
    start_daemon(command, paths=paths, role=role, log=host.state / f"{daemon}.log")


def _remove_containers(init_pid: int) -> None:
    """Remove them through the engine, so that it takes their cgroups and mounts away. Best effort."""
    try:
        listed = run([*inside(init_pid), "docker", "ps", "-aq"], deadline_s=10, check=False).stdout.split()
        if listed:
            run([*inside(init_pid), "docker", "rm", "-f", *listed], deadline_s=30, check=False)
    except LabBroken as problem:
        say(f"containers are killed instead: {problem}")


def _stop_dockerd(host: LabHost, paths: LabPaths) -> None:
    kill(daemon_pids(host, paths, "dockerd"), signal.SIGTERM)
    what = f"dockerd of {host.name} does not stop"
    try:
        wait_until(lambda: not daemon_pids(host, paths, "dockerd"), what, deadline_s=15)
    except LabBroken as problem:
        say(f"it is killed instead: {problem}")


def _remove_cgroups(host: LabHost) -> None:
    """Remove the host's cgroups; each controller of cgroup v1 is a tree of its own."""
    for tree in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")):
        parent = tree / CGROUP_PARENT / host.name
        for folder in sorted((item for item in parent.rglob("*/")), reverse=True):
            _remove_folder(folder)
        _remove_folder(parent)
        _remove_folder(parent.parent)


def _remove_folder(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # absent, or the other host's cgroups are still in it
        return


def _write_state(host: LabHost, paths: LabPaths) -> None:
    """Write what the host is built from: its own /etc files, its tools, its data folders."""
    for folder in ("docker", "root", "tmp", "bin", "etc/ssh", "etc/docker"):
        (host.state / folder).mkdir(parents=True, exist_ok=True)
    (host.state / "root").chmod(0o700)
    (host.state / "tmp").chmod(0o1777)
    etc = host.state / "etc"
    etc.joinpath("hostname").write_text(f"{host.name}\n")
    names = "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
    etc.joinpath("hosts").write_text(f"127.0.0.1 localhost\n{GATEWAY} lab-gateway\n{names}")
    # Nobody answers there, and that is known at once: a name that is not in /etc/hosts fails without a wait.
    etc.joinpath("resolv.conf").write_text(f"nameserver {GATEWAY}\n")
    shutil.copy(FILES / "dgx-release", etc / "dgx-release")
    shutil.copy(FILES / "nvidia-smi", host.state / "bin" / "nvidia-smi")
    etc.joinpath("docker/daemon.json").write_text(json.dumps(_daemon_settings(host), indent=2))
    etc.joinpath("ssh/lab_sshd_config").write_text(SSHD_CONFIG.format(address=host.address))
    shutil.copy(paths.key.with_suffix(".pub"), etc / "ssh/lab_authorized_keys")
    shutil.copy(paths.state / f"{host.name}_host_ed25519", etc / "ssh/lab_host_ed25519")


def _daemon_settings(host: LabHost) -> dict[str, object]:
    return {
        "insecure-registries": [REGISTRY],
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "cgroup-parent": f"/{CGROUP_PARENT}/{host.name}",
        "shutdown-timeout": 5,
    }


def exec_in(host: LabHost, paths: LabPaths, argv: list[str], *, deadline_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command in the host, beside SSH, and return what it printed, whatever its exit code.

    Raises:
        LabBroken: If the host is down, or the command is not done by the deadline.
    """
    init_pid = find_init(host, paths)
    if init_pid is None:
        raise LabBroken(f"{host.name} is down\nhint: `make lab`")
    return run([*inside(init_pid), *argv], deadline_s=deadline_s, check=False)
