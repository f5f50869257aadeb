"""`gate0 hosts` from the command line, against a real sshd."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.fleet.facts import Docker, HostFacts
from orchestrator.fleet.known_hosts import append_key, host_label
from tests.contract.conftest import Sshd, free_port, keygen


@pytest.fixture
def hosts_file(sshd: Sshd, tmp_path: Path) -> str:
    """An inventory with the sshd as `box` and nothing at `away`."""
    entry = {
        "address": "127.0.0.1",
        "port": sshd.port,
        "user": sshd.entry().user,
        "key_file": str(sshd.key),
        "known_hosts": str(sshd.known_hosts),
    }
    file = tmp_path / "hosts.yaml"
    file.write_text(json.dumps({"hosts": {"box": entry, "away": {**entry, "port": free_port()}}}))
    return str(file)


def gate0(*argv: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(argv)
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_list_names_every_host_and_where_it_comes_from(
    hosts_file: str, sshd: Sshd, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = gate0("hosts", "list", "--hosts", hosts_file, "--json", capsys=capsys)

    listed = json.loads(out)["hosts"]
    assert code == 0
    assert [(h["name"], h["port"]) for h in listed if h["name"] in {"box", "local"}] == [
        ("box", sshd.port),
        ("local", None),
    ]
    assert listed[0]["source"].endswith("hosts.yaml:1")


def test_check_reads_a_hosts_facts_over_ssh(hosts_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = gate0("hosts", "check", "box", "--hosts", hosts_file, "--json", capsys=capsys)

    (box,) = json.loads(out)["hosts"]
    assert box["error"] is None
    assert box["facts"]["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert box["facts"]["memory"]["total_bytes"] > 2**28


def test_check_of_a_host_that_is_away_ends_with_3_and_says_why(
    hosts_file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.cli.commands.hosts.CONNECT_S", 0.5)
    code, out, err = gate0("hosts", "check", "away", "--hosts", hosts_file, capsys=capsys)

    assert code == 3
    assert "away: no SSH answer from 127.0.0.1 port" in err
    assert "cannot be used" in out


def test_check_says_what_works_without_docker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = HostFacts(host="local", read_at="2026-11-30T06:00:00Z", docker=Docker(problem="not_running"))
    monkeypatch.setattr("orchestrator.fleet.facts.read_facts", lambda _: facts)

    code, out, _ = gate0("hosts", "check", "local", capsys=capsys)
    assert (code, out.splitlines()[-1]) == (3, "  cannot be used with Docker; `runtime: process` works")

    _, told, _ = gate0("hosts", "check", "local", "--json", capsys=capsys)
    (local,) = json.loads(told)["hosts"]
    assert (local["is_usable"], local["runtimes"]) == (False, ["process"])


def test_check_without_a_trusted_key_names_the_command_that_helps(
    hosts_file: str, sshd: Sshd, capsys: pytest.CaptureFixture[str]
) -> None:
    sshd.known_hosts.unlink()

    code, _, err = gate0("hosts", "check", "box", "--hosts", hosts_file, capsys=capsys)

    assert code == 3
    assert "hint: `gate0 hosts trust box`" in err


def test_trust_writes_a_key_whose_fingerprint_was_given(
    hosts_file: str, sshd: Sshd, capsys: pytest.CaptureFixture[str]
) -> None:
    sshd.known_hosts.unlink()
    fingerprint = sshd.host_key("ed25519").fingerprint

    code, _, _ = gate0(
        "hosts", "trust", "box", "--yes", "--fingerprint", fingerprint, "--hosts", hosts_file, capsys=capsys
    )

    assert code == 0
    argv = ["ssh-keygen", "-F", f"[127.0.0.1]:{sshd.port}", "-f", str(sshd.known_hosts)]
    assert subprocess.run(argv, check=False, capture_output=True).returncode == 0


def test_trust_refuses_another_fingerprint_and_writes_nothing(
    hosts_file: str, sshd: Sshd, capsys: pytest.CaptureFixture[str]
) -> None:
    sshd.known_hosts.unlink()

    code, _, err = gate0("hosts", "trust", "box", "--fingerprint", "SHA256:no", "--hosts", hosts_file, capsys=capsys)

    assert code == 3
    assert "you expect SHA256:no" in err
    assert not sshd.known_hosts.exists()


def test_trust_does_not_go_over_a_changed_key(
    hosts_file: str, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keygen(tmp_path / "host_ed25519", "ed25519")
    stranger = Sshd(folder=tmp_path, port=0).host_key("ed25519")
    sshd.known_hosts.unlink()
    append_key(sshd.known_hosts, host_label("127.0.0.1", sshd.port), stranger)
    before = sshd.known_hosts.read_text()
    fingerprint = sshd.host_key("ed25519").fingerprint

    code, _, err = gate0(
        "hosts", "trust", "box", "--yes", "--fingerprint", fingerprint, "--hosts", hosts_file, capsys=capsys
    )

    assert (code, sshd.known_hosts.read_text()) == (3, before)
    assert "ssh-keygen -R" in err


def test_trust_without_anyone_to_ask_writes_nothing(
    hosts_file: str, sshd: Sshd, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd.known_hosts.unlink()
    with open("/dev/null") as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        code, _, err = gate0("hosts", "trust", "box", "--hosts", hosts_file, capsys=capsys)

    assert code == 2
    assert sshd.host_key("ed25519").fingerprint in err
    assert not sshd.known_hosts.exists()


def test_trust_of_a_trusted_host_says_so(hosts_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = gate0("hosts", "trust", "box", "--hosts", hosts_file, capsys=capsys)

    assert code == 0
    assert "is trusted already" in out


def test_yes_alone_trusts_nobody(hosts_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = gate0("hosts", "trust", "box", "--yes", "--hosts", hosts_file, capsys=capsys)

    assert code == 2
    assert "`--yes` needs `--fingerprint`" in err


def test_help_imports_neither_paramiko_nor_docker() -> None:
    script = (
        "import sys\nfrom orchestrator.cli.main import main\nmain(['hosts', '--help'])\n"
        "print(sorted({'paramiko', 'docker', 'rich'} & sys.modules.keys()), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert "paramiko" not in done.stderr
    assert "docker" not in done.stderr
