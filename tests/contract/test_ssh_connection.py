"""The way to a host over a real sshd: keys, proxies, broken connections, and the words of each failure."""

from __future__ import annotations

import dataclasses
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import AuthFailed, CommandTimedOut, HostKeyChanged, HostKeyUnknown, HostUnreachable
from orchestrator.fleet.inventory import HostEntry
from orchestrator.fleet.known_hosts import append_key, host_label
from orchestrator.fleet.ssh import SshHost, fetch_host_key
from tests.contract.conftest import Sshd, free_port, keygen


@pytest.fixture
def ssh(sshd: Sshd) -> Iterator[SshHost]:
    host = SshHost(sshd.entry(), connect_s=10)
    yield host
    host.close()


def answer(entry: HostEntry, *, connect_s: float = 10) -> str:
    host = SshHost(entry, connect_s=connect_s)
    try:
        return host.run(("printf", "up")).stdout
    finally:
        host.close()


def connections(sshd: Sshd) -> int:
    """How many times it let someone in so far."""
    return (sshd.folder / "sshd.log").read_text().count("Accepted publickey")


def test_nothing_is_connected_before_the_first_command(sshd: Sshd) -> None:
    before = connections(sshd)
    SshHost(sshd.entry()).close()

    assert connections(sshd) == before


def test_all_threads_and_streams_share_one_connection(sshd: Sshd, ssh: SshHost) -> None:
    before = connections(sshd)
    threads = [threading.Thread(target=ssh.run, args=(("true",),)) for _ in range(12)]
    for thread in threads:
        thread.start()
    ssh.open_stream(("cat",)).close()
    for thread in threads:
        thread.join()

    assert connections(sshd) - before == 1


def test_more_streams_than_sessions_is_waited_for(ssh: SshHost) -> None:
    streams = [ssh.open_stream(("cat",)) for _ in range(10)]
    later = threading.Timer(0.3, streams[0].close)
    later.start()

    assert ssh.run(("true",)).is_ok

    later.join()
    for stream in streams:
        stream.close()


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_whichever_key_type_is_on_record_is_asked_for(sshd: Sshd, kind: str) -> None:
    sshd.known_hosts.unlink()
    append_key(sshd.known_hosts, host_label("127.0.0.1", sshd.port), sshd.host_key(kind))

    assert answer(sshd.entry()) == "up"


def test_a_hashed_name_in_known_hosts_is_found(sshd: Sshd) -> None:
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(sshd.known_hosts)], check=True, capture_output=True)
    assert "127.0.0.1" not in sshd.known_hosts.read_text()

    assert answer(sshd.entry()) == "up"


