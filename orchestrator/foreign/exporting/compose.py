"""A compose file: one service, its command as a list, `$` doubled so that compose leaves it alone."""

from __future__ import annotations

import re

from orchestrator.deploy.runtime import ServerSpec
from orchestrator.foreign.exporting.common import (
    Exported,
    ExportedFile,
    Rank,
    Subject,
    Unsaid,
    common_unsaid,
    header,
    mount_word,
    option_rows,
    plain_name,
    port_word,
    refuse_process,
)
from orchestrator.foreign.exporting.yaml_text import Rows, Value, document
from orchestrator.profile.model import PullPolicy
from orchestrator.values import Secret

FORM = "compose"
_OWN_NETWORKS = ("bridge",)
_MODES = ("host", "none")


def export(subject: Subject) -> Exported:
    """A file for each host.

    Raises:
        InputError: The profile runs without Docker.
    """
    refuse_process(subject, FORM)
    unsaid = tuple(common_unsaid(subject))
    return Exported(files=tuple(_file(subject, rank, unsaid) for rank in subject.ranks), unsaid=unsaid)


def _file(subject: Subject, rank: Rank, unsaid: tuple[Unsaid, ...]) -> ExportedFile:
    comments = (*header(subject, rank, unsaid if rank.number == 0 else ()), *_usage(rank.spec))
    text = "".join(f"# {line}".rstrip() + "\n" for line in comments)
    name = plain_name(subject.profile, rank.number)
    return ExportedFile(name=f"{name}.compose.yaml", text=text + document(_whole(subject, rank)))


def _usage(spec: ServerSpec) -> tuple[str, ...]:
    names = [value.name for value in spec.env.values() if isinstance(value, Secret)]
    return (f"before: set {', '.join(names)} in the environment, or in a file `.env` beside this one",) * bool(names)


def _whole(subject: Subject, rank: Rank) -> dict[str, Value]:
    spec = rank.spec
    volumes = [m.source for m in spec.mounts if not m.source.startswith(("/", "~"))]
    networks = [spec.network] * (spec.network not in (*_MODES, *_OWN_NETWORKS))
    return {
        "services": {_service_name(spec.name): _service(subject, spec)},
        # Without a name of its own compose would call it PROJECT_NAME.
        **({"volumes": {name: {"name": name} for name in volumes}} if volumes else {}),
        **({"networks": {name: {"external": True} for name in networks}} if networks else {}),
    }


def _service(subject: Subject, spec: ServerSpec) -> dict[str, Value]:
    pull = subject.profile.pull
    gpus: Value = {"resources": {"reservations": {"devices": [_ALL_GPUS]}}}
    entries: dict[str, Value | None] = {
        "image": _literal(spec.image),
        "container_name": spec.name,
        "pull_policy": None if pull is PullPolicy.MISSING else pull.value,
        "entrypoint": None if spec.entrypoint is None else [_literal(word) for word in spec.entrypoint],
        "command": Rows(tuple(tuple(_literal(word) for word in row) for row in option_rows(spec.command))),
        "environment": {name: _env_value(name, value) for name, value in spec.env.items()} or None,
        "network_mode": spec.network if spec.network in _MODES else None,
        "networks": [spec.network] if spec.network not in (*_MODES, *_OWN_NETWORKS) else None,
        "ipc": spec.ipc,
        "shm_size": spec.shm_bytes,
        "ulimits": dict(spec.ulimits) or None,
        "volumes": [mount_word(_source(m.source), _literal(m.target), read_only=m.read_only) for m in spec.mounts]
        or None,
        "ports": [port_word(port) for port in spec.ports] or None,
        "restart": None if spec.restart == "no" else spec.restart,
        "deploy": gpus if spec.gpus else None,
    }
    return {key: value for key, value in entries.items() if value is not None}


_ALL_GPUS: Value = {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


def _service_name(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", name.lower())


def _literal(text: str) -> str:
    return text.replace("$", "$$")


def _env_value(name: str, value: str | Secret) -> str:
    # With `:?` compose refuses to start without it, where a bare name would start a server without its token.
    return f"${{{value.name}:?set {name}}}" if isinstance(value, Secret) else _literal(value)


def _source(source: str) -> str:
    """A mount's source; `~` as a variable, which says by itself whose home it is."""
    return f"${{HOME}}{_literal(source[1:])}" if source == "~" or source.startswith("~/") else _literal(source)
