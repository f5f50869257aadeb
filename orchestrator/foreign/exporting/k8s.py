"""One Kubernetes Deployment with the same words: `args` after the image's own entrypoint, `command` in its place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from orchestrator.deploy.runtime import ServerSpec
from orchestrator.foreign.exporting.common import (
    Exported,
    ExportedFile,
    Rank,
    Subject,
    Unsaid,
    common_unsaid,
    header,
    option_rows,
    refuse_process,
    secrets_of,
)
from orchestrator.foreign.exporting.yaml_text import Rows, Value, document
from orchestrator.profile.model import Mount, PullPolicy
from orchestrator.values import Secret

FORM = "k8s"
HOME = "/HOME"
"""Stands for the home directory in a hostPath: Kubernetes knows none."""
PROBE_EVERY_S = 10
MIB = 1024**2
_PULLS = {PullPolicy.MISSING: "IfNotPresent", PullPolicy.ALWAYS: "Always", PullPolicy.NEVER: "Never"}


def export(subject: Subject) -> Exported:
    """One file with one Deployment; with several hosts one for each.

    Raises:
        InputError: The profile runs without Docker.
    """
    refuse_process(subject, FORM)
    unsaid = (*common_unsaid(subject), *_unsaid(subject))
    documents = [_document(subject, rank, unsaid if rank.number == 0 else ()) for rank in subject.ranks]
    return Exported(
        files=(ExportedFile(name=f"{subject.profile.name}.k8s.yaml", text="---\n".join(documents)),), unsaid=unsaid
    )


def _document(subject: Subject, rank: Rank, unsaid: Sequence[Unsaid]) -> str:
    comments = (*header(subject, rank, unsaid), *_usage(rank.spec))
    return "".join(f"# {line}".rstrip() + "\n" for line in comments) + document(_deployment(subject, rank))


def _usage(spec: ServerSpec) -> Iterator[str]:
    if secrets_of(spec):
        keys = ", ".join(sorted(set(secrets_of(spec).values())))
        yield f"before: kubectl create secret generic {label(spec.name)} --from-env-file=FILE, with the lines: {keys}"


def label(name: str) -> str:
    """A name as Kubernetes takes it: lower-case letters, digits and `-`, at most 63."""
    return re.sub(r"[^a-z0-9-]", "-", name.lower())[:63].strip("-")


def _deployment(subject: Subject, rank: Rank) -> dict[str, Value]:
    name = label(rank.spec.name)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 1,
            # Two of them would not fit into one box's memory side by side.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": _pod(subject, rank)},
        },
    }


def _pod(subject: Subject, rank: Rank) -> dict[str, Value]:
    spec = rank.spec
    is_direct = spec.network == "host"
    entries: dict[str, Value | None] = {
        "hostNetwork": True if is_direct else None,
        "dnsPolicy": "ClusterFirstWithHostNet" if is_direct else None,
        "hostIPC": True if spec.ipc == "host" else None,
        "containers": [_container(subject, rank)],
        "volumes": _volumes(spec) or None,
    }
    return {key: value for key, value in entries.items() if value is not None}


def _container(subject: Subject, rank: Rank) -> dict[str, Value]:
    spec = rank.spec
    mounts: list[Value] = [_mount(index, mount) for index, mount in enumerate(spec.mounts)]
    if spec.shm_bytes is not None:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    entries: dict[str, Value | None] = {
        "name": "server",
        "image": spec.image,
        "imagePullPolicy": _PULLS[subject.profile.pull],
        "command": None if spec.entrypoint is None else [_literal(word) for word in spec.entrypoint],
        "args": Rows(tuple(tuple(_literal(word) for word in row) for row in option_rows(spec.command))),
        "env": [_variable(spec, name, value) for name, value in spec.env.items()] or None,
        "ports": _ports(subject, rank) or None,
        "resources": {"limits": {"nvidia.com/gpu": 1}} if spec.gpus else None,
        "volumeMounts": mounts or None,
        "startupProbe": _probe(subject, rank),
    }
    return {key: value for key, value in entries.items() if value is not None}


def _literal(text: str) -> str:
    """Kubernetes writes `$(NAME)` over, and takes `$$` for one `$`."""
    return text.replace("$", "$$")


def _variable(spec: ServerSpec, name: str, value: str | Secret) -> Value:
    if isinstance(value, Secret):
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": label(spec.name), "key": value.name}}}
    return {"name": name, "value": _literal(value)}


def _ports(subject: Subject, rank: Rank) -> list[Value]:
    if not rank.spec.ports:
        return [{"containerPort": rank.command.port}] if rank.number == 0 else []
    return [
        {"containerPort": port.container, "hostPort": port.host, **({"hostIP": port.address} if port.address else {})}
        for port in rank.spec.ports
    ]


def _probe(subject: Subject, rank: Rank) -> Value | None:
    """A start may take `ready.timeout_s`: until then Kubernetes must not take it for dead. Rank 0 alone answers."""
    if rank.number:
        return None
    is_loopback = subject.profile.expose == "loopback" and rank.spec.network == "host"
    host: dict[str, Value] = {"host": "127.0.0.1"} if is_loopback else {}
    port: dict[str, Value] = {**host, "port": rank.command.port}
    asked: dict[str, Value] = {"httpGet": {"path": subject.health, **port}} if subject.health else {"tcpSocket": port}
    tries = math.ceil(subject.profile.ready.timeout_s / PROBE_EVERY_S)
    return {**asked, "periodSeconds": PROBE_EVERY_S, "failureThreshold": tries}


def _mount(index: int, mount: Mount) -> Value:
    read_only: dict[str, Value] = {"readOnly": True} if mount.read_only else {}
    return {"name": f"mount-{index}", "mountPath": mount.target, **read_only}


def _volumes(spec: ServerSpec) -> list[Value]:
    found: list[Value] = []
    for index, mount in enumerate(spec.mounts):
        if mount.source.startswith(("/", "~")):
            path = HOME + mount.source[1:] if mount.source.startswith("~") else mount.source
            # A file must not become a folder; without a type Kubernetes leaves the path to the container runtime.
            kind: dict[str, Value] = {} if PurePosixPath(path).suffix else {"type": "DirectoryOrCreate"}
            found.append({"name": f"mount-{index}", "hostPath": {"path": path, **kind}})
        else:
            found.append({"name": f"mount-{index}", "persistentVolumeClaim": {"claimName": mount.source}})
    if spec.shm_bytes is not None:
        found.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _size(spec.shm_bytes)}})
    return found


def _size(n_bytes: int) -> str:
    return f"{n_bytes // MIB}Mi" if n_bytes % MIB == 0 else str(n_bytes)


def _unsaid(subject: Subject) -> Iterator[Unsaid]:
    spec, profile = subject.ranks[0].spec, subject.profile
    if any(m.source == "~" or m.source.startswith("~/") for m in spec.mounts):
        yield Unsaid(path="container.mounts", message=f"put a home directory in the place of {HOME}")
    for mount in spec.mounts:
        if not mount.source.startswith(("/", "~")):
            yield Unsaid(path="container.mounts", message=f"{mount.source} must be there as a PersistentVolumeClaim")
    if spec.ulimits:
        yield Unsaid(path="container.ulimits", message="Kubernetes sets none; they are the container runtime's")
    if spec.network not in {"host", "bridge"}:
        yield Unsaid(path="container.network", message=f"{spec.network}: the pod gets the cluster's network")
    if spec.ipc not in {None, "host", "private"}:
        yield Unsaid(path="container.ipc", message=f"{spec.ipc}: the pod gets its own")
    if spec.restart != "always":
        yield Unsaid(path="container.restart", message=f"{spec.restart}: a Deployment always starts its server again")
    if profile.nodes > 1:
        yield Unsaid(
            path="nodes", message=f"{profile.nodes} Deployments, which Kubernetes neither places nor ends together"
        )
