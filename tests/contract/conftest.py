"""A throw-away sshd of this machine's own OpenSSH, and the three kinds of host that keep one contract."""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.fleet.host import Host
from orchestrator.fleet.inventory import HostEntry
from orchestrator.fleet.known_hosts import HostKey, append_key, host_label
from orchestrator.fleet.local import LocalHost
from orchestrator.fleet.ssh import SshHost
from tests.contract.fakes import FakeHost

KEY_TYPES = ("ed25519", "ecdsa", "rsa")
CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
{host_keys}
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/sshd.pid
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM {pam}
SetEnv HOME={folder}/home
AllowTcpForwarding yes
LogLevel VERBOSE
{more}
"""


@dataclasses.dataclass
class Sshd:
    """A real sshd on 127.0.0.1, with host keys and a client key of its own."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    config: str = ""

    @property
    def key(self) -> Path:
        """The private key that it lets in."""
        return self.folder / "client_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def entry(self, **changes: object) -> HostEntry:
        """How to reach it; `changes` are HostEntry fields."""
        plain = HostEntry(
            name="sshd",
            address="127.0.0.1",
            port=self.port,
            user=getpass.getuser(),
            key_files=(str(self.key),),
            known_hosts=(str(self.known_hosts),),
        )
        return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]

    def host_key(self, kind: str) -> HostKey:
        """The public host key of one kind, as ssh-keygen wrote it."""
        import base64

        name, blob, *_ = (self.folder / f"host_{kind}.pub").read_text().split()
        return HostKey(type=name, blob=base64.b64decode(blob))

    def start(self, *, host_keys: tuple[str, ...] = KEY_TYPES, more: str = "") -> None:
        """Start it, and return when it answers."""
        self.stop()
        config = self.folder / "sshd_config"
        keys = "\n".join(f"HostKey {self.folder}/host_{kind}" for kind in host_keys)
        pam = "yes" if os.geteuid() == 0 else "no"
        config.write_text(CONFIG.format(port=self.port, host_keys=keys, folder=self.folder, pam=pam, more=more))
        log = (self.folder / "sshd.log").open("ab")
        with log:
            self.process = subprocess.Popen([_sshd(), "-D", "-e", "-f", str(config)], stderr=log)
        self._wait_for_banner()

    def stop(self) -> None:
        """Stop it and every session of it."""
        if self.process is not None:
            self.drop_connections()
            self.process.terminate()
            self.process.wait(timeout=10)
            self.process = None

    def drop_connections(self) -> None:
        """Kill the process of every connection; sshd itself goes on."""
        assert self.process is not None
        for pid in _children(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _wait_for_banner(self) -> None:
        end_s = time.monotonic() + 10
        while time.monotonic() < end_s:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                if probe.recv(4) == b"SSH-":
                    return
            time.sleep(0.02)
        raise AssertionError(f"sshd did not start:\n{(self.folder / 'sshd.log').read_text()[-2000:]}")


@pytest.fixture(scope="session")
def sshd_shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One sshd for all tests that leave it as it is."""
    with _running_sshd(tmp_path_factory.mktemp("sshd")) as running:
        running.start()
        yield running


@pytest.fixture
def sshd(sshd_shared: Sshd) -> Iterator[Sshd]:
    """The sshd, with a known_hosts file that knows its ed25519 key; put right again after the test."""
    sshd_shared.known_hosts.unlink(missing_ok=True)
    append_key(sshd_shared.known_hosts, host_label("127.0.0.1", sshd_shared.port), sshd_shared.host_key("ed25519"))
    yield sshd_shared
    if sshd_shared.process is None or "# changed" in (sshd_shared.folder / "sshd_config").read_text():
        sshd_shared.start()


@pytest.fixture(params=["local", "ssh", "fake"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Each kind of host in turn."""
    opened = _open(request.param, request)
    yield opened
    opened.close()


@pytest.fixture(params=["local", "ssh"])
def real_host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Each kind of host that runs real commands."""
    opened = _open(request.param, request)
    yield opened
    opened.close()


def _open(kind: str, request: pytest.FixtureRequest) -> Host:
    if kind == "local":
        return LocalHost("here")
    if kind == "fake":
        return FakeHost("fake")
    return SshHost(request.getfixturevalue("sshd").entry(), connect_s=10)


@contextlib.contextmanager
def _running_sshd(folder: Path) -> Iterator[Sshd]:
    if shutil.which("ssh-keygen") is None or not Path(_sshd()).exists():
        pytest.skip("no OpenSSH server here (Debian: apt-get install openssh-server)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (folder / "home").mkdir()  # the user's own shell start-up files are no part of a test
    for kind in KEY_TYPES:
        keygen(folder / f"host_{kind}", kind)
    keygen(folder / "client_ed25519", "ed25519")
    (folder / "authorized_keys").write_text((folder / "client_ed25519.pub").read_text())
    running = Sshd(folder=folder, port=free_port())
    try:
        yield running
    finally:
        running.stop()


def free_port() -> int:
    """A TCP port of loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def keygen(file: Path, kind: str, passphrase: str = "") -> None:
    """A new key pair, `file` and `file.pub`."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(file)], check=True, timeout=60
    )


def _sshd() -> str:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin") or "/usr/sbin/sshd"


def _children(pid: int) -> list[int]:
    """Processes below one, the deepest last."""
    try:
        direct = [int(w) for w in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [below for child in direct for below in (child, *_children(child))]
