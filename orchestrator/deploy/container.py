"""A server as Docker's API wants it and tells it: values in, values out, no daemon needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from orchestrator.deploy.runtime import LABEL_RUN, Question, Server, ServerSpec
from orchestrator.profile.model import Mount, Port
from orchestrator.values import Secret

_NEVER = "0001-01-01T00:00:00Z"


class GpuRoad(StrEnum):
    """How this daemon hands out NVIDIA GPUs."""

    RUNTIME = "runtime"
    CDI = "cdi"
    NONE = "none"


def gpu_road(engine: Mapping[str, Any], *, has_hook: bool) -> GpuRoad:
    """Read it from the daemon's own description (`GET /info`).

    Args:
        has_hook: `nvidia-container-runtime-hook` is on the host's PATH: with it alone, and no runtime registered,
            dockerd serves `--gpus` too.
    """
    if has_hook or "nvidia" in (engine.get("Runtimes") or {}):
        return GpuRoad.RUNTIME
    devices = engine.get("DiscoveredDevices") or ()
    if any(str(device.get("ID", "")).startswith("nvidia.com/gpu") for device in devices):
        return GpuRoad.CDI
    return GpuRoad.NONE


def container_body(spec: ServerSpec, *, home: str, gpus: GpuRoad) -> dict[str, Any]:
    """The body of `POST /containers/create`; secrets are in its Env, in clear.

    Args:
        home: What `~` in a mount's source stands for on the host.
        gpus: How to ask for GPUs if the spec wants them.
    """
    body: dict[str, Any] = {
        "Image": spec.image,
        "Env": [f"{name}={_clear(value)}" for name, value in spec.env.items()],
        "Labels": dict(spec.labels),
        "HostConfig": _host_config(spec, home, gpus),
    }
    if spec.command:
        body["Cmd"] = list(spec.command)
    if spec.entrypoint is not None:
        body["Entrypoint"] = list(spec.entrypoint)
    if spec.ports:
        body["ExposedPorts"] = {f"{port.container}/tcp": {} for port in spec.ports}
    return body


def question_spec(question: Question, *, token: str) -> ServerSpec:
    """A container that answers one question; `void` keeps a default NVIDIA runtime from giving it the GPUs."""
    return ServerSpec(
        name=f"gate0-question-{token}",
        image=question.image,
        entrypoint=question.entrypoint,
        command=question.words,
        env={"NVIDIA_VISIBLE_DEVICES": "void"},
        labels={LABEL_RUN: question.owner},
        network="none",
    )


def question_body(spec: ServerSpec) -> dict[str, Any]:
    """The body of its `POST /containers/create`. Its log is a file: a daemon's default may be one without reading."""
    body = container_body(spec, home="", gpus=GpuRoad.NONE)
    body["HostConfig"]["LogConfig"] = {"Type": "json-file", "Config": {}}
    return body


def mount_source(mount: Mount, home: str) -> str:
    """Where the mount comes from on the host, `~` resolved; a word without a slash names a volume."""
    if mount.source == "~" or mount.source.startswith("~/"):
        return home + mount.source[1:]
    return mount.source


def server_of(inspected: Mapping[str, Any], digest: str | None) -> Server:
    """A container as `GET /containers/ID/json` tells it."""
    state, config = inspected["State"], inspected["Config"]
    is_running = bool(state["Running"])
    has_ended = not is_running and state.get("Status") != "created"
    return Server(
        id=inspected["Id"],
        name=inspected["Name"].removeprefix("/"),
        image=config["Image"],
        image_digest=digest,
        labels=dict(config.get("Labels") or {}),
        is_running=is_running,
        exit_code=state["ExitCode"] if has_ended else None,
        oom_killed=bool(state.get("OOMKilled")),
        started_at=_time(state.get("StartedAt")),
        finished_at=_time(state.get("FinishedAt")),
        ports=_published((inspected.get("NetworkSettings") or {}).get("Ports") or {}),
        has_host_network=(inspected.get("HostConfig") or {}).get("NetworkMode") == "host",
        command=(*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())),
    )


