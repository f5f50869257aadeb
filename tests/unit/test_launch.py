"""A profile as one server to start, and the line that says the same."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import pytest

from orchestrator.deploy.launch import command_line, display, docker_run_argv, reachable_port, server_name, server_spec
from orchestrator.deploy.runtime import ServerSpec
from orchestrator.engines.engine import EngineCommand
from orchestrator.profile.model import ContainerSettings, Mount, Port, Profile, RuntimeKind
from orchestrator.values import Secret

PROFILE = Profile(
    name="small",
    engine="vllm",
    image="vllm/vllm-openai:v0.31.0",
    served_name="local",
    container=ContainerSettings(mounts=(Mount(source="~/.cache/hf", target="/root/.cache/hf"),)),
)
COMMAND = EngineCommand(argv=("org/m", "--port", "8000"), port=8000)
BRIDGE = ContainerSettings(network="bridge", ipc=None)


def spec(profile: Profile = PROFILE, **changes: Any) -> ServerSpec:
    arguments: dict[str, Any] = {
        "rank": 0,
        "run_id": "r1",
        "digest": "d1",
        "env": {"A": "1"},
        "gpus": True,
        "home": "/home/u",
        **changes,
    }
    return server_spec(profile, COMMAND, **arguments)


def following(words: tuple[str, ...], option: str) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == option]


def test_the_labels_say_whose_it_is_and_where_it_answers() -> None:
    assert spec().labels == {
        "dev.gate0.run": "r1",
        "dev.gate0.profile": "small",
        "dev.gate0.digest": "d1",
        "dev.gate0.rank": "0",
        "dev.gate0.port": "8000",
        "dev.gate0.engine": "vllm",
        "dev.gate0.served": "local",
    }


def test_a_home_in_a_mount_is_the_hosts() -> None:
    assert spec().mounts == (Mount(source="/home/u/.cache/hf", target="/root/.cache/hf"),)


@pytest.mark.parametrize(("nodes", "name"), [(1, "gate0-small"), (2, "gate0-small-1")])
def test_the_name_carries_the_rank_only_when_there_are_two(nodes: int, name: str) -> None:
    assert server_name(dataclasses.replace(PROFILE, nodes=nodes), 1) == name


@pytest.mark.parametrize(
    ("wish", "has_gpu", "given"),
    [("auto", True, True), ("auto", False, False), ("all", False, True), ("none", True, False)],
)
def test_gpus_are_asked_for_where_the_host_has_them_or_the_profile_insists(
    wish: Any, has_gpu: bool, given: bool
) -> None:
    profile = dataclasses.replace(PROFILE, container=ContainerSettings(gpus=wish))

    assert spec(profile, gpus=has_gpu).gpus is given


def test_a_process_has_nothing_of_a_container() -> None:
    process = dataclasses.replace(PROFILE, runtime=RuntimeKind.PROCESS, binary="/opt/vllm")

    made = spec(process)

    assert (made.image, made.command) == ("/opt/vllm", COMMAND.argv)
    assert (made.mounts, made.ports, made.ipc, made.gpus, made.network) == ((), (), None, False, "host")


def test_the_servers_port_is_published_when_a_network_stands_between() -> None:
    assert spec(dataclasses.replace(PROFILE, container=BRIDGE)).ports == (Port(host=8000, container=8000),)


def test_nothing_is_published_on_the_hosts_own_network() -> None:
    assert spec().ports == ()


def test_a_declared_port_replaces_the_servers_own_number() -> None:
    mapped = dataclasses.replace(
        PROFILE, container=dataclasses.replace(BRIDGE, ports=(Port(host=9000, container=8000),))
    )

    assert spec(mapped).ports == (Port(host=9000, container=8000),)
    assert reachable_port(mapped, COMMAND) == 9000
    assert spec(mapped).labels["dev.gate0.port"] == "9000"


def test_loopback_publishes_on_loopback_only() -> None:
    closed = dataclasses.replace(PROFILE, container=BRIDGE, expose="loopback")

    words = docker_run_argv(spec(closed))

    assert following(words, "-p") == ["127.0.0.1:8000:8000"]


def test_a_secret_is_named_and_never_shown() -> None:
    made = spec(env={"HF_TOKEN": Secret("HF_TOKEN", "hf_abc"), "A": "1"})

    words = docker_run_argv(made)

    assert following(words, "-e") == ["HF_TOKEN", "A=1"]
    assert "hf_abc" not in display(words)


def test_the_line_is_complete_and_ends_with_image_and_words() -> None:
    assert docker_run_argv(dataclasses.replace(spec(), labels={"k": "v"})) == (
        *("docker", "run", "-d", "--name", "gate0-small", "--gpus", "all", "--ipc=host", "--network", "host"),
        *("-v", "/home/u/.cache/hf:/root/.cache/hf", "-e", "A=1", "--restart", "no", "--label", "k=v"),
        *("vllm/vllm-openai:v0.31.0", "org/m", "--port", "8000"),
    )


def test_an_entrypoint_of_several_words_keeps_their_order() -> None:
    settings = ContainerSettings(entrypoint=("python3", "-m", "server"))

    words = docker_run_argv(spec(dataclasses.replace(PROFILE, container=settings)))

    assert following(words, "--entrypoint") == ["python3"]
    assert words[-5:] == ("-m", "server", "org/m", "--port", "8000")


def test_shared_memory_limits_and_read_only_mounts_are_in_the_line() -> None:
    settings = ContainerSettings(
        ipc=None,
        shm_gib=10,
        ulimits={"memlock": -1},
        mounts=(Mount(source="/models", target="/models", read_only=True),),
    )

    words = docker_run_argv(spec(dataclasses.replace(PROFILE, container=settings)))

    assert following(words, "--shm-size") == [str(10 * 1024**3)]
    assert following(words, "--ulimit") == ["memlock=-1"]
    assert following(words, "-v") == ["/models:/models:ro"]
    assert not any(word.startswith("--ipc") for word in words)


def test_the_shown_line_reads_back_to_the_same_words() -> None:
    words = ("vllm", "--speculative-config", '{"method":"mtp","num_speculative_tokens":1}', "a b", "it's")

    assert tuple(shlex.split(display(words))) == words


def test_a_process_is_shown_as_its_own_words_without_docker_and_without_secrets() -> None:
    profile = dataclasses.replace(PROFILE, image=None, binary="/opt/vllm", runtime=RuntimeKind.PROCESS)

    line = command_line(spec(profile, env={"A": "1", "KEY": Secret("KEY", "hidden")}), RuntimeKind.PROCESS)

    assert line == "A=1 /opt/vllm org/m --port 8000"
