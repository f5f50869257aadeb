"""The runtime that a profile asks for, on a host."""

from __future__ import annotations

from orchestrator.deploy.runtime import Runtime
from orchestrator.fleet.host import Host
from orchestrator.profile.model import RuntimeKind


def open_runtime(kind: RuntimeKind, host: Host) -> Runtime:
    """Docker or plain processes; nothing is asked of the host yet."""
    if kind is RuntimeKind.PROCESS:
        from orchestrator.deploy.process import ProcessRuntime

        return ProcessRuntime(host)
    from orchestrator.deploy.docker import DockerRuntime

    return DockerRuntime(host)
