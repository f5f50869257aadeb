"""A profile and its command line as one server to start, and the `docker run` line that says the same.

The line is for people: the plan prints it, and it can be pasted. Docker itself is given the `ServerSpec`.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence

from orchestrator.deploy.runtime import (
    LABEL_DIGEST,
    LABEL_ENGINE,
    LABEL_PORT,
    LABEL_PROFILE,
    LABEL_RANK,
    LABEL_RUN,
    LABEL_SERVED,
    ServerSpec,
)
from orchestrator.engines.engine import EngineCommand
from orchestrator.profile.model import Mount, Port, Profile, RuntimeKind
from orchestrator.values import Secret

GIB = 1024**3
UNPUBLISHED = ("host", "none")
"""Networks on which nothing is published: the host's own, and none at all."""


def server_spec(
    profile: Profile,
    command: EngineCommand,
    *,
    rank: int,
    run_id: str,
    digest: str,
    env: Mapping[str, str | Secret],
    gpus: bool,
    home: str,
) -> ServerSpec:
    """One rank's server, complete.

    Args:
        env: Everything that the server gets, resolved: the profile's, the engine module's, the API key.
        gpus: The host has GPUs that the runtime can give; `container.gpus: all` and `none` stand over it.
        home: The SSH user's home on the host, which `~` in a mount stands for.
    """
    settings = profile.container
    in_docker = profile.runtime is RuntimeKind.DOCKER
    return ServerSpec(
        name=server_name(profile, rank),
        image=(profile.image if in_docker else profile.binary) or "",
        entrypoint=(command.entrypoint or settings.entrypoint) if in_docker else None,
        command=command.argv,
        env=dict(env),
        labels=_labels(profile, command, rank=rank, run_id=run_id, digest=digest),
        network=settings.network if in_docker else "host",
        ipc=settings.ipc if in_docker else None,
        shm_bytes=int(settings.shm_gib * GIB) if settings.shm_gib is not None and in_docker else None,
        mounts=tuple(_at_home(mount, home) for mount in settings.mounts) if in_docker else (),
        ports=_published(profile, command) if in_docker else (),
        ulimits=dict(settings.ulimits) if in_docker else {},
        gpus=in_docker and {"auto": gpus, "all": True, "none": False}[settings.gpus],
        restart=settings.restart,
    )


def server_name(profile: Profile, rank: int = 0) -> str:
    """`gate0-<profile>`, with the rank when one engine spans several hosts."""
    name = f"gate0-{re.sub(r'[^A-Za-z0-9_.-]', '-', profile.name)}"
    return f"{name}-{rank}" if profile.nodes > 1 else name


def reachable_port(profile: Profile, command: EngineCommand) -> int:
    """The port on the host that reaches the server: another than it listens on when the profile publishes it so."""
    if profile.runtime is RuntimeKind.PROCESS or profile.container.network in UNPUBLISHED:
        return command.port
    return next((p.host for p in profile.container.ports if p.container == command.port), command.port)


def docker_run_argv(spec: ServerSpec) -> tuple[str, ...]:
    """The `docker run -d …` line that starts the same container.

    A secret is named, not shown: `-e HF_TOKEN` takes the value from the environment of who pastes the line.
    """
    first, *rest = spec.entrypoint or ("",)
    return (
        *("docker", "run", "-d", "--name", spec.name),
        *(("--gpus", "all") if spec.gpus else ()),
        *((f"--ipc={spec.ipc}",) if spec.ipc else ()),
        *("--network", spec.network),
        *(("--shm-size", str(spec.shm_bytes)) if spec.shm_bytes is not None else ()),
        *(word for name, limit in spec.ulimits.items() for word in ("--ulimit", f"{name}={limit}")),
        *(word for mount in spec.mounts for word in ("-v", _mount_word(mount))),
        *(word for port in spec.ports for word in ("-p", _port_word(port))),
        *(word for name, value in spec.env.items() for word in ("-e", _env_word(name, value))),
        *("--restart", spec.restart),
        *(word for name, value in spec.labels.items() for word in ("--label", f"{name}={value}")),
        *(("--entrypoint", first) if spec.entrypoint else ()),
        spec.image,
        *rest,
        *spec.command,
    )


def command_line(spec: ServerSpec, runtime: RuntimeKind) -> str:
    """The line that starts the same server by hand: `docker run …`, or the binary with its words.

    Secrets are left to the environment of who pastes the line.
    """
    if runtime is RuntimeKind.DOCKER:
        return display(docker_run_argv(spec))
    shown = tuple(f"{name}={value}" for name, value in spec.env.items() if not isinstance(value, Secret))
    return display((*shown, spec.image, *spec.command))


def display(argv: Sequence[str]) -> str:
    """Words as one line for a shell."""
    return shlex.join(argv)


def _labels(profile: Profile, command: EngineCommand, *, rank: int, run_id: str, digest: str) -> Mapping[str, str]:
    return {
        LABEL_RUN: run_id,
        LABEL_PROFILE: profile.name,
        LABEL_DIGEST: digest,
        LABEL_RANK: str(rank),
        LABEL_PORT: str(reachable_port(profile, command)),
        LABEL_ENGINE: profile.engine,
        **({LABEL_SERVED: profile.served_name} if profile.served_name else {}),
    }


def _published(profile: Profile, command: EngineCommand) -> tuple[Port, ...]:
    settings = profile.container
    if settings.network in UNPUBLISHED:
        return ()
    has_own = any(port.container == command.port for port in settings.ports)
    ports = settings.ports if has_own else (*settings.ports, Port(host=command.port, container=command.port))
    address = "127.0.0.1" if profile.expose == "loopback" else None
    return tuple(dataclasses.replace(port, address=port.address or address) for port in ports)


def _at_home(mount: Mount, home: str) -> Mount:
    if mount.source != "~" and not mount.source.startswith("~/"):
        return mount
    return dataclasses.replace(mount, source=home.rstrip("/") + mount.source[1:])


def _mount_word(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}:ro" if mount.read_only else f"{mount.source}:{mount.target}"


def _port_word(port: Port) -> str:
    return f"{port.address}:{port.host}:{port.container}" if port.address else f"{port.host}:{port.container}"


def _env_word(name: str, value: str | Secret) -> str:
    return name if isinstance(value, Secret) else f"{name}={value}"