def listed_server(listed: Mapping[str, Any]) -> Server:
    """A container as `GET /containers/json` tells it: no digest, no exit code, no times, no command."""
    return Server(
        id=listed["Id"],
        name=listed["Names"][0].removeprefix("/") if listed["Names"] else listed["Id"][:12],
        image=listed["Image"],
        image_digest=None,
        labels=dict(listed.get("Labels") or {}),
        is_running=listed["State"] == "running",
        ports=tuple(sorted({port["PublicPort"] for port in listed.get("Ports") or () if port.get("PublicPort")})),
        has_host_network=(listed.get("HostConfig") or {}).get("NetworkMode") == "host",
    )


def digest_of(inspected: Mapping[str, Any], image: str | None = None) -> str:
    """The registry digest of an image as `GET /images/NAME/json` tells it, or its id if it never saw a registry.

    Args:
        image: The name it was asked by: of several registries' digests, that one's counts.
    """
    digests = [str(one) for one in inspected.get("RepoDigests") or ()]
    repository = repository_of(image) if image else ""
    ranked = sorted(digests, key=lambda one: one.split("@")[0] != repository)
    return ranked[0].split("@")[1] if ranked else str(inspected["Id"])


def repository_of(image: str) -> str:
    """`registry:5000/name:tag@sha256:…` without tag and digest."""
    name = image.split("@", maxsplit=1)[0]
    head, colon, tail = name.rpartition(":")
    return head if colon and "/" not in tail else name


def _host_config(spec: ServerSpec, home: str, gpus: GpuRoad) -> dict[str, Any]:
    config: dict[str, Any] = {"NetworkMode": spec.network, "RestartPolicy": _restart(spec.restart)}
    if spec.ipc is not None:
        config["IpcMode"] = spec.ipc
    if spec.shm_bytes is not None:
        config["ShmSize"] = spec.shm_bytes
    if spec.mounts:
        config["Binds"] = [_bind(mount, home) for mount in spec.mounts]
    if spec.ports:
        config["PortBindings"] = _port_bindings(spec.ports)
    if spec.ulimits:
        config["Ulimits"] = [{"Name": name, "Soft": value, "Hard": value} for name, value in spec.ulimits.items()]
    if spec.gpus:
        config["DeviceRequests"] = [_device_request(gpus)]
    return config


def _port_bindings(ports: Sequence[Port]) -> dict[str, list[dict[str, str]]]:
    bindings: dict[str, list[dict[str, str]]] = {}
    for port in ports:
        binding = {"HostPort": str(port.host), **({"HostIp": port.address} if port.address else {})}
        bindings.setdefault(f"{port.container}/tcp", []).append(binding)
    return bindings


def _bind(mount: Mount, home: str) -> str:
    words = [mount_source(mount, home), mount.target, *(["ro"] if mount.read_only else [])]
    return ":".join(words)


def _restart(policy: str) -> dict[str, Any]:
    name, _, times = policy.partition(":")
    return {"Name": name, "MaximumRetryCount": int(times)} if times else {"Name": name}


def _device_request(gpus: GpuRoad) -> dict[str, Any]:
    if gpus is GpuRoad.CDI:
        return {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}
    return {"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}


def _published(ports: Mapping[str, Any]) -> tuple[int, ...]:
    """Of `{"8000/tcp": [{"HostIp": …, "HostPort": "8000"}]}` the host's ports."""
    return tuple(sorted({int(one["HostPort"]) for binding in ports.values() for one in binding or ()}))


def _clear(value: str | Secret) -> str:
    return value.value if isinstance(value, Secret) else value


def _time(stamp: str | None) -> str | None:
    return None if stamp in (None, "", _NEVER) else stamp
