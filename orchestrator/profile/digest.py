"""What a profile comes to: its identity, its plain form, and what sets it apart from another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from orchestrator.profile.model import (
    ContainerSettings,
    GateChoice,
    GeneratedKey,
    ModelRef,
    Profile,
    SecretRef,
)
from orchestrator.values import Json, digest

_PROVENANCE = frozenset({"lineage", "source"})
NOT_IN_DIGEST = frozenset(
    {*("title", "note", "gates", "workloads", "ready"), *("engine_version", "attach_container", "silence")}
)
"""Keys that change what is said, asked or waited for, not what runs."""
NOT_A_DIFFERENCE = frozenset({"name", "title", "note"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One setting that two profiles give differently; None: not set there."""

    path: str
    before: Json
    after: Json


def as_json(profile: Profile) -> dict[str, Json]:
    """The profile as plain JSON in the words of a profile file, defaults filled in, what is not declared left out.

    Where it was read from (`source`, `lineage`) is not part of it. `building.build_profile` is the inverse.
    """
    plain = {f.name: _plain(getattr(profile, f.name)) for f in fields(profile) if f.name not in _PROVENANCE}
    return {key: value for key, value in plain.items() if value not in (None, {}, [])}


def profile_digest(profile: Profile) -> str:
    """16 hex digits over everything that changes what runs (NOT_IN_DIGEST and provenance excluded)."""
    return digest({key: value for key, value in as_json(profile).items() if key not in NOT_IN_DIGEST})


def differences(parent: Profile, child: Profile) -> tuple[Difference, ...]:
    """What the child changes, by dotted path; lists count as one value, names and remarks do not count."""
    before, after = _flat(as_json(parent)), _flat(as_json(child))
    return tuple(
        Difference(path=path, before=before.get(path), after=after.get(path))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    )


def _plain(value: Any) -> Json:
    if isinstance(value, SecretRef):
        return {"secret": value.name}
    if isinstance(value, GeneratedKey):
        return "generate"
    if isinstance(value, ContainerSettings):
        return _filled(value) | {"ipc": value.ipc or "default"}
    if isinstance(value, GateChoice):
        return value.suite if value.is_unmodified else _filled(value)
    if isinstance(value, ModelRef) and value.repo is not None and _filled(value) == {"repo": value.repo}:
        return value.repo
    if hasattr(value, "__dataclass_fields__"):
        return _filled(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple | list) else value


def _filled(value: Any) -> dict[str, Json]:
    plain = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return {key: inner for key, inner in plain.items() if inner not in (None, {}, [])}


def _flat(value: Mapping[str, Json]) -> dict[str, Json]:
    shorthands = {"model": "repo", "gates": "suite"}
    long = {key: {shorthands[key]: v} if key in shorthands and isinstance(v, str) else v for key, v in value.items()}
    return {path: inner for path, inner in _leaves("", long) if path not in NOT_A_DIFFERENCE}


def _leaves(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    else:
        yield path, value
