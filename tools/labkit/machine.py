"""What a machine must offer before a lab can stand on it: Linux, root, namespaces, packages, no other lab."""

from __future__ import annotations

import fcntl
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.labkit import debian
from tools.labkit.base import LabBroken, LabPaths, LabUnavailable, find_tool, lab_processes, run, say

LOCK_FILE = Path("/run/lock/gate0-lab.lock")
LOCK_DEADLINE_S = 900
PACKAGE_OF: Mapping[str, str] = {
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "dockerd": "docker.io",
    "docker": "docker.io",
    "docker-registry": "docker-registry",
    "busybox": "busybox-static",
}


def require_ability() -> None:
    """Check what no package can add.

    Raises:
        LabUnavailable: With the reason.
    """
    if platform.system() != "Linux":
        raise LabUnavailable(f"the lab needs Linux (network namespaces), this is {platform.system()}")
    if os.geteuid() != 0:
        raise LabUnavailable("the lab needs root (network namespaces, two Docker Engines)\nhint: `sudo make lab`")
    try:
        run(["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "true"], deadline_s=10)
    except (LabBroken, OSError) as problem:
        hint = "hint: in a container it must be privileged (`--privileged`)"
        raise LabUnavailable(f"no namespaces can be made here: {problem}\n{hint}") from problem


def require_packages() -> None:
    """Install the Debian packages that are missing; nothing they bring is started on this machine.

    Raises:
        LabUnavailable: If there is no apt-get, or it fails.
    """
    missing = tuple(sorted({package for tool, package in PACKAGE_OF.items() if find_tool(tool) is None}))
    if not missing:
        return
    if find_tool("apt-get") is None:
        lacking = " ".join(tool for tool in PACKAGE_OF if find_tool(tool) is None)
        raise LabUnavailable(
            f"not found in /usr/bin or /usr/sbin: {lacking}\nhint: install them; `apt-get` is not here"
        )
    say(f"installing {' '.join(missing)}")
    try:
        debian.install(missing)
    except LabBroken as problem:
        raise LabUnavailable(
            f"{problem}\nhint: `apt-get install --no-install-recommends {' '.join(missing)}`"
        ) from problem


def require_no_other(paths: LabPaths) -> None:
    """Check that no other checkout has its lab up: names and addresses are this machine's.

    Raises:
        LabUnavailable: If one has, with its place.
    """
    for one in lab_processes():
        if one.state != str(paths.state):
            checkout = Path(one.state).parent
            raise LabUnavailable(f"the lab of {checkout} is up on this machine\nhint: `make -C {checkout} lab-down`")


@contextmanager
def lock() -> Iterator[None]:
    """Hold this machine's lab alone; wait for whoever has it.

    Raises:
        LabBroken: If it is not free by the deadline.
    """
    LOCK_FILE.parent.mkdir(parents=True, exist_ok=True)
    end_s = time.monotonic() + LOCK_DEADLINE_S
    descriptor = _try_lock()
    if descriptor is None:
        say("waiting for another `lab.py`")
    while descriptor is None:
        if time.monotonic() > end_s:
            raise LabBroken(f"another `lab.py` has held {LOCK_FILE} for {LOCK_DEADLINE_S} s")
        time.sleep(0.1)
        descriptor = _try_lock()
    try:
        yield
    finally:
        LOCK_FILE.unlink(missing_ok=True)
        os.close(descriptor)


def _try_lock() -> int | None:
    """Return the locked file's descriptor, or None while it is held.

    The holder unlinks the file. A lock won on an unlinked file excludes nobody, hence the second look.
    """
    descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == LOCK_FILE.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
