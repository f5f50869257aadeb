"""Facts: what each command's output means, one file a case under tests/cases/facts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import CommandTimedOut, HostUnreachable
from orchestrator.fleet.facts import FACTS, HostFacts, read_facts
from orchestrator.fleet.facts.model import plain_values
from orchestrator.fleet.host import Completed
from tests.contract.fakes import FakeHost

CASES = sorted((Path(__file__).parents[1] / "cases" / "facts").glob("*.json"))
BY_NAME = {fact.name: fact for fact in FACTS}


@pytest.mark.parametrize("file", CASES, ids=lambda f: f.stem)
def test_an_output_means(file: Path) -> None:
    case = json.loads(file.read_text())
    fact = BY_NAME[case["fact"]]
    done = Completed(
        argv=fact.argv, exit_code=case["exit_code"], stdout="\n".join(case["stdout"]), stderr=case["stderr"]
    )

    assert plain_values(dict(fact.parse(done))) == case["fields"]


@pytest.mark.parametrize("fact", FACTS, ids=lambda f: f.name)
@pytest.mark.parametrize("text", ["", "\n", "[N/A]\n", "Not Supported\n", "\x00\ufffd,,:::{]\n" * 3])
def test_no_output_breaks_a_parser(fact: Any, text: str) -> None:
    done = Completed(argv=fact.argv, exit_code=0, stdout=text, stderr="")

    HostFacts(host="h", read_at="now", **fact.parse(done))


def test_every_fact_is_argv_without_a_shell() -> None:
    assert [f.name for f in FACTS if f.argv[0] in {"sh", "bash"}] == []


def test_fact_names_are_unique() -> None:
    assert len(BY_NAME) == len(FACTS)


def test_a_bare_host_tells_nothing_and_nothing_is_zero() -> None:
    facts = read_facts(FakeHost("bare"))

    said = {k: v for k, v in facts.as_json().items() if v not in (None, [], {})}
    assert said.pop("docker")["problem"] == "absent"
    assert set(said.pop("memory").values()) == {None}
    assert said.keys() == {"host", "read_at"}


def test_a_late_fact_is_named_and_the_others_stand() -> None:
    host = FakeHost("spark01", files={"/proc/loadavg": "0.50 0 0\n"})
    host.fail(("fwupdmgr",), CommandTimedOut("spark01", "late"))

    facts = read_facts(host)

    assert (facts.unread, facts.load_1m) == (("firmware",), 0.5)


def test_a_host_that_is_away_is_an_error_said_once() -> None:
    host = FakeHost("spark01")
    host.unplug()

    with pytest.raises(HostUnreachable):
        read_facts(host)

    assert len(host.runs) == 1


def test_firmware_of_two_commands_is_joined() -> None:
    host = FakeHost("spark01")
    host.answer(("fwupdmgr",), stdout=json.dumps({"Devices": [{"Name": "EC", "Version": "2"}]}))
    host.answer(("find", "-L", "/sys/class/dmi/id"), stdout="/sys/class/dmi/id/bios_version:5.36\n")

    assert read_facts(host).firmware == {"EC": "2", "bios": "5.36"}


def test_free_disk_is_asked_where_docker_and_the_user_keep_things() -> None:
    host = FakeHost("spark01")
    host.answer(("printenv", "HOME"), stdout="/home/me\n")
    host.answer(("docker", "info"), stdout=json.dumps({"ServerVersion": "28", "DockerRootDir": "/data/docker"}))
    head = "Filesystem 1-blocks Used Available Capacity Mounted on\n"
    host.answer(("df", "-P", "-B1", "/data/docker"), stdout=f"{head}/dev/a 100 40 60 40% /data\n")
    host.answer(("df", "-P", "-B1", "/home/me"), stdout=f"{head}/dev/b 100 93 7 93% /\n")

    assert read_facts(host).disk_free_bytes == {"/data/docker": 60, "/home/me": 7}


def test_the_clock_is_compared_with_the_middle_of_the_round_trip() -> None:
    host = FakeHost("spark01")
    host.answer(("date",), stdout="1010.5\n")
    ours = iter((1000.0, 1001.0))

    assert read_facts(host, wall_clock=lambda: next(ours)).clock_ahead_s == 10.0


def test_facts_are_json() -> None:
    facts = read_facts(FakeHost("spark01"), wall_clock=time.time)

    assert json.loads(json.dumps(facts.as_json())) == facts.as_json()
