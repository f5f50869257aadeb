"""What stands in a server's way on a host, what goes, and what is used again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from orchestrator.deploy.memory import GIB
from orchestrator.deploy.preflight import Preflight, ProblemKind, judge
from orchestrator.deploy.runtime import LABEL_DIGEST, LABEL_PORT, LABEL_PROFILE, LABEL_RUN, Server, ServerSpec
from orchestrator.engines.engine import EngineCommand
from orchestrator.errors import NameTaken, PortTaken, PreflightFailed
from orchestrator.profile.model import Profile, Serve

PORT = 8000
PROFILE = Profile(name="big", engine="vllm", serve=Serve(memory_fraction=0.7))
LABELS = {LABEL_RUN: "r1", LABEL_PROFILE: "big", LABEL_DIGEST: "d1", LABEL_PORT: str(PORT)}
SPEC = ServerSpec(name="gate0-big-0", image="x:1", labels=LABELS)
OURS = Server(id="a", name=SPEC.name, image="x:1", image_digest=None, labels=LABELS, is_running=True)
OLDER = replace(OURS, labels=LABELS | {LABEL_DIGEST: "d0"})
THEIRS = Server(id="t", name="theirs", image="y:1", image_digest=None, labels={}, is_running=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    memory_total_bytes: int | None = 120 * GIB
    memory_available_bytes: int | None = 110 * GIB
    disk_free_bytes: int | None = 500 * GIB
    listening_ports: tuple[int, ...] | None = (22,)
    gpu_processes: tuple[object, ...] | None = None


def verdict(
    *existing: Server, facts: Facts | None = None, foreign: tuple[Server, ...] = (), spec: ServerSpec = SPEC
) -> Preflight:
    return judge(PROFILE, EngineCommand(argv=(), port=PORT), spec, facts or Facts(), existing, foreign)


def kinds(found: Preflight) -> list[ProblemKind]:
    return [problem.kind for problem in found.problems]


def test_an_empty_host_can_take_it() -> None:
    found = verdict()

    assert (found.problems, found.warnings, found.replaces, found.reuses) == ((), (), (), None)


def test_a_running_server_of_the_same_digest_is_used_again() -> None:
    found = verdict(OURS, facts=Facts(listening_ports=(PORT,), memory_available_bytes=20 * GIB))

    assert (found.reuses, found.replaces, found.problems) == (OURS, (), ())


@pytest.mark.parametrize("server", [OLDER, replace(OURS, is_running=False)], ids=["other digest", "ended"])
def test_ours_of_the_same_name_is_replaced(server: Server) -> None:
    found = verdict(server)

    assert (found.replaces, found.reuses, found.problems) == ((server,), None, ())


def test_ours_of_another_name_on_the_same_port_is_replaced() -> None:
    other = replace(OLDER, id="b", name="gate0-other-0")

    assert verdict(other, facts=Facts(listening_ports=(PORT,))).replaces == (other,)


def test_a_server_that_is_named_twice_is_replaced_once() -> None:
    assert verdict(OLDER, OLDER).replaces == (OLDER,)


def test_memory_that_the_replaced_one_holds_is_not_counted_against_it() -> None:
    assert verdict(OLDER, facts=Facts(memory_available_bytes=20 * GIB)).problems == ()


def test_ours_elsewhere_stays_and_is_mentioned() -> None:
    other = replace(OLDER, id="b", name="gate0-small-0", labels=LABELS | {LABEL_PORT: "8001", LABEL_PROFILE: "small"})

    found = verdict(other)

    assert found.replaces == ()
    assert found.warnings == ("gate0-small-0 (gate0, profile small) stays up beside it",)


def test_the_port_on_the_host_counts_not_the_one_inside() -> None:
    published = replace(SPEC, labels=LABELS | {LABEL_PORT: "9000"})

    assert kinds(verdict(spec=published, facts=Facts(listening_ports=(PORT,)))) == []
    assert kinds(verdict(spec=published, facts=Facts(listening_ports=(9000,)))) == [ProblemKind.PORT]


def test_a_host_that_could_tell_nothing_is_not_held_up() -> None:
    unknown = Facts(memory_total_bytes=None, memory_available_bytes=None, disk_free_bytes=None, listening_ports=None)

    assert verdict(facts=unknown).problems == ()


def test_containers_of_others_and_gpu_users_are_mentioned() -> None:
    found = verdict(foreign=(THEIRS,), facts=Facts(gpu_processes=(object(),)))

    assert found.problems == ()
    assert [line.split(":")[0] for line in found.warnings] == [
        "running beside it, not started by gate0",
        "on the GPU already",
    ]


def test_little_disk_is_a_warning_and_none_is_a_problem() -> None:
    assert "10 to 20 GiB" in verdict(facts=Facts(disk_free_bytes=5 * GIB)).warnings[0]
    assert kinds(verdict(facts=Facts(disk_free_bytes=GIB // 2))) == [ProblemKind.DISK]


def test_too_little_memory_for_vllm_is_a_problem() -> None:
    assert kinds(verdict(facts=Facts(memory_available_bytes=60 * GIB))) == [ProblemKind.MEMORY]


def test_a_taken_port_alone_is_raised_as_such() -> None:
    with pytest.raises(PortTaken, match="spark01: port 8000 is taken") as refusal:
        verdict(facts=Facts(listening_ports=(PORT,))).raise_for_problems("spark01")

    assert "ss -ltnp" in (refusal.value.hint or "")


@pytest.mark.parametrize("is_running", [True, False])
def test_a_name_that_others_hold_is_raised_as_such(is_running: bool) -> None:
    holder = replace(THEIRS, name=SPEC.name, is_running=is_running)

    with pytest.raises(NameTaken, match=r"gate0-big-0 is taken .* \(y:1\)"):
        verdict(holder).raise_for_problems("spark01")


def test_several_problems_are_told_together() -> None:
    found = verdict(facts=Facts(listening_ports=(PORT,), disk_free_bytes=0))

    with pytest.raises(PreflightFailed, match=r"port 8000 is taken .*; only 0\.0 GiB of disk"):
        found.raise_for_problems("spark01")


def test_without_problems_nothing_is_raised() -> None:
    verdict(OLDER, foreign=(THEIRS,)).raise_for_problems("spark01")
