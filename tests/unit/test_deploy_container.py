"""Container bodies, image digests and log lines: Docker's words in and out, without a daemon."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.deploy.container import (
    GpuRoad,
    container_body,
    digest_of,
    gpu_road,
    repository_of,
    server_of,
)
from orchestrator.deploy.layers import LayerTally
from orchestrator.deploy.lines import LineSplitter, split_log
from orchestrator.deploy.runtime import LABEL_RUN, PullProgress, ServerSpec
from orchestrator.profile.model import Mount, Port
from orchestrator.values import Secret

SPEC = ServerSpec(name="serve", image="vllm/vllm-openai:v1", labels={LABEL_RUN: "r"})


def host_config(spec: ServerSpec, gpus: GpuRoad = GpuRoad.NONE) -> dict[str, Any]:
    body: dict[str, Any] = container_body(spec, home="/home/u", gpus=gpus)["HostConfig"]
    return body


def test_the_images_own_entrypoint_and_command_are_kept_unless_given() -> None:
    body = container_body(SPEC, home="", gpus=GpuRoad.NONE)

    assert body.keys() & {"Entrypoint", "Cmd"} == set()


def test_a_secret_is_clear_in_the_body_alone() -> None:
    spec = replace(SPEC, env={"A": "1", "TOKEN": Secret("TOKEN", "t0ken")})

    assert container_body(spec, home="", gpus=GpuRoad.NONE)["Env"] == ["A=1", "TOKEN=t0ken"]
    assert "t0ken" not in repr(spec)


def test_a_mount_may_start_at_home_or_name_a_volume() -> None:
    mounts = (Mount(source="~/.cache", target="/c", read_only=True), Mount(source="hub", target="/h"))

    assert host_config(replace(SPEC, mounts=mounts))["Binds"] == ["/home/u/.cache:/c:ro", "hub:/h"]


def test_a_port_may_be_published_on_one_address() -> None:
    ports = (Port(host=8000, container=80, address="127.0.0.1"), Port(host=8001, container=80))

    assert host_config(replace(SPEC, ports=ports))["PortBindings"] == {
        "80/tcp": [{"HostPort": "8000", "HostIp": "127.0.0.1"}, {"HostPort": "8001"}]
    }


@pytest.mark.parametrize(
    ("policy", "body"),
    [("no", {"Name": "no"}), ("on-failure:3", {"Name": "on-failure", "MaximumRetryCount": 3})],
)
def test_restart_policies_are_docker_runs(policy: str, body: dict[str, object]) -> None:
    assert host_config(replace(SPEC, restart=policy))["RestartPolicy"] == body


@pytest.mark.parametrize(
    ("road", "request_body"),
    [
        (GpuRoad.RUNTIME, {"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}),
        (GpuRoad.CDI, {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}),
    ],
)
def test_gpus_are_asked_for_by_the_road_that_the_daemon_has(road: GpuRoad, request_body: dict[str, object]) -> None:
    assert host_config(replace(SPEC, gpus=True), road)["DeviceRequests"] == [request_body]


def test_no_gpu_is_asked_for_unless_wanted() -> None:
    assert "DeviceRequests" not in host_config(SPEC, GpuRoad.RUNTIME)


@pytest.mark.parametrize(
    ("engine", "has_hook", "road"),
    [
        ({"Runtimes": {"runc": {}, "nvidia": {}}}, False, GpuRoad.RUNTIME),
        ({"Runtimes": {"runc": {}}}, True, GpuRoad.RUNTIME),
        ({"Runtimes": {}, "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}]}, False, GpuRoad.CDI),
        ({"Runtimes": {"runc": {}}, "CDISpecDirs": ["/etc/cdi"], "DiscoveredDevices": None}, False, GpuRoad.NONE),
    ],
)
def test_the_road_to_gpus_is_read_from_the_daemon(engine: dict[str, Any], has_hook: bool, road: GpuRoad) -> None:
    assert gpu_road(engine, has_hook=has_hook) is road


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("vllm/vllm-openai:v1", "vllm/vllm-openai"),
        ("10.66.0.1:5000/faulty", "10.66.0.1:5000/faulty"),
        ("10.66.0.1:5000/faulty:1@sha256:aa", "10.66.0.1:5000/faulty"),
    ],
)
def test_a_registrys_port_is_no_tag(image: str, repository: str) -> None:
    assert repository_of(image) == repository


def test_of_several_digests_that_of_the_asked_repository_counts() -> None:
    inspected = {"Id": "sha256:id", "RepoDigests": ["mirror/x@sha256:m", "vllm/x@sha256:v"]}

    assert digest_of(inspected, "vllm/x:1") == "sha256:v"


def test_an_image_that_saw_no_registry_is_known_by_its_id() -> None:
    assert digest_of({"Id": "sha256:id", "RepoDigests": []}, "x:1") == "sha256:id"


def test_a_container_that_was_never_started_has_no_exit_code() -> None:
    inspected = {
        "Id": "i",
        "Name": "/serve",
        "Config": {"Image": "x:1", "Labels": None},
        "State": {"Status": "created", "Running": False, "ExitCode": 0, "StartedAt": "0001-01-01T00:00:00Z"},
    }

    server = server_of(inspected, None)

    assert (server.name, server.exit_code, server.started_at, server.labels) == ("serve", None, None, {})


def test_a_pull_is_folded_over_its_layers() -> None:
    tally = LayerTally()
    for event in (
        {"status": "Pulling from library/x", "id": "latest"},
        {"status": "Already exists", "progressDetail": {}, "id": "a"},
        {"status": "Pulling fs layer", "progressDetail": {}, "id": "b"},
        {"status": "Downloading", "progressDetail": {"current": 40, "total": 100}, "id": "b"},
    ):
        tally.add(event)

    assert tally.progress == PullProgress(done_bytes=40, total_bytes=100, layers_done=1, layers=2, status="Downloading")


def test_a_layer_is_done_when_it_is_unpacked_not_when_it_is_loaded() -> None:
    tally = LayerTally()
    tally.add({"status": "Downloading", "progressDetail": {"current": 40, "total": 100}, "id": "b"})

    loaded = tally.add({"status": "Download complete", "progressDetail": {}, "id": "b"})
    unpacked = tally.add({"status": "Pull complete", "progressDetail": {}, "id": "b"})

    assert [(one.done_bytes, one.layers_done) for one in (loaded, unpacked)] == [(100, 0), (100, 1)]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_are_the_same_however_the_bytes_arrive(size: int) -> None:
    text = "one\ntwo\r\n\n\rLoading: 1%\rLoading: 2%\nthé end".encode()
    splitter = LineSplitter()

    lines = [line for at in range(0, len(text), size) for line in splitter.feed(text[at : at + size])]

    assert (*lines, *splitter.flush()) == ("one", "two", "", "Loading: 1%", "Loading: 2%", "thé end")


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert split_log(b"a\xff\n") == ("a�",)
