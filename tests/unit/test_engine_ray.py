"""vLLM over Ray on two hosts: what each rank is started with, and the two shell lines run by a real bash."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.deploy.launch import docker_run_argv, server_spec
from orchestrator.engines.engine import EngineCommand, Placement
from orchestrator.engines.registry import load_engines
from orchestrator.profile.building import build_profile
from orchestrator.profile.model import Profile
from orchestrator.values import Json

VLLM = load_engines()["vllm"]
ADDED = ("--host", "0.0.0.0", "--port", "8000", "--enable-prompt-tokens-details")
DOCUMENT: Mapping[str, Json] = {
    "name": "pair",
    "engine": "vllm",
    "image": "team/image:v1",
    "model": "org/m",
    "nodes": 2,
    "serve": {"tensor_parallel": 2},
    "flags": {"distributed-executor-backend": "ray"},
}
RANKS = (
    Placement(rank=0, nodes=2, address="10.0.0.1", master_address="10.0.0.1"),
    Placement(rank=1, nodes=2, address="10.0.0.2", master_address="10.0.0.1"),
)


def profile(**changes: Json) -> Profile:
    return build_profile({**DOCUMENT, **changes})


def commands(declared: Profile) -> tuple[EngineCommand, EngineCommand]:
    first, second = (VLLM.command(declared, place) for place in RANKS)
    return first, second


def test_rank_0_opens_the_cluster_and_serves_every_flag() -> None:
    command, _ = commands(profile())

    assert command.argv == (
        *("org/m", "--tensor-parallel-size", "2", "--distributed-executor-backend", "ray"),
        *ADDED,
    )
    assert command.entrypoint is not None
    assert (command.entrypoint[:2], command.entrypoint[3:]) == (("bash", "-c"), ("ray", "vllm", "serve"))
    assert command.env == {"VLLM_HOST_IP": "10.0.0.1", "RAY_memory_monitor_refresh_ms": "0"}


def test_the_other_rank_only_joins() -> None:
    _, command = commands(profile())

    assert command.argv == command.origins == ()
    assert command.entrypoint is not None
    assert command.entrypoint[3:] == ("ray", "10.0.0.1:6379")
    assert command.env == {"VLLM_HOST_IP": "10.0.0.2", "RAY_memory_monitor_refresh_ms": "0"}


@pytest.mark.parametrize(
    ("changes", "program"),
    [
        ({"container": {"entrypoint": ["python3", "-m", "vllm"]}}, ("python3", "-m", "vllm")),
        ({"image": "nvcr.io/nvidia/vllm:26.05-py3"}, ()),
    ],
)
def test_the_program_is_said_once(changes: dict[str, Json], program: tuple[str, ...]) -> None:
    command, _ = commands(profile(**changes))

    assert command.entrypoint is not None
    assert command.entrypoint[4:] == program


def test_ray_on_one_host_is_vllms_own_matter() -> None:
    command = VLLM.command(profile(nodes=1), Placement())

    assert command.entrypoint is None


def test_a_process_starts_no_ray() -> None:
    declared = profile(runtime="process", binary="vllm", image=None)

    assert ("nodes", "runtime: process starts no Ray; leave distributed-executor-backend out") in VLLM.problems(
        declared
    )


RAY = """#!/bin/sh
echo "ray $*" >> "$SEEN"
[ "$1" != health-check ] || [ -e "$UP" ]
"""


def run(command: EngineCommand, folder: Path, *, is_up: bool) -> tuple[int, list[str]]:
    """The container's own command with a `ray` and a `vllm` that only say what they were asked."""
    (folder / "ray").write_text(RAY)
    (folder / "vllm").write_text('#!/bin/sh\nfor word in "$@"; do echo "vllm: $word" >> "$SEEN"; done\n')
    (folder / "sleep").write_text("#!/bin/sh\n")
    for name in ("ray", "vllm", "sleep"):
        (folder / name).chmod(0o755)
    if is_up:
        (folder / "up").touch()
    seen = folder / "seen"
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "SEEN": str(seen), "UP": str(folder / "up")}
    env |= {name: str(value) for name, value in command.env.items()}
    argv = [*(command.entrypoint or ()), *command.argv]
    ended = subprocess.run(argv, env=env, timeout=60, check=False, capture_output=True)
    return ended.returncode, seen.read_text().splitlines()


def test_a_shell_starts_the_cluster_first_and_hands_the_words_on(tmp_path: Path) -> None:
    command, _ = commands(profile(flags={"distributed-executor-backend": "ray", "hf-overrides": {"a b": "it's"}}))

    code, seen = run(command, tmp_path, is_up=False)

    assert code == 0
    assert seen[0] == "ray start --head --disable-usage-stats --node-ip-address=10.0.0.1 --port=6379"
    assert seen[1:] == [f"vllm: {word}" for word in ("serve", *command.argv)]


def test_a_shell_joins_once_the_cluster_answers(tmp_path: Path) -> None:
    _, command = commands(profile())

    code, seen = run(command, tmp_path, is_up=True)

    assert code == 0
    assert seen == [
        "ray health-check --address=10.0.0.1:6379",
        "ray start --block --disable-usage-stats --node-ip-address=10.0.0.2 --address=10.0.0.1:6379",
    ]


def test_a_cluster_that_never_answers_ends_the_rank(tmp_path: Path) -> None:
    _, command = commands(profile())

    code, seen = run(command, tmp_path, is_up=False)

    assert code == 1
    assert seen == ["ray health-check --address=10.0.0.1:6379"] * 300


def test_the_line_for_people_says_the_same() -> None:
    declared = profile()
    command, _ = commands(declared)
    spec = server_spec(declared, command, rank=0, run_id="R", digest="D", env={}, gpus=False, home="~")

    argv = docker_run_argv(spec)

    assert argv[argv.index("--entrypoint") + 1] == "bash"
    assert argv[argv.index("team/image:v1") + 1 :] == (*(command.entrypoint or ())[1:], *command.argv)
