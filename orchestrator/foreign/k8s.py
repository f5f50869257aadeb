"""Kubernetes manifests: each container of a Deployment, StatefulSet, Pod, … that one of the engines serves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from orchestrator.errors import InputError
from orchestrator.foreign import carrying
from orchestrator.foreign.found import Found
from orchestrator.foreign.k8s_pod import PodReader
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.programs import find_program
from orchestrator.foreign.shell.programs import ENGINES
from orchestrator.profile.yaml_lines import Node, load_document

FORM = "k8s"
_MANIFEST = re.compile(r"^apiVersion[ \t]*:", re.MULTILINE)
_KIND = re.compile(r"^kind[ \t]*:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
_WORKLOADS = frozenset(
    {
        *("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Job", "List", "CronJob"),
        *("InferenceService", "LeaderWorkerSet"),
    }
)
_PATHS = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec", "predictor"),
    ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
    ("spec",),
)
"""Where the kinds keep a pod's spec: a template's, KServe's predictor, a leader's (its workers take part), a Pod's."""

_MAX_DOCUMENTS = 100


def looks_like_k8s(text: str) -> bool:
    """True for a manifest with a workload."""
    return _MANIFEST.search(text) is not None and any(kind in _WORKLOADS for kind in _KIND.findall(text))


def read_k8s(text: str, *, source: str, values: Mapping[str, str] | None = None) -> Found:
    """Every container that one of the engines serves.

    Args:
        source: What the text is called in messages.
        values: Variables for `$(NAME)` that no container sets.

    Raises:
        InvalidFile: It is no YAML, with the line.
        InputError: It holds no workload, or a quote in a shell's text is never closed.
    """
    objects = [node for document in _documents(text, source) for node in _objects(document)]
    maps = {_name(node): node for node in objects if _kind(node) == "ConfigMap"}
    launches: list[Launch] = []
    notes: list[Note] = []
    carried = carrying.find(text)
    workloads = [node for node in objects if _kind(node) in _WORKLOADS and _pod(node) is not None]
    if not workloads:
        raise InputError(f"{source}: no workload with containers", hint="a Deployment, a StatefulSet or a Pod is read")
    for node in workloads:
        reader = PodReader(name=_name(node), source=source, config_maps=maps, values=values or {})
        for name, launch in reader.launches(_pod(node) or node, replicas=_replicas(node)):
            if carried is not None or _is_served(launch):
                launches.append(replace(launch, carried=carried))
            else:
                what = f"container {name}"
                where = f"{_kind(node)}.{_name(node)}"
                notes.append(
                    Note(fate=Fate.DROPPED, what=what, where=where, why="none of the three engines serves in it")
                )
    others = [node for node in objects if node not in workloads and _kind(node) != "ConfigMap"]
    notes.extend(_left_out(node) for node in others)
    return Found(launches=tuple(launches), notes=tuple(notes))


def _documents(text: str, source: str) -> Iterator[Node]:
    begin = 0
    lines = text.replace("\r\n", "\n").split("\n")
    ends = [number for number, row in enumerate(lines) if re.match(r"---(?:\s|$)", row)]
    for end in [*ends, len(lines)][:_MAX_DOCUMENTS]:
        part = lines[begin:end]
        if any(row.strip() and not row.lstrip().startswith("#") for row in part):
            yield load_document("\n" * begin + "\n".join(part), source).root
        begin = end + 1


def _objects(document: Node) -> Iterator[Node]:
    items = document.child("items")
    if _kind(document) == "List" and items is not None and isinstance(items.content, tuple):
        yield from items.content
    else:
        yield document


def _kind(node: Node) -> str:
    kind = node.child("kind")
    return (kind.written or "") if kind is not None else ""


def _name(node: Node) -> str:
    metadata = node.child("metadata")
    name = metadata.child("name") if metadata is not None else None
    return (name.written if name is not None else None) or "server"


def _pod(node: Node) -> Node | None:
    """The pod's spec: a Pod's own, or that of the template."""
    for path in _PATHS:
        found: Node | None = node
        for step in path:
            found = found.child(step) if found is not None else None
        if found is not None and found.child("containers") is not None:
            return found
    return None


def _replicas(node: Node) -> int:
    spec = node.child("spec")
    replicas = spec.child("replicas") if spec is not None else None
    return replicas.content if replicas is not None and isinstance(replicas.content, int) else 1


def _is_served(launch: Launch) -> bool:
    try:
        return find_program(launch).engine in ENGINES
    except InputError:
        return False


def _left_out(node: Node) -> Note:
    why = "gate0 starts the server alone"
    return Note(fate=Fate.DROPPED, what=f"{_kind(node)} {_name(node)}", where=f"line {node.place.line}", why=why)
