"""One service of a compose file as a launch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.foreign.container_parts import Part, mount, mount_from_text, ports_from_text, size_gib, ulimit
from orchestrator.foreign.container_words import container_command
from orchestrator.foreign.docker_options import FATES, OTHERS
from orchestrator.foreign.env_files import Reads, read_env
from orchestrator.foreign.env_values import environment, say
from orchestrator.foreign.hiding import hidden
from orchestrator.foreign.interpolation import Interpolation, marked
from orchestrator.foreign.model import Fate, Launch, Note
from orchestrator.foreign.shell import ReadFile, Word, split_words
from orchestrator.foreign.telling import told_engine
from orchestrator.profile.model import EnvValue, Mount, Port, SecretRef
from orchestrator.profile.yaml_lines import Node

_CDI = re.compile(r"nvidia\.com/gpu=(.+)")
_SPOKEN = frozenset(
    {
        *("image", "command", "entrypoint", "environment", "env_file", "volumes", "ports", "network_mode", "ipc"),
        *("restart", "shm_size", "ulimits", "gpus", "runtime", "devices", "build", "extends"),
    }
)
_AS_OPTION = {
    "mem_limit": "memory",
    "memswap_limit": "memory-swap",
    "mem_reservation": "memory-reservation",
    "stop_grace_period": "stop-timeout",
    "healthcheck": "health-cmd",
    "logging": "log-driver",
    "labels": "label",
    "stdin_open": "interactive",
    "working_dir": "workdir",
    "security_opt": "security-opt",
    "cap_add": "cap-add",
    "oom_kill_disable": "oom-kill-disable",
    "oom_score_adj": "oom-score-adj",
    "stop_signal": "stop-signal",
    "volumes_from": "volumes-from",
}
_OTHERS: Mapping[str, tuple[Fate, str]] = {
    "depends_on": (Fate.DROPPED, "gate0 starts the server alone"),
    "profiles": (Fate.DROPPED, "gate0 starts what it is told"),
    "pull_policy": (Fate.DROPPED, FATES["pull"][1]),
    "container_name": (Fate.DROPPED, "gate0 names its containers after the profile"),
    "expose": (Fate.DROPPED, "publishes nothing"),
    "networks": (Fate.DROPPED, "the project's own networks; gate0 reaches the server through the published port"),
    "extra_hosts": (Fate.PERSON, "names for addresses inside the container: not carried"),
    "secrets": (Fate.PERSON, "files with secrets in the container: not carried"),
    "configs": (Fate.PERSON, "files in the container: mount them"),
}
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)(?:=(.*))?", re.DOTALL)


@dataclass(slots=True, kw_only=True)
class ServiceReader:
    """Reads one service; what is changed or left out is noted.

    Attributes:
        networks: Networks that are there without the file (`external: true`), by their name in it.
    """

    name: str
    source: str
    values: Mapping[str, str]
    read_file: ReadFile | None
    networks: Mapping[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    mounts: list[Mount] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    gpus: str | None = None
    filling: Interpolation = field(init=False)

    def __post_init__(self) -> None:
        self.filling = Interpolation(values=self.values)

    def launch(self, node: Node) -> Launch:
        """The service as a launch, whatever it serves.

        Raises:
            InputError: A quote in its command is never closed.
        """
        env = self._environment(node)
        image = self._text(node.child("image"))
        self._build(node, image)
        self._parts(node)
        entrypoint = self._words(node.child("entrypoint"))
        words = self._words(node.child("command"))
        command = container_command(
            None if entrypoint is None else tuple(word.text for word in entrypoint),
            words or (),
            env=env,
            mounts=self.mounts,
            read_file=self.read_file,
        )
        told = environment(command.env, where=f"services.{self.name}.environment")
        self._gpus(node)
        self._rest(node)
        settings = {key: self._known(node, key) for key in ("ipc", "restart")}
        network, shm_gib, ulimits = self._network(node), self._shm(node), self._ulimits(node)
        engine = told_engine(
            image.text if image is not None else None,
            command.words,
            keeps_entrypoint=command.entrypoint is None,
            beside=self.name,
            where=self._where(),
        )
        taken = self.filling.notes(f"services.{self.name}", named=_awaited(told.values))
        return Launch(
            form="compose",
            source=self.source,
            name=self.name,
            engine=engine.engine,
            where=f"line {node.place.line}",
            image=image.text if image is not None and image.text else None,
            entrypoint=command.entrypoint,
            words=command.words,
            places=command.places,
            env=told.values,
            network=network,
            ipc=settings["ipc"],
            shm_gib=shm_gib,
            mounts=tuple(self.mounts),
            ports=tuple(self.ports),
            ulimits=ulimits,
            restart=settings["restart"],
            gpus=self.gpus,
            notes=say(
                (
                    *taken,
                    *self.notes,
                    *told.notes,
                    *command.notes,
                    *engine.notes,
                ),
                (*told.secrets, *command.secrets),
            ),
        )

    def _where(self, *steps: str | int) -> str:
        return ".".join(("services", self.name, *(str(step) for step in steps)))

    def _note(self, fate: Fate, what: str, why: str, *steps: str | int) -> None:
        self.notes.append(Note(fate=fate, what=hidden(what)[:300], where=self._where(*steps), why=why))

    def _take(self, part: Part) -> None:
        if part.mount is not None:
            self.mounts.append(part.mount)
        self.ports.extend(part.ports)
        self.notes.extend(part.notes)

    def _text(self, node: Node | None) -> Word | None:
        """A scalar with its variables filled in; None for null, lists and mappings."""
        if node is None or node.written is None or node.content is None:
            return None
        is_block = not node.is_plain and "\n" in node.written
        return self.filling.word(node.written, line=node.place.line + int(is_block))

    def _known(self, node: Node, key: str) -> str | None:
        """A setting's text; a note in its place when it waits for a variable."""
        word = self._text(node.child(key))
        if word is None or word.is_known:
            return word.text if word is not None and word.text else None
        self._note(Fate.PERSON, f"{key}: {word.text}", "waits for a variable: write the value", key)
        return None

    def _words(self, node: Node | None) -> tuple[Word, ...] | None:
        """`command` or `entrypoint`: a list's items, or a text that is split; () when empty, None when not said."""
        if node is None or (node.content is None and node.is_plain):
            return None
        if isinstance(node.content, tuple):
            return tuple(word for item in node.content if (word := self._text(item)) is not None)
        whole = self._text(node)
        return None if whole is None else marked(split_words(whole.text, line=whole.line), whole)

    def _environment(self, node: Node) -> dict[str, Word]:
        found: dict[str, Word] = {}
        for item in _items(node.child("env_file")):
            found.update(self._env_file(item))
        told = node.child("environment")
        if told is not None and isinstance(told.content, Mapping):
            for name, value in told.content.items():
                found[name] = self._text(value) or self._from_outside(name, value.place.line)
        for item in _items(told) if told is not None and isinstance(told.content, tuple) else ():
            word = self._text(item)
            pair = _ASSIGNED.fullmatch(word.text) if word is not None else None
            if word is None or pair is None:
                self._note(Fate.PERSON, str(item.written), "not a variable: write `NAME=value`", "environment")
            elif pair[2] is None:
                found[pair[1]] = self._from_outside(pair[1], word.line)
            else:
                found[pair[1]] = replace(word, text=pair[2])
        return found

    def _from_outside(self, name: str, line: int) -> Word:
        if name in self.values:
            return Word(text=self.values[name], line=line)
        return Word(text=f"${{{name}}}", line=line, missing=(name,))

    def _env_file(self, item: Node) -> Mapping[str, Word]:
        named = self._text(item.child("path") if isinstance(item.content, Mapping) else item)
        if named is None:
            return {}
        text = self.read_file(named.text) if self.read_file is not None and named.is_known else None
        if text is None:
            needed = item.child("required")
            is_needed = needed is None or needed.content is not False
            fate = Fate.PERSON if is_needed else Fate.DROPPED
            self._note(fate, named.text, "the file is not at hand: write its variables to env", "env_file")
            return {}
        self._note(Fate.TRANSLATED, named.text, "read, and its variables written to env", "env_file")
        return {
            name: replace(self.filling.word(word.text, line=word.line), line=word.line) if word.is_known else word
            for name, word in read_env(text, Reads.COMPOSE).items()
        }

    def _build(self, node: Node, image: Word | None) -> None:
        if (build := node.child("build")) is None:
            return
        context = build.written or (told.written if (told := build.child("context")) is not None else None) or "."
        why = "the image is built from this folder: build it on the host first"
        named = "" if image is not None and image.text else ", and give its name as `image`"
        self._note(Fate.PERSON, f"build: {context}", why + named, "build")

    def _parts(self, node: Node) -> None:
        folder = self.values.get("PWD")
        for index, item in enumerate(_items(node.child("volumes"))):
            self._volume(item, self._where(f"volumes[{index}]"), folder)
        for index, item in enumerate(_items(node.child("ports"))):
            self._port(item, self._where(f"ports[{index}]"))
        for index, item in enumerate(_items(node.child("devices"))):
            self._device(item, index)

    def _volume(self, item: Node, where: str, folder: str | None) -> None:
        if not isinstance(item.content, Mapping):
            word = self._text(item)
            if word is not None:
                self._take(mount_from_text(word.text, where=where, folder=folder))
            return
        kind, source, target = (self._entry(item, key) for key in ("type", "source", "target"))
        if kind not in {"bind", "volume"} or not source or not target:
            why = f"a {kind or 'nameless'} mount: not carried"
            self.notes.append(Note(fate=Fate.PERSON, what=f"{source or kind}:{target}", where=where, why=why))
            return
        read_only = item.child("read_only")
        is_read_only = read_only is not None and read_only.content is True
        self._take(mount(source, target, is_read_only=is_read_only, where=where, folder=folder))

    def _port(self, item: Node, where: str) -> None:
        if not isinstance(item.content, Mapping):
            word = self._text(item)
            if word is not None:
                self._take(ports_from_text(word.text, where=where))
            return
        address, published, target, protocol = (
            self._entry(item, key) for key in ("host_ip", "published", "target", "protocol")
        )
        text = ":".join(part for part in (address, published, target) if part)
        self._take(ports_from_text(f"{text}/{protocol}" if protocol else text, where=where))

    def _device(self, item: Node, index: int) -> None:
        word = self._text(item)
        text = word.text if word is not None else ""
        if (named := _CDI.fullmatch(text)) is not None:
            self.gpus = "all" if named[1] == "all" else f"device={named[1]}"
        else:
            fate, why = FATES["device"]
            self._note(fate, text, why, f"devices[{index}]")

    def _entry(self, item: Node, key: str) -> str | None:
        word = self._text(item.child(key))
        return word.text if word is not None else None

    def _gpus(self, node: Node) -> None:
        told = node.child("gpus")
        if told is not None:
            word = self._text(told)
            self.gpus = word.text if word is not None else _of_devices(_items(told))
        reserved: Node | None = node
        for step in ("deploy", "resources", "reservations", "devices"):
            reserved = reserved.child(step) if reserved is not None else None
        if reserved is not None and self.gpus is None:
            self.gpus = _of_devices(_items(reserved))
        runtime = self._known(node, "runtime")
        if runtime is not None:
            self.gpus = self.gpus or ("all" if runtime == "nvidia" else None)
            self._note(Fate.DROPPED, f"runtime: {runtime}", "gate0 asks docker for the GPUs themselves", "runtime")

    def _network(self, node: Node) -> str | None:
        mode = self._known(node, "network_mode")
        if mode is not None and mode.startswith(("service:", "container:")):
            self._note(Fate.PERSON, f"network_mode: {mode}", "another container's network: not carried", "network_mode")
            return None
        joined = _names(node.child("networks"))
        if mode is None and len(joined) == 1:
            return self.networks.get(joined[0])
        return mode

    def _shm(self, node: Node) -> float | None:
        written = self._known(node, "shm_size")
        size = size_gib(written) if written is not None else None
        if written is not None and size is None:
            self._note(Fate.PERSON, f"shm_size: {written}", "not a size", "shm_size")
        return size

    def _ulimits(self, node: Node) -> Mapping[str, int]:
        told = node.child("ulimits")
        found: dict[str, int] = {}
        for name, value in told.content.items() if told is not None and isinstance(told.content, Mapping) else ():
            hard = self._entry(value, "hard") if isinstance(value.content, Mapping) else None
            word = self._text(value)
            limits = ulimit(f"{name}={hard if hard is not None else (word.text if word is not None else '')}")
            if not limits:
                self._note(Fate.PERSON, f"{name}: {value.written}", "not a limit", "ulimits", name)
            found.update(limits)
        return found

    def _rest(self, node: Node) -> None:
        entries = node.content if isinstance(node.content, Mapping) else {}
        for key, value in entries.items():
            if key in _SPOKEN or key.startswith("x-"):
                continue
            if key == "deploy":
                self._deploy(value)
                continue
            fate, why = _OTHERS.get(key) or FATES.get(_AS_OPTION.get(key, key), OTHERS)
            self._note(fate, f"{key}: {_short(value)}", why, key)

    def _deploy(self, node: Node) -> None:
        limits = node.child("resources")
        limits = limits.child("limits") if limits is not None else None
        if limits is not None:
            self._note(Fate.PERSON, f"limits: {_short(limits)}", FATES["memory"][1], "deploy", "resources")
        others = [key for key in node.content if key != "resources"] if isinstance(node.content, Mapping) else []
        if others:
            self._note(Fate.DROPPED, ", ".join(others), "how a swarm places it: gate0 places servers itself", "deploy")


