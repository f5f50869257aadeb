"""What a text is, by its content: a recipe, a compose file, a `docker run`, a unit, a manifest, or a bare command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import InputError
from orchestrator.foreign.command import looks_like_command
from orchestrator.foreign.compose import looks_like_compose
from orchestrator.foreign.docker_run import looks_like_docker_run
from orchestrator.foreign.k8s import looks_like_k8s
from orchestrator.foreign.lenient_yaml import Read, read_lenient
from orchestrator.foreign.recipes import is_recipe
from orchestrator.foreign.seeming import is_template
from orchestrator.foreign.systemd import looks_like_systemd
from orchestrator.foreign.tolerant_yaml import load_tolerant

RECIPE, COMPOSE, K8S, SYSTEMD, DOCKER_RUN, COMMAND = "recipe", "compose", "k8s", "systemd", "docker-run", "command"
SUPPORTED = (
    "a sparkrun or spark-vllm-docker recipe, a compose file, a `docker run` line, a systemd unit, a Kubernetes "
    "manifest, or a bare `vllm serve …`, `sglang serve …` or `llama-server …`"
)
_YAML_START = re.compile(r"^[A-Za-z_\"'][\w.\" '-]*:(?:\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """The kind of a text; `read`: its YAML, for a recipe."""

    kind: str
    read: Read | None = None


def recognise(text: str, source: str) -> Recognised | None:
    """What the text is, None when it is no configuration.

    Raises:
        InputError: It is one that gate0 makes no profile of: it says what it is, and what to do instead.
    """
    if looks_like_systemd(text):
        return Recognised(kind=SYSTEMD)
    if is_template(text):
        return None
    if _YAML_START.search(text) or text.lstrip().startswith("{"):
        found = _of_document(text, source)
        if found is not None:
            return found
    if text.lstrip()[:1] in {"{", "["}:
        return None
    if looks_like_docker_run(text):
        return Recognised(kind=DOCKER_RUN)
    return Recognised(kind=COMMAND) if looks_like_command(text) else None


def _of_document(text: str, source: str) -> Recognised | None:
    try:
        read = read_lenient(text, source)
    except InputError:
        return Recognised(kind=COMPOSE) if looks_like_compose(text) and _is_tolerable(text, source) else None
    value = read.value
    if not isinstance(value, Mapping) or str(value.get("format", "")).startswith("gate0-"):
        return None
    if isinstance(value.get("services"), Mapping):
        return Recognised(kind=COMPOSE)
    if looks_like_k8s(text):
        return Recognised(kind=K8S)
    _refuse_others(value, source)
    return Recognised(kind=RECIPE, read=read) if is_recipe(value) else None


def _is_tolerable(text: str, source: str) -> bool:
    """YAML, but for tags: `!reset`, `!override`."""
    try:
        load_tolerant(text, source)
    except InputError:
        return False
    return True


def _is_profile(value: Mapping[Any, Any]) -> bool:
    """A profile of gate0's own, whole or one that only says what it changes of its parent."""
    if {"recipe_version", "runtime", "command"} & set(value) and not isinstance(value.get("serve"), Mapping):
        return False
    is_whole = "engine" in value and "name" in value and not isinstance(value.get("container"), str)
    return is_whole or ("extends" in value and "name" in value and "command" not in value)


def _refuse_others(value: Mapping[Any, Any], source: str) -> None:
    if _is_profile(value):
        raise InputError(f"{source} is a profile of gate0's own", hint=f"check it with `gate0 validate {source}`")
    if "framework" in value and "args" in value and "model" not in value and "command" not in value:
        raise InputError(
            f"{source} says how to measure ({value['framework']}), not what to serve",
            hint="that is a workload: `gate0 docs` shows how one is written, and profiles/workloads has some",
        )
