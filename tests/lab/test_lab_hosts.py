"""Two lab hosts as `fleet` sees them: facts as a GB10 gives them, one connection, one lock a host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import HostKeyUnknown, LockHeld
from orchestrator.fleet.facts import concerns, differences, read_facts, same_machine
from orchestrator.fleet.host import Host
from orchestrator.fleet.hosts_file import open_host, read_inventory
from orchestrator.fleet.inventory import NoSshConfig, resolve_hosts
from orchestrator.fleet.lock import HostLock, hold
from orchestrator.fleet.ssh import SshHost
from tests.lab.running import RunningLab


@pytest.fixture
def pair(lab: RunningLab) -> Iterator[tuple[Host, Host]]:
    inventory = read_inventory(lab.lab.paths.hosts_yaml)
    first, second = (open_host(e) for e in resolve_hosts("spark01,spark02", inventory, NoSshConfig()))
    yield first, second
    first.close()
    second.close()


def test_a_sparks_facts_are_read(pair: tuple[Host, Host]) -> None:
    facts = read_facts(pair[0])

    assert (facts.gpu_name, facts.is_gb10, facts.hostname) == ("NVIDIA GB10", True, "spark01")
    assert (facts.dgx_release, facts.cuda_driver, facts.home) == ("7.2.3", "13.0", "/root")
    assert facts.docker.is_reachable
    assert facts.unread == ()


def test_what_a_gb10_does_not_tell_is_none(pair: tuple[Host, Host]) -> None:
    (gpu,) = read_facts(pair[0]).gpus

    assert gpu.power_w == pytest.approx(11.24)
    assert gpu.compute_capability == "12.1"


def test_both_hosts_are_alike_but_not_one(pair: tuple[Host, Host]) -> None:
    first, second = (read_facts(host) for host in pair)

    assert differences(first, second) == ()
    assert not same_machine(first, second)


def test_nothing_blocks_a_lab_host(pair: tuple[Host, Host]) -> None:
    assert [c for c in concerns(read_facts(pair[0])) if c.level == "blocker"] == []


def test_a_lock_keeps_another_connection_out_and_leaves_nothing(lab: RunningLab, pair: tuple[Host, Host]) -> None:
    first, second = pair
    assert isinstance(first, SshHost)
    again = SshHost(first.entry)
    with hold(first, "run-1", "test"), hold(second, "run-1", "test"):
        held_from = HostLock(again).owner()
        with pytest.raises(LockHeld):
            HostLock(again).acquire("run-2", "test")
    assert held_from is not None
    again.close()
    first.close()
    second.close()

    lab.assert_clean("spark01")
    lab.assert_clean("spark02")


def test_a_host_without_a_trusted_key_is_refused(pair: tuple[Host, Host], tmp_path: Path) -> None:
    from dataclasses import replace

    assert isinstance(pair[0], SshHost)
    stranger = SshHost(replace(pair[0].entry, known_hosts=(str(tmp_path / "none"),)))

    with pytest.raises(HostKeyUnknown, match="SHA256:"):
        stranger.run(("true",))