def _awaited(env: Mapping[str, EnvValue]) -> frozenset[str]:
    return frozenset(value.name for value in env.values() if isinstance(value, SecretRef))


def _items(node: Node | None) -> tuple[Node, ...]:
    if node is None:
        return ()
    if isinstance(node.content, tuple):
        return node.content
    return (node,) if node.content is not None else ()


def _names(node: Node | None) -> tuple[str, ...]:
    if node is not None and isinstance(node.content, Mapping):
        return tuple(node.content)
    return tuple(item.written or "" for item in _items(node))


def _of_devices(items: tuple[Node, ...]) -> str | None:
    """`all`, a count, `device=0,1`: what `count` and `device_ids` of GPU reservations say."""
    for item in items:
        if not isinstance(item.content, Mapping):
            continue
        driver, kinds = item.child("driver"), item.child("capabilities")
        names_gpu = kinds is not None and "gpu" in str(kinds.plain())
        is_gpu = names_gpu or (driver is not None and driver.written in {"nvidia", "cdi"})
        if not is_gpu:
            continue
        ids, count = item.child("device_ids"), item.child("count")
        if ids is not None and isinstance(ids.content, tuple):
            named = [each.written or "" for each in ids.content]
            is_whole = any(name.endswith(("=all", "all")) for name in named)
            return "all" if is_whole else f"device={','.join(named)}"
        return count.written if count is not None and count.written else "all"
    return None


def _short(node: Node) -> str:
    if node.written is not None:
        return node.written
    parts = node.content if isinstance(node.content, tuple | Mapping) else ()
    return ", ".join(str(part.written) if isinstance(part, Node) else str(part) for part in parts)[:120]
