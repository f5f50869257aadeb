"""`docker info --format {{json .}}` as the `Docker` fact: what it says, or why it says nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.fleet.facts.model import Docker
from orchestrator.fleet.host import Completed


def docker_fact(done: Completed) -> Docker:
    """The fact from the ended command: the daemon's refusal is in stdout (`ServerErrors`) or on stderr."""
    if done.exit_code == 127:
        return Docker(problem="absent")
    info = _object(done.stdout)
    errors = info.get("ServerErrors")
    said = " ".join(str(e) for e in errors) if isinstance(errors, list) else ""
    said = said or ("" if info.get("ServerVersion") else done.stderr.strip())
    if said or not info.get("ServerVersion"):
        return Docker(problem=_problem(said or f"exit code {done.exit_code}"))
    runtimes = info.get("Runtimes")
    running = info.get("ContainersRunning")
    return Docker(
        version=str(info["ServerVersion"]),
        containers_running=running if isinstance(running, int) else None,
        root=_text(info, "DockerRootDir"),
        storage_driver=_text(info, "Driver"),
        runtimes=tuple(sorted(runtimes)) if isinstance(runtimes, dict) else (),
    )


def _problem(said: str) -> str:
    """Docker has no codes for these: its client's own sentences, the same since 1.13."""
    lower = said.lower()
    if "permission denied" in lower:
        return "no_permission"
    if "cannot connect to the docker daemon" in lower or "is the docker daemon running" in lower:
        return "not_running"
    return said.splitlines()[-1]


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _text(info: Mapping[str, Any], key: str) -> str | None:
    value = info.get(key)
    return str(value) if value else None
