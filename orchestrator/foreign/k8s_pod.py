"""A pod's containers as launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from orchestrator.foreign.container_parts import Part, mount, size_bytes
from orchestrator.foreign.container_words import container_command
from orchestrator.foreign.env_values import environment, say
from orchestrator.foreign.hiding import hidden
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.shell import Word
from orchestrator.foreign.telling import told_engine
from orchestrator.profile.model import Mount, Port
from orchestrator.profile.yaml_lines import Node

GIB = 1024**3
HOME = "/HOME"
"""Stands for the home directory in the host paths that gate0 exports: Kubernetes knows none."""
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_SILENT = frozenset({"name", "image", "command", "args", "env", "envFrom", "ports", "resources", "volumeMounts"})
_OF_CONTAINER: Mapping[str, tuple[Fate, str]] = {
    "imagePullPolicy": (Fate.DROPPED, "gate0 pulls a missing image; `pull: always` or `never` says otherwise"),
    "startupProbe": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "livenessProbe": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "readinessProbe": (Fate.DROPPED, "ready means a first token, which gate0 asks for itself"),
    "lifecycle": (Fate.PERSON, "commands around the server: not carried"),
    "securityContext": (Fate.PERSON, "rights of the container: gate0 gives none; try without"),
    "workingDir": (Fate.PERSON, "the container starts in its image's folder: make relative paths absolute"),
}
_OF_POD: Mapping[str, tuple[Fate, str]] = {
    "initContainers": (Fate.PERSON, "run before the server: do it in the image or on the host"),
    "securityContext": (Fate.PERSON, "rights of the pod: gate0 gives none; try without"),
    "runtimeClassName": (Fate.DROPPED, "gate0 asks docker for the GPUs themselves"),
}
_POD_SILENT = frozenset({"containers", "volumes", "hostNetwork", "hostIPC", "dnsPolicy"})
_OTHERS = (Fate.PERSON, "has no place in a profile: see whether the server needs it")
_PLACING = (Fate.DROPPED, "where Kubernetes places it: gate0 is told the host")


@dataclass(slots=True, kw_only=True)
class _Read:
    """What one container came to so far."""

    env: dict[str, Word] = field(default_factory=dict)
    mounts: list[Mount] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    shm_gib: float | None = None
    gpus: str | None = None

    def note(self, fate: Fate, what: str, where: str, why: str) -> None:
        self.notes.append(Note(fate=fate, what=hidden(what)[:300], where=where, why=why))

    def take(self, part: Part) -> None:
        if part.mount is not None:
            self.mounts.append(part.mount)
        self.notes.extend(part.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReader:
    """Reads the containers of one workload."""

    name: str
    source: str
    config_maps: Mapping[str, Node]
    values: Mapping[str, str]

    def launches(self, pod: Node, *, replicas: int = 1) -> Iterator[tuple[str, Launch]]:
        """Each container's name and launch, whatever it serves.

        Raises:
            InputError: A quote in a shell's text is never closed.
        """
        containers = _items(pod.child("containers"))
        for container in containers:
            name = _text(container.child("name")) or "container"
            yield name, self._launch(pod, container, name, replicas, is_alone=len(containers) == 1)

    def _launch(self, pod: Node, container: Node, name: str, replicas: int, *, is_alone: bool) -> Launch:
        where = f"{self.name}.{name}"
        read = _Read()
        self._environment(container, read, where)
        self._volumes(pod, container, read, where)
        self._ports(pod, container, read, where)
        self._resources(container, read, where)
        self._rest(pod, container, read, where, replicas)
        entrypoint, args = (self._words(container.child(key), read.env) for key in ("command", "args"))
        command = container_command(
            None if entrypoint is None else tuple(word.text for word in entrypoint), args or (), env=read.env
        )
        told = environment(command.env, where=f"{where}.env")
        image = _text(container.child("image"))
        engine = told_engine(
            image,
            command.words,
            keeps_entrypoint=command.entrypoint is None,
            beside=f"{self.name} {name}",
            where=where,
        )
        is_on_host = _is_true(pod.child("hostNetwork"))
        return Launch(
            form="k8s",
            source=self.source,
            name=self.name if is_alone else f"{self.name}-{name}",
            engine=engine.engine,
            where=f"line {container.place.line}",
            image=image,
            entrypoint=command.entrypoint,
            words=command.words,
            places=command.places,
            env=told.values,
            network="host" if is_on_host else None,
            ipc="host" if _is_true(pod.child("hostIPC")) else None,
            shm_gib=read.shm_gib,
            mounts=tuple(read.mounts),
            ports=tuple(read.ports),
            gpus=read.gpus,
            notes=say(
                (*read.notes, *told.notes, *command.notes, *engine.notes),
                secrets=(*told.secrets, *command.secrets),
            ),
        )

    def _words(self, node: Node | None, env: Mapping[str, Word]) -> tuple[Word, ...] | None:
        if node is None or (node.content is None and node.is_plain):
            return None
        return tuple(self._filled(item, env) for item in _items(node) if item.written is not None)

    def _filled(self, node: Node, env: Mapping[str, Word]) -> Word:
        """A text with `$(NAME)` filled in from the container's own variables; others stay as written, as there."""
        missing: list[str] = []
        written = node.written or ""

        def fill(found: re.Match[str]) -> str:
            name = found[1]
            if name is None:
                return "$"
            known = env.get(name)
            if known is None:
                return self.values.get(name, found[0])
            missing.extend(known.missing)
            return known.text

        text = _REFERENCE.sub(fill, written)
        line = node.place.line + int(not node.is_plain and "\n" in written)
        return Word(text=text, line=line, missing=tuple(dict.fromkeys(missing)))

    def _environment(self, container: Node, read: _Read, where: str) -> None:
        for item in _items(container.child("envFrom")):
            self._whole_map(item, read, f"{where}.envFrom")
        for item in _items(container.child("env")):
            name, value, source = _text(item.child("name")), item.child("value"), item.child("valueFrom")
            if name is None:
                continue
            if source is not None:
                self._from(name, source, read, f"{where}.env.{name}")
            else:
                read.env[name] = (
                    self._filled(value, read.env) if value is not None else Word(text="", line=item.place.line)
                )

    def _whole_map(self, item: Node, read: _Read, where: str) -> None:
        named = item.child("configMapRef") or item.child("secretRef")
        name = _text(named.child("name")) if named is not None else None
        entries = self._entries(name or "") if item.child("configMapRef") is not None else {}
        for key, value in entries.items():
            read.env[key] = Word(text=value.written or "", line=value.place.line)
        if not entries:
            read.note(Fate.PERSON, f"envFrom {name}", where, "its variables are not at hand: write them to env")

    def _entries(self, name: str) -> Mapping[str, Node]:
        config_map = self.config_maps.get(name)
        entries = config_map.child("data") if config_map is not None else None
        return entries.content if entries is not None and isinstance(entries.content, Mapping) else {}

    def _from(self, name: str, source: Node, read: _Read, where: str) -> None:
        secret, config = source.child("secretKeyRef"), source.child("configMapKeyRef")
        if secret is not None:
            key = _text(secret.child("key")) or ""
            told = key if _VARIABLE.fullmatch(key) else name
            read.env[name] = Word(text=f"${{{told}}}", line=source.place.line, missing=(told,))
            return
        entry = (
            self._entries(_text(config.child("name")) or "").get(_text(config.child("key")) or "") if config else None
        )
        if entry is not None:
            read.env[name] = Word(text=entry.written or "", line=entry.place.line)
        else:
            read.note(Fate.PERSON, f"{name}: valueFrom", where, "the value is not at hand: write it to env")

    def _volumes(self, pod: Node, container: Node, read: _Read, where: str) -> None:
        volumes = {_text(node.child("name")): node for node in _items(pod.child("volumes"))}
        for item in _items(container.child("volumeMounts")):
            name, target = _text(item.child("name")), _text(item.child("mountPath"))
            volume = volumes.get(name)
            if volume is None or target is None:
                read.note(Fate.PERSON, f"volumeMount {name}", where, "the pod has no such volume")
                continue
            self._volume(volume, item, target, read, f"{where}.volumeMounts.{name}")

    def _volume(self, volume: Node, item: Node, target: str, read: _Read, where: str) -> None:
        is_read_only = _is_true(item.child("readOnly"))
        part = _text(item.child("subPath"))
        host, claim, memory = (volume.child(k) for k in ("hostPath", "persistentVolumeClaim", "emptyDir"))
        if host is not None:
            path = _text(host.child("path")) or ""
            path = f"~{path[len(HOME) :]}" if path == HOME or path.startswith(f"{HOME}/") else path
            source = f"{path.rstrip('/')}/{part}" if part else path
            read.take(mount(source, target, is_read_only=is_read_only, where=where))
        elif claim is not None and part is None:
            source = _text(claim.child("claimName")) or ""
            read.take(mount(source, target, is_read_only=is_read_only, where=where))
            read.note(Fate.TRANSLATED, f"claim {source}", where, "a docker volume of this name on the host")
        elif memory is not None:
            self._empty(memory, target, read, where)
        else:
            read.note(Fate.PERSON, f"volume at {target}", where, "what Kubernetes puts there is not carried")

    def _empty(self, memory: Node, target: str, read: _Read, where: str) -> None:
        limit = _text(memory.child("sizeLimit"))
        n_bytes = size_bytes(limit) if limit is not None else None
        if target != "/dev/shm":
            read.note(
                Fate.DROPPED, f"emptyDir at {target}", where, "empty at every start, as a folder of the container is"
            )
        elif n_bytes is not None:
            read.shm_gib = n_bytes / GIB
        else:
            read.note(Fate.PERSON, "emptyDir at /dev/shm", where, "no size: write `container.shm_gib`")

    def _ports(self, pod: Node, container: Node, read: _Read, where: str) -> None:
        for item in _items(container.child("ports")):
            inside, outside = _port(item.child("containerPort")), _port(item.child("hostPort"))
            if inside is None or _is_true(pod.child("hostNetwork")):
                continue
            if outside is None:
                why = "reached through a Service there; gate0 publishes the server's port itself"
                read.note(Fate.DROPPED, f"containerPort {inside}", f"{where}.ports", why)
                continue
            read.ports.append(Port(host=outside, container=inside, address=_text(item.child("hostIP"))))

    def _resources(self, container: Node, read: _Read, where: str) -> None:
        resources = container.child("resources")
        limits = [node for key in ("limits", "requests") if resources and (node := resources.child(key))]
        for node in limits:
            for name, value in node.content.items() if isinstance(node.content, Mapping) else ():
                if name.endswith("/gpu") or "nvidia.com/" in name:
                    read.gpus = read.gpus or value.written
        if limits and (memory := limits[0].child("memory")) is not None:
            why = "a memory limit: gate0 sets none; `memory_gib` bounds what the engine takes"
            read.note(Fate.PERSON, f"memory: {memory.written}", f"{where}.resources", why)

    def _rest(self, pod: Node, container: Node, read: _Read, where: str, replicas: int) -> None:
        if replicas > 1:
            read.note(Fate.PERSON, f"replicas: {replicas}", self.name, "gate0 starts one server for each run")
        for key in container.content if isinstance(container.content, Mapping) else ():
            if key not in _SILENT:
                fate, why = _OF_CONTAINER.get(key, _OTHERS)
                read.note(fate, key, where, why)
        for key in pod.content if isinstance(pod.content, Mapping) else ():
            if key not in _POD_SILENT:
                fate, why = _OF_POD.get(key, _PLACING)
                read.note(fate, key, self.name, why)


def _items(node: Node | None) -> tuple[Node, ...]:
    return node.content if node is not None and isinstance(node.content, tuple) else ()


def _text(node: Node | None) -> str | None:
    return node.written if node is not None and node.content is not None else None


def _is_true(node: Node | None) -> bool:
    return node is not None and node.content is True


def _port(node: Node | None) -> int | None:
    number = node.content if node is not None else None
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 65536 else None
