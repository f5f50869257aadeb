"""Debian's packages: installed for what they hold; nothing that they bring is started on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.labkit.base import run

POLICY = Path("/usr/sbin/policy-rc.d")
SERVICES_OF: Mapping[str, tuple[str, ...]] = {
    "openssh-server": ("ssh.service", "ssh.socket"),
    "docker.io": ("docker.service", "docker.socket", "containerd.service"),
    "docker-registry": ("docker-registry.service",),
}


def install(packages: Sequence[str]) -> None:
    """Run `apt-get update` and `install` without recommended packages; needs root.

    Raises:
        LabBroken: If apt-get fails, or is not done by the deadline.
    """
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    with _services_kept_off(packages):
        run(["apt-get", "update", "-qq"], deadline_s=300, env=environment)
        argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        run(argv, deadline_s=600, env=environment)


@contextmanager
def _services_kept_off(packages: Sequence[str]) -> Iterator[None]:
    """Debian starts what it installs, now and at boot. We want the programs only."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink(missing_ok=True)
    if Path("/run/systemd/system").exists():
        for service in (name for package in packages for name in SERVICES_OF.get(package, ())):
            subprocess.run(["systemctl", "disable", "--now", service], capture_output=True, check=False, timeout=60)
