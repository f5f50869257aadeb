"""A recipe's `executor_config` and `volumes` as container settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.foreign.container_parts import size_gib, ulimit
from orchestrator.foreign.lenient_yaml import Read
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.recipe_keys import shown
from orchestrator.profile.model import Mount
from orchestrator.profile.short_forms import mount_from

_DROPPED = {
    "auto_remove": "gate0 removes the container itself, once its log is saved",
    "labels": "gate0 sets its own labels: they say what it started",
    "privileged": "gate0 starts no privileged containers; the GPU does not need it",
    "user": "the image's own user runs the server",
    "security_opt": "gate0 keeps Docker's own settings",
    "memory_limit": "the driver allocates outside the container's limit on a DGX Spark: it would not hold",
}
_PERSON = {
    "devices": "gate0 hands over GPUs only: a server on two Sparks then speaks TCP instead of RDMA, unless the daemon "
    "gives it the device",
    "cap_add": "gate0 adds no capabilities: `ulimits: {memlock: -1}` is what IPC_LOCK is usually for",
}


@dataclass(slots=True, kw_only=True)
class Settings:
    """Container settings as far as the recipe states them."""

    network: str | None = None
    ipc: str | None = None
    shm_gib: float | None = None
    restart: str | None = None
    gpus: str | None = None
    entrypoint: tuple[str, ...] | None = None
    ulimits: dict[str, int] = field(default_factory=dict)
    mounts: list[Mount] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def read_settings(recipe: Mapping[str, Any], read: Read) -> Settings:
    """What `executor_config` and `volumes` say, and a note for what the profile cannot."""
    settings = Settings()
    executor = recipe.get("executor_config")
    for key, value in (executor if isinstance(executor, Mapping) else {}).items():
        _take(settings, str(key), value, read.where("executor_config", str(key)))
    for volume in _volumes(recipe):
        _take_volume(settings, volume, read.where("volumes"))
    return settings


def _take(settings: Settings, key: str, value: Any, where: str) -> None:
    note = _note(shown(key, value), where)
    if value is None:
        return
    if key in {"network", "ipc", "gpus"}:
        setattr(settings, key, str(value))
        settings.notes.append(note(Fate.KEPT, f"container.{key}"))
    elif key == "restart_policy":
        settings.restart = str(value)
    elif key == "shm_size":
        settings.shm_gib = size_gib(str(value))
        if settings.shm_gib is None:
            settings.notes.append(note(Fate.PERSON, "not a size"))
    elif key == "entrypoint":
        settings.entrypoint = tuple(str(w) for w in value) if isinstance(value, list) else tuple(str(value).split())
    elif key in {"ulimit", "ulimits"}:
        for item in value if isinstance(value, list) else [value]:
            _take_ulimit(settings, str(item), _note(f"ulimit: {item}", where))
    elif key in {"volumes", "mounts"}:
        for item in value if isinstance(value, list) else [value]:
            _take_volume(settings, str(item), where)
    else:
        is_no = value in (False, [], "", {})
        fate, why = (Fate.DROPPED, _DROPPED[key]) if key in _DROPPED else (Fate.PERSON, _PERSON.get(key, "not known"))
        settings.notes.append(note(Fate.DROPPED, "says nothing") if is_no else note(fate, why))


def _take_ulimit(settings: Settings, item: str, note: Any) -> None:
    limits = ulimit(item.strip())
    if not limits:
        settings.notes.append(note(Fate.PERSON, f"`{item}` is no limit"))
        return
    settings.ulimits.update(limits)
    why = ", ".join(f"container.ulimits.{name}: {limit}" for name, limit in limits.items())
    settings.notes.append(note(Fate.TRANSLATED, why))


def _take_volume(settings: Settings, volume: str, where: str) -> None:
    try:
        mount = mount_from(volume)
    except ValueError as exc:
        note = Note(fate=Fate.PERSON, what=shown("volume", volume), where=where, why=str(exc))
    else:
        settings.mounts.append(mount)
        note = Note(fate=Fate.TRANSLATED, what=shown("volume", volume), where=where, why="container.mounts")
    settings.notes.append(note)


def _volumes(recipe: Mapping[str, Any]) -> Iterator[str]:
    given = recipe.get("volumes")
    for item in given if isinstance(given, list) else []:
        yield str(item)
    if isinstance(given, Mapping):
        yield from (f"{source}:{target}" for source, target in given.items())


def _note(what: str, where: str) -> Any:
    def make(fate: Fate, why: str) -> Note:
        return Note(fate=fate, what=what, where=where, why=why)

    return make