def test_a_key_on_record_for_the_bare_address_holds_at_another_port(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    append_key(sshd.known_hosts, "127.0.0.1", sshd.host_key("ed25519"))

    assert answer(sshd.entry()) == "up"


def test_a_host_key_alias_is_what_is_looked_up(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    append_key(sshd.known_hosts, "my-spark", sshd.host_key("ed25519"))

    assert answer(sshd.entry(host_key_alias="my-spark")) == "up"


def test_an_unknown_host_key_is_refused_with_its_fingerprint_and_the_remedy(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()

    with pytest.raises(HostKeyUnknown) as caught:
        answer(sshd.entry())

    assert sshd.host_key("ed25519").fingerprint in caught.value.message
    assert caught.value.hint == "`gate0 hosts trust sshd` shows it again and asks"
    assert not sshd.known_hosts.exists()


def test_a_changed_host_key_is_refused_with_both_fingerprints_and_the_remedy(sshd: Sshd, tmp_path: Path) -> None:
    keygen(tmp_path / "other", "ed25519")
    old = dataclasses.replace(sshd, folder=tmp_path)
    (tmp_path / "other.pub").rename(tmp_path / "host_ed25519.pub")
    sshd.known_hosts.unlink()
    append_key(sshd.known_hosts, host_label("127.0.0.1", sshd.port), old.host_key("ed25519"))

    with pytest.raises(HostKeyChanged) as caught:
        answer(sshd.entry())

    assert sshd.host_key("ed25519").fingerprint in caught.value.message
    assert old.host_key("ed25519").fingerprint in caught.value.message
    label = shlex.quote(f"[127.0.0.1]:{sshd.port}")
    assert f"`ssh-keygen -R {label} -f {sshd.known_hosts}`" in (caught.value.hint or "")


def test_a_host_that_lost_the_key_type_on_record_counts_as_changed(sshd: Sshd) -> None:
    sshd.start(host_keys=("ecdsa",), more="# changed")

    with pytest.raises(HostKeyChanged):
        answer(sshd.entry())


def test_a_revoked_key_is_refused_even_when_it_is_on_record(sshd: Sshd) -> None:
    line = sshd.known_hosts.read_text()
    sshd.known_hosts.write_text(f"{line}@revoked * {line.split(maxsplit=1)[1]}")

    with pytest.raises(HostKeyChanged, match="revoked"):
        answer(sshd.entry())


def test_a_host_key_is_fetched_without_logging_in(sshd: Sshd) -> None:
    before = connections(sshd)
    shown = fetch_host_key(sshd.entry(key_files=("/no/such/key",)), deadline_s=10)

    assert (shown, connections(sshd)) == (sshd.host_key("ed25519"), before)


def test_a_wrong_key_is_refused_naming_user_key_and_the_fix(sshd: Sshd, tmp_path: Path, no_agent: None) -> None:
    keygen(tmp_path / "stranger", "ed25519")

    with pytest.raises(AuthFailed) as caught:
        answer(sshd.entry(key_files=(str(tmp_path / "stranger"),), user="root"))

    assert "sshd: cannot log in as root@127.0.0.1: the host refused" in caught.value.message
    assert f"{tmp_path}/stranger SHA256:" in caught.value.message
    assert f"ssh-copy-id -p {sshd.port} root@127.0.0.1" in (caught.value.hint or "")


def test_a_wrong_key_is_not_tried_again(sshd: Sshd, tmp_path: Path, no_agent: None) -> None:
    keygen(tmp_path / "stranger", "ed25519")
    began_s = time.monotonic()

    with pytest.raises(AuthFailed):
        answer(sshd.entry(key_files=(str(tmp_path / "stranger"),)), connect_s=20)

    assert time.monotonic() - began_s < 10


def test_a_key_file_that_is_not_there_is_named(sshd: Sshd, no_agent: None) -> None:
    with pytest.raises(AuthFailed, match=r"/no/such/key \(no such file\)"):
        answer(sshd.entry(key_files=("/no/such/key",)))


def test_a_locked_key_without_an_agent_says_ssh_add(sshd: Sshd, tmp_path: Path, no_agent: None) -> None:
    keygen(tmp_path / "locked", "ed25519", "secret words")

    with pytest.raises(AuthFailed, match="protected by a passphrase") as caught:
        answer(sshd.entry(key_files=(str(tmp_path / "locked"),)))

    assert caught.value.hint == f"`ssh-add {tmp_path}/locked` lets the agent hold it"


def test_a_file_that_is_no_key_is_named(sshd: Sshd, tmp_path: Path, no_agent: None) -> None:
    (tmp_path / "id").write_text("hello\n")

    with pytest.raises(AuthFailed, match="not a private key that can be read"):
        answer(sshd.entry(key_files=(str(tmp_path / "id"),)))


def test_a_key_in_the_agent_is_used(sshd: Sshd, agent: None) -> None:
    subprocess.run(["ssh-add", "-q", str(sshd.key)], check=True, timeout=10, capture_output=True)

    assert answer(sshd.entry(key_files=("/no/such/key",))) == "up"


def test_a_refused_port_is_tried_until_the_deadline_then_named(sshd: Sshd) -> None:
    port = free_port()
    began_s = time.monotonic()

    with pytest.raises(HostUnreachable, match=f"no SSH answer from 127.0.0.1 port {port} for 1 s: connection refused"):
        answer(sshd.entry(port=port), connect_s=1)

    assert 0.9 <= time.monotonic() - began_s < 6


def test_a_host_that_is_still_starting_is_waited_for(sshd: Sshd) -> None:
    sshd.stop()
    later = threading.Timer(0.5, sshd.start)
    later.start()

    assert answer(sshd.entry(), connect_s=20) == "up"

    later.join()


def test_something_that_is_no_sshd_is_unreachable(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        entry = sshd.entry(port=silent.getsockname()[1])
        with pytest.raises(HostUnreachable, match="no SSH answer"):
            answer(entry, connect_s=1)


def test_a_host_name_that_does_not_exist_is_not_tried_again(sshd: Sshd) -> None:
    with pytest.raises(HostUnreachable, match=r"no-such-host\.invalid"):
        answer(sshd.entry(address="no-such-host.invalid"), connect_s=3)


def test_a_proxy_command_carries_the_connection(sshd: Sshd, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    line = f"{shlex.quote(sys.executable)} {relay} %h %p 2>/dev/null"

    assert answer(sshd.entry(proxy_command=line)) == "up"


def test_a_proxy_command_that_fails_is_quoted(sshd: Sshd) -> None:
    with pytest.raises(HostUnreachable, match="the proxy command ended: no way through"):
        answer(sshd.entry(proxy_command="sh -c 'echo no way through >&2; exit 1'"), connect_s=1)


def test_a_proxy_command_is_gone_after_close(sshd: Sshd, tmp_path: Path) -> None:
    relay, pid_file = tmp_path / "relay.py", tmp_path / "pid"
    relay.write_text(f"import os; open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n{RELAY}")
    answer(sshd.entry(proxy_command=f"{shlex.quote(sys.executable)} {relay} %h %p"))

    assert not Path(f"/proc/{pid_file.read_text()}").exists()


def test_a_proxy_jump_goes_through_the_users_own_ssh(sshd: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host jump\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.entry().user}\n  IdentityFile {sshd.key}\n"
        f"  UserKnownHostsFile {sshd.known_hosts}\n  StrictHostKeyChecking yes\n"
    )
    before = connections(sshd)

    assert answer(sshd.entry(proxy_jump="jump", config_file=str(config))) == "up"
    assert connections(sshd) - before == 2


def test_a_connection_that_breaks_under_a_command_is_unreachable_then_made_anew(sshd: Sshd, ssh: SshHost) -> None:
    stream = ssh.open_stream(("sh", "-c", "echo up; exec sleep 60"))
    stream.settimeout(10)
    assert stream.recv(3) == b"up\n"
    breaker = threading.Timer(0.3, sshd.drop_connections)
    breaker.start()

    with pytest.raises(HostUnreachable, match="the connection broke while `sleep 30` ran"):
        ssh.run(("sleep", "30"))

    breaker.join()
    assert stream.recv(1) == b""
    assert ssh.run(("printf", "again")).stdout == "again"


def test_a_connection_that_broke_while_idle_is_made_anew_without_a_word(sshd: Sshd, ssh: SshHost) -> None:
    ssh.run(("true",))
    sshd.drop_connections()

    assert ssh.run(("printf", "again")).stdout == "again"


def test_a_host_that_stays_away_after_a_break_is_unreachable(sshd: Sshd) -> None:
    host = SshHost(sshd.entry(), connect_s=1)
    host.run(("true",))
    sshd.stop()

    with pytest.raises(HostUnreachable):
        host.run(("true",))

    host.close()


def test_a_closed_host_does_not_connect_again(ssh: SshHost) -> None:
    ssh.run(("true",))
    ssh.close()

    with pytest.raises(HostUnreachable, match="closed by gate0"):
        ssh.run(("true",))


def test_a_deadline_leaves_the_connection_usable(sshd: Sshd, ssh: SshHost) -> None:
    before = connections(sshd)
    with pytest.raises(CommandTimedOut):
        ssh.run(("sleep", "60"), timeout_s=0.2)
    ssh.run(("true",))

    assert connections(sshd) - before == 1


def test_close_leaves_no_thread_and_no_tunnel(ssh: SshHost) -> None:
    before = set(threading.enumerate())
    ssh.run(("true",))
    port = ssh.open_port(free_port())
    ssh.close()

    assert [t for t in threading.enumerate() if t not in before and t.is_alive()] == []
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=2)


def test_the_same_port_twice_is_one_tunnel(ssh: SshHost) -> None:
    port = free_port()

    assert ssh.open_port(port) == ssh.open_port(port)


def test_a_tunnel_to_a_port_where_nothing_listens_closes_the_connection(ssh: SshHost) -> None:
    with socket.create_connection(("127.0.0.1", ssh.open_port(free_port())), timeout=10) as client:
        client.settimeout(10)
        assert client.recv(1) == b""


def test_nothing_is_printed_when_a_connection_fails(sshd: Sshd, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(HostUnreachable):
        answer(sshd.entry(port=silent.getsockname()[1]), connect_s=1)

    assert capfd.readouterr() == ("", "")


@pytest.fixture
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real ssh-agent without keys."""
    place = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL)
    try:
        end_s = time.monotonic() + 10
        while not place.exists():
            assert time.monotonic() < end_s, "ssh-agent did not start"
            os.sched_yield()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


RELAY = """\
import os, socket, sys, threading
far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while chunk := os.read(0, 65536):
        far.sendall(chunk)
    far.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while chunk := far.recv(65536):
    os.write(1, chunk)
"""


def test_a_command_without_stdin_reads_from_nowhere_and_is_sent_nothing(sshd: Sshd) -> None:
    """An end of file that comes after the channel's close makes OpenSSH end the connection: 7 of 224 readings of a
    host's facts, about fifty short commands each, broke so while the end of an empty stdin was sent over the channel.
    """
    host = SshHost(sshd.entry())
    try:
        done = host.run(("readlink", "/proc/self/fd/0"))
    finally:
        host.close()

    assert done.stdout == "/dev/null\n"
