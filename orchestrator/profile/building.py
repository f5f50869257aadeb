"""From a checked document to plain values, and from plain values to a Profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.profile.model import (
    ContainerSettings,
    EnvValue,
    GateChoice,
    GeneratedKey,
    ModelRef,
    PrefixCheckpoint,
    Profile,
    PullPolicy,
    Ready,
    RuntimeKind,
    SecretRef,
    Serve,
    Speculative,
    Task,
)
from orchestrator.profile.short_forms import mount_from, port_from, word_text, words_from
from orchestrator.profile.yaml_lines import Document, Node
from orchestrator.values import Json

Plain = Mapping[str, Any]

_AS_TYPED = ("env", "args", "command")
"""Keys whose numbers and booleans are words for a command line: the text as typed counts, not its value."""
_SAME = frozenset(
    {
        *("name", "engine", "title", "note", "image", "engine_version", "served_name", "port", "expose", "binary"),
        *("attach", "attach_container", "slots", "nodes"),
    }
)
"""Keys that the model takes over as they are."""


def resolved_value(document: Document) -> dict[str, Json]:
    """The document as plain JSON: what `null` removed is gone, words of command lines and env are as typed."""
    root = document.root.content
    entries = root if isinstance(root, Mapping) else {}
    found = {key: _plain(node, as_typed=key in _AS_TYPED) for key, node in entries.items()}
    if isinstance(container := entries.get("container"), Node) and isinstance(container.content, Mapping):
        entrypoint = container.content.get("entrypoint")
        if entrypoint is not None and isinstance(inner := found["container"], dict):
            inner["entrypoint"] = _plain(entrypoint, as_typed=True)
    return {key: _without_nulls(value) for key, value in found.items() if value is not None and key != "extends"}


def build_profile(value: Plain, *, source: str | None = None, lineage: tuple[str, ...] = ()) -> Profile:
    """A profile from plain values that passed the schema and the rules; `digest.as_json` is its inverse."""
    same = {key: value[key] for key in _SAME if key in value}
    return Profile(
        **same,
        task=Task(value.get("task", Task.GENERATE)),
        runtime=RuntimeKind(value.get("runtime", RuntimeKind.DOCKER)),
        pull=PullPolicy(value.get("pull", PullPolicy.MISSING)),
        model=_model(value.get("model", {})),
        serve=_serve(value.get("serve", {})),
        flags=value.get("flags", {}),
        args=words_from(value.get("args", [])),
        env={name: _env_value(given) for name, given in value.get("env", {}).items()},
        command=words_from(value.get("command", [])),
        container=_container(value.get("container", {})),
        ready=Ready(**{key: float(seconds) for key, seconds in value.get("ready", {}).items()}),
        gates=_gates(value.get("gates", {})),
        workloads=tuple(value.get("workloads", ())),
        allow_unknown_flags=tuple(value.get("allow_unknown_flags", ())),
        refuse_added=tuple(value.get("refuse_added", ())),
        silence=tuple(value.get("silence", ())),
        lineage=lineage,
        source=source,
    )


def _model(given: str | Plain) -> ModelRef:
    return ModelRef(repo=given) if isinstance(given, str) else ModelRef(**given)


def _serve(given: Plain) -> Serve:
    settings = dict(given)
    if "prefix_checkpoint" in settings:
        settings["prefix_checkpoint"] = PrefixCheckpoint(**settings["prefix_checkpoint"])
    if "speculative" in settings:
        settings["speculative"] = Speculative(**settings["speculative"])
    if "api_key" in settings:
        key = settings["api_key"]
        settings["api_key"] = GeneratedKey() if key == "generate" else SecretRef(name=key["secret"])
    for name in ("memory_fraction", "memory_gib"):
        if name in settings:
            settings[name] = float(settings[name])
    return Serve(**settings)


def _env_value(given: Any) -> EnvValue:
    return SecretRef(name=given["secret"]) if isinstance(given, Mapping) else word_text(given)


def _container(given: Plain) -> ContainerSettings:
    ports = tuple(port_from(form) for form in given.get("ports", ()))
    shm_gib = given.get("shm_gib")
    ipc = given.get("ipc", "host" if shm_gib is None else "default")
    plain = {key: given[key] for key in ("restart", "gpus", "ulimits") if key in given}
    return ContainerSettings(
        **plain,
        network=given.get("network", "bridge" if ports else "host"),
        ipc=None if ipc == "default" else ipc,
        shm_gib=None if shm_gib is None else float(shm_gib),
        mounts=tuple(mount_from(form) for form in given.get("mounts", ())),
        ports=ports,
        entrypoint=_entrypoint(given.get("entrypoint", "keep")),
    )


def _entrypoint(given: str | list[Any]) -> tuple[str, ...] | None:
    if isinstance(given, str):
        return None if given == "keep" else (given,)
    return words_from(given)


def _gates(given: str | Plain) -> GateChoice:
    if isinstance(given, str):
        return GateChoice(suite=given)
    optional = tuple(given.get("optional", ()))
    return GateChoice(suite=given.get("suite", "gate0"), params=given.get("params", {}), optional=optional)


def _plain(node: Node, *, as_typed: bool) -> Json:
    if isinstance(node.content, Mapping):
        return {key: _plain(inner, as_typed=as_typed) for key, inner in node.content.items()}
    if isinstance(node.content, tuple):
        return [_plain(inner, as_typed=as_typed) for inner in node.content]
    return node.written if as_typed and node.content is not None else node.content


def _without_nulls(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value
