"""Container settings and variables of a launch as a profile has them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from orchestrator.foreign.hiding import is_secret
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.profile.model import EnvValue, Mount, Port, SecretRef
from orchestrator.profile.short_forms import mount_from
from orchestrator.values import Json

LAUNCHERS = frozenset({"sparkrun", "spark-vllm-docker"})
"""Tools whose recipes count a GPU a host, and mount the hub's cache themselves."""

ON_THE_HOST = LAUNCHERS | {"command"}
"""Forms that mean the host's network and its shared memory, as gate0 does by default."""

_RESTARTS = ("no", "on-failure", "always", "unless-stopped")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True, kw_only=True)
class Kept:
    """Part of a document, and what is to be said of it."""

    document: dict[str, Json] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def note(self, fate: Fate, what: str, where: str, why: str) -> None:
        self.notes.append(Note(fate=fate, what=what, where=where, why=why))


def container(launch: Launch, entrypoint: tuple[str, ...] | None) -> Kept:
    """The `container` mapping, without what is gate0's default anyway.

    Args:
        entrypoint: What replaces the image's own; None keeps it.
    """
    kept = Kept()
    _network(launch, kept)
    _memory(launch, kept)
    mounts = [text for mount in launch.mounts if (text := _mount(mount, kept)) is not None]
    if mounts:
        kept.document["mounts"] = mounts
    if launch.ulimits:
        kept.document["ulimits"] = dict(launch.ulimits)
    if entrypoint is not None:
        kept.document["entrypoint"] = list(entrypoint)
    _restart(launch, kept)
    _gpus(launch, kept)
    return kept


def variables(launch: Launch) -> Kept:
    """The `env` mapping; values that look like secrets become references, and are not shown."""
    kept = Kept()
    plain = 0
    for name, value in launch.env.items():
        if not _NAME.fullmatch(name):
            kept.note(Fate.DROPPED, f"env.{name}", "env", "no name of a variable")
        elif isinstance(value, str) and is_secret(name, value):
            kept.document[name] = {"secret": name}
            kept.note(
                Fate.PERSON,
                f"env.{name}: ***",
                "env",
                f"a secret in the open: export {name}, or put it into gate0's secrets file",
            )
        elif value is None:
            kept.note(
                Fate.PERSON, f"env.{name}", "env", "unset in the container: a profile cannot take away the image's own"
            )
        else:
            kept.document[name] = _value(value)
            plain += not _is_cache(launch, name, value)
    if plain:
        kept.note(Fate.KEPT, f"{plain} variable{'s' if plain > 1 else ''}", "env", "env")
    return kept


def _is_cache(launch: Launch, name: str, value: EnvValue) -> bool:
    """Not the source's: its launcher sets it to where it mounts the hub's cache."""
    return launch.form in LAUNCHERS and name == "HF_HOME" and any(mount.target == value for mount in launch.mounts)


def _value(value: EnvValue) -> Json:
    return {"secret": value.name} if isinstance(value, SecretRef) else value


def _network(launch: Launch, kept: Kept) -> None:
    ports = [_port(port) for port in launch.ports]
    if ports and launch.network in {"host", "none"}:
        kept.note(Fate.DROPPED, f"{len(ports)} ports", "ports", f"nothing is published with network {launch.network}")
        ports = []
    if ports:
        kept.document["ports"] = ports
        kept.note(Fate.KEPT, ", ".join(str(port) for port in ports), "ports", "container.ports")
    network = launch.network
    if network is not None and network.startswith(("container:", "service:")):
        why = "shares the network of another container: not carried, gate0 uses the host's"
        kept.note(Fate.PERSON, f"network {network}", "network", why)
        return
    if network not in {None, "host", "bridge", "none", "default"}:
        why = "container.network: a network of this name must be on the host"
        kept.note(Fate.PERSON, f"network {network}", "network", why)
    if network in {None, "default"}:
        if not ports and launch.image and launch.form not in ON_THE_HOST:
            why = "no port is published: gate0 uses the host's network, so that the server can be reached"
            kept.note(Fate.TRANSLATED, "network", "network", why)
        return
    if not (network == "host" and not ports) and not (network == "bridge" and ports):
        kept.document["network"] = network


def _memory(launch: Launch, kept: Kept) -> None:
    ipc = launch.ipc
    if launch.shm_gib is not None:
        if ipc == "host" or (ipc is None and launch.form in ON_THE_HOST):
            kept.note(Fate.DROPPED, f"shm {launch.shm_gib:g} GiB", "shm_size", "no effect beside `ipc: host`")
        else:
            kept.document["shm_gib"] = round(launch.shm_gib, 6)
            kept.note(Fate.KEPT, f"shm {launch.shm_gib:g} GiB", "shm_size", "container.shm_gib")
            if ipc not in {None, "default"}:
                kept.document["ipc"] = ipc
            return
    if ipc is None and launch.image and launch.form not in ON_THE_HOST and launch.shm_gib is None:
        kept.document["ipc"] = "default"
    elif ipc not in {None, "host"}:
        kept.document["ipc"] = ipc


def _mount(mount: Mount, kept: Kept) -> Json:
    source = re.sub(r"^(?:\$HOME|\$\{HOME\})(?=/|$)", "~", mount.source)
    if "$" in source:
        why = "a folder that only a shell's variable tells: write its path under container.mounts"
        kept.note(Fate.PERSON, f"{mount.source}:{mount.target}", "mounts", why)
        return None
    try:
        mount_from({"source": source, "target": mount.target})
    except ValueError as exc:
        kept.note(Fate.PERSON, f"{mount.source}:{mount.target}", "mounts", f"{exc}: write its path on the host")
        return None
    short = f"{source}:{mount.target}{':ro' if mount.read_only else ''}"
    if source.startswith("~/") and mount.target == f"/root/{source[2:]}" and not mount.read_only:
        short = source
    try:
        is_same = mount_from(short) == Mount(source=source, target=mount.target, read_only=mount.read_only)
    except ValueError:
        is_same = False
    if is_same:
        return short
    long: dict[str, Json] = {"source": source, "target": mount.target}
    return {**long, "read_only": True} if mount.read_only else long


def _port(port: Port) -> Json:
    pair = f"{port.host}:{port.container}"
    if port.address:
        return f"{port.address}:{pair}"
    return port.host if port.host == port.container else pair


def _restart(launch: Launch, kept: Kept) -> None:
    policy = (launch.restart or "no").partition(":")[0]
    if policy not in _RESTARTS:
        kept.note(Fate.PERSON, f"restart {launch.restart}", "restart", f"none of {', '.join(_RESTARTS)}: left out")
    elif policy != "no" and not launch.image:
        why = "gate0 starts it once: a server that dies stays as it is, and its run says so"
        kept.note(Fate.DROPPED, f"restart {launch.restart}", "restart", why)
    elif policy != "no":
        kept.document["restart"] = policy
        why = "container.restart: it hides a crash during a measurement, and a server that dies again and again leaks "
        kept.note(Fate.KEPT, f"restart {launch.restart}", "restart", f"{why}driver memory on a DGX Spark")


def _gpus(launch: Launch, kept: Kept) -> None:
    if launch.gpus is None:
        return
    if launch.gpus == "none":
        kept.document["gpus"] = "none"
    elif launch.gpus != "all":
        why = "all GPUs of the host: a DGX Spark has one"
        kept.note(Fate.TRANSLATED, f"gpus {launch.gpus}", "gpus", why)
