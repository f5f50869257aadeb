"""Which boxes there are, and how each is reached: hosts.yaml, ssh_config, `user@host`, `local`. Nothing is connected.

A name is looked for in hosts.yaml, then among ssh_config's `Host` lines; `user@host[:port]`, an IP address and a
dotted name need no entry. What hosts.yaml leaves out is taken from ssh_config for the entry's address, as ssh does.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from orchestrator.errors import InputError

LOCAL = "local"
DEFAULT_PORT = 22
DEFAULT_PORT = 22
HOSTS_FILE = "hosts.yaml"
HOSTS_VARIABLE = "GATE0_HOSTS"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A host's end of the cable between the Sparks: interface, RDMA devices, own address there."""

    interface: str | None = None
    hca: tuple[str, ...] = ()
    ip: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """What ssh_config says for one name. None or empty: it says nothing.

    Attributes:
        is_named: A `Host` line names it (more than `*`).
        config_file: Passed on to the `ssh` of a ProxyJump when it is not the default one.
    """

    is_named: bool = False
    address: str | None = None
    user: str | None = None
    port: int | None = None
    key_files: tuple[str, ...] = ()
    known_hosts: tuple[str, ...] = ()
    proxy_command: str | None = None
    proxy_jump: str | None = None
    identities_only: bool = False
    host_key_alias: str | None = None
    config_file: str | None = None


class SshConfig(Protocol):
    """The user's ssh_config; `fleet.ssh.read_ssh_config` gives the real one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names on `Host` lines, without patterns."""
        ...

    def settings(self, name: str) -> SshSettings: ...


class NoSshConfig:
    """An ssh_config that says nothing."""

    names: tuple[str, ...] = ()

    def settings(self, name: str) -> SshSettings:
        return SshSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """One box: what the user calls it and how it is reached.

    Attributes:
        address: Name or IP address to connect to; `127.0.0.1` for this machine.
        user: None: the name of who runs gate0, as ssh does.
        key_files: Private keys tried first; empty: the agent's and ssh's default files.
        known_hosts: Files with host keys; empty: ssh's own.
        cache_path: Where weights lie on the host (`~` is the SSH user's home there).
        docker_host: Where its Docker Engine listens, `unix:///…`; None: the docker command's own choice.
        source: Where the entry comes from, for `gate0 hosts list`.
    """

    name: str
    address: str
    is_local: bool = False
    user: str | None = None
    port: int = DEFAULT_PORT
    key_files: tuple[str, ...] = ()
    known_hosts: tuple[str, ...] = ()
    proxy_command: str | None = None
    proxy_jump: str | None = None
    identities_only: bool = False
    host_key_alias: str | None = None
    config_file: str | None = None
    cache_path: str | None = None
    docker_host: str | None = None
    link: Link | None = None
    source: str = "command line"

    @property
    def destination(self) -> str:
        """`user@address:port` with what is known, for messages."""
        if self.is_local:
            return "this machine"
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.address}" + (f":{self.port}" if self.port != DEFAULT_PORT else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An entry as hosts.yaml has it, before ssh_config fills the gaps. `port` None: not given."""

    entry: HostEntry
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The entries of one hosts.yaml, in its order. `file` None: there is none."""

    declared: Mapping[str, Declared] = field(default_factory=dict)
    file: str | None = None


def find_hosts_file(option: str | None, env: Mapping[str, str], *, cwd: Path, home: Path) -> Path | None:
    """The inventory to read: the option, GATE0_HOSTS, ./hosts.yaml, then gate0's folder in the user's configuration.

    Raises:
        InputError: A file was named and is not there.
    """
    for named, origin in ((option, "--hosts"), (env.get(HOSTS_VARIABLE), HOSTS_VARIABLE)):
        if named:
            path = Path(os.path.expanduser(named))
            path = path if path.is_absolute() else cwd / path
            if not path.is_file():
                raise InputError(f"no such hosts file: {path}", hint=f"it was named by {origin}")
            return path
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    return next((p for p in (cwd / HOSTS_FILE, config / "gate0" / HOSTS_FILE) if p.is_file()), None)


def declared_entry(name: str, spec: str | Mapping[str, object], *, folder: str, source: str) -> Declared:
    """An entry from its checked YAML value: `user@address[:port]` (or `local`) as one word, or a mapping.

    Args:
        folder: Where the file lies; relative key and known_hosts paths start there.
    """
    fields: Mapping[str, object] = {"address": spec} if isinstance(spec, str) else spec
    address = str(fields["address"])
    shared = {
        "name": name,
        "source": source,
        "cache_path": _text(fields, "cache_path"),
        "docker_host": _text(fields, "docker_host"),
        "link": _link(fields.get("link")),
    }
    if address == LOCAL:
        return Declared(entry=HostEntry(address="127.0.0.1", is_local=True, **shared))  # type: ignore[arg-type]
    user, address, port = split_destination(address)
    given_port = fields.get("port", port)
    entry = HostEntry(
        address=address,
        user=_text(fields, "user") or user,
        key_files=tuple(_path(p, folder) for p in _texts(fields.get("key_file"))),
        known_hosts=tuple(_path(p, folder) for p in _texts(fields.get("known_hosts"))),
        proxy_command=_text(fields, "proxy_command"),
        proxy_jump=_text(fields, "proxy_jump"),
        **shared,  # type: ignore[arg-type]
    )
    return Declared(entry=entry, port=given_port if isinstance(given_port, int) else None)


def split_destination(word: str) -> tuple[str | None, str, int | None]:
    """`user@host[:port]` (`[v6]:port` too) -> user, host, port; what is not there is None.

    Raises:
        InputError: The port is no port, or the host is empty.
    """
    user, at, rest = word.rpartition("@")
    matched = re.fullmatch(r"\[(?P<v6>[^\]]+)\](?::(?P<port6>[^:]*))?|(?P<host>[^:\[\]]+)(?::(?P<port>[^:]*))?", rest)
    if matched is None:
        if not _is_ip(rest):
            raise InputError(f"not a host: {word}", hint="write user@host, user@host:port or user@[v6 address]:port")
        return (user if at else None), rest, None
    host = matched["v6"] or matched["host"]
    port = matched["port6"] if matched["v6"] else matched["port"]
    if port is not None and not (port.isdecimal() and 0 < int(port) < 65536):
        raise InputError(f"not a port in {word}: {port}", hint="a port is a number from 1 to 65535")
    if at and not user:
        raise InputError(f"no user before the @ in {word}", hint="write user@host")
    return (user if at else None), host, int(port) if port else None


def resolve_hosts(words: str | Sequence[str], inventory: Inventory, ssh_config: SshConfig) -> tuple[HostEntry, ...]:
    """The hosts that `--on` names, in that order, complete.

    Args:
        words: Comma-separated, or one name an item.

    Raises:
        InputError: A name is unknown (with the nearest one), given twice, or two names are one machine.
    """
    parts = words.split(",") if isinstance(words, str) else [p for word in words for p in word.split(",")]
    names = [part.strip() for part in parts if part.strip()]
    if not names:
        raise InputError("no host was named", hint="--on spark01,spark02, user@host, or local")
    entries = tuple(resolve_host(name, inventory, ssh_config) for name in names)
    _refuse_one_machine_twice(entries)
    return entries


def resolve_host(name: str, inventory: Inventory, ssh_config: SshConfig) -> HostEntry:
    """One host, complete.

    Raises:
        InputError: The name is unknown or malformed.
    """
    if name in inventory.declared:
        declared = inventory.declared[name]
        if declared.entry.is_local:
            return declared.entry
        return _filled(declared, ssh_config.settings(declared.entry.address))
    if name == LOCAL:
        return HostEntry(name=LOCAL, address="127.0.0.1", is_local=True, source="built in")
    user, address, port = split_destination(name)
    settings = ssh_config.settings(address)
    if not (user or settings.is_named or _is_ip(address) or "." in address):
        raise _unknown(name, inventory, ssh_config)
    source = "ssh_config" if settings.is_named and user is None else "command line"
    entry = HostEntry(name=_plain_name(name, address, port), address=address, user=user, source=source)
    return _filled(Declared(entry=entry, port=port), settings)


def all_hosts(inventory: Inventory, ssh_config: SshConfig) -> tuple[HostEntry, ...]:
    """The hosts of hosts.yaml, in its order, complete. ssh_config's are not among them: many are no boxes at all."""
    return tuple(resolve_host(name, inventory, ssh_config) for name in inventory.declared)


def named_hosts(inventory: Inventory, ssh_config: SshConfig) -> tuple[HostEntry, ...]:
    """Every host that can be named: hosts.yaml's in order, then ssh_config's."""
    names = [*inventory.declared, *(n for n in ssh_config.names if n not in inventory.declared)]
    return tuple(resolve_host(name, inventory, ssh_config) for name in names)


def _plain_name(word: str, address: str, port: int | None) -> str:
    """What tables, records and folder names call a host that was given as a destination."""
    plain = address if port is None else f"{address}-{port}"
    return word if _NAME.fullmatch(word) else re.sub(r"[^A-Za-z0-9._-]+", "-", plain)


def _filled(declared: Declared, settings: SshSettings) -> HostEntry:
    """The entry, with ssh_config's word where it has none of its own."""
    entry = declared.entry
    has_proxy = entry.proxy_command is not None or entry.proxy_jump is not None
    return replace(
        entry,
        address=settings.address or entry.address,
        user=entry.user or settings.user,
        port=declared.port or settings.port or DEFAULT_PORT,
        key_files=entry.key_files or settings.key_files,
        known_hosts=entry.known_hosts or settings.known_hosts,
        proxy_command=entry.proxy_command if has_proxy else settings.proxy_command,
        proxy_jump=entry.proxy_jump if has_proxy else settings.proxy_jump,
        identities_only=settings.identities_only,
        host_key_alias=settings.host_key_alias,
        config_file=settings.config_file,
    )


def _unknown(name: str, inventory: Inventory, ssh_config: SshConfig) -> InputError:
    known = [*inventory.declared, *ssh_config.names, LOCAL]
    near = difflib.get_close_matches(name, known, n=1)
    where = f"add it to {inventory.file}" if inventory.file else f"write a {HOSTS_FILE}"
    guess = f"did you mean `{near[0]}`? else " if near else ""
    return InputError(f"unknown host: {name}", hint=f"{guess}{where}, use an ssh_config alias, or write user@{name}")


def _refuse_one_machine_twice(entries: Sequence[HostEntry]) -> None:
    seen: dict[tuple[str, int, str], HostEntry] = {}
    for entry in entries:
        first = seen.setdefault(_machine(entry), entry)
        if first is entry:
            continue
        if first.name == entry.name:
            raise InputError(f"host named twice: {entry.name}", hint="name each host once")
        raise InputError(
            f"{first.name} and {entry.name} are the same machine ({entry.destination})",
            hint="a profile needs each machine once; check the addresses",
        )


def _machine(entry: HostEntry) -> tuple[str, int, str]:
    proxy = entry.proxy_command or entry.proxy_jump or ""
    if entry.is_local or (not proxy and entry.port == DEFAULT_PORT and entry.address.lower() in _LOOPBACK):
        return (LOCAL, 0, "")
    return (entry.address.lower(), entry.port, proxy)


def _is_ip(word: str) -> bool:
    try:
        ipaddress.ip_address(word.partition("%")[0])
    except ValueError:
        return False
    return True


def _text(fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    return None if value is None else str(value)


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(str(v) for v in value)  # type: ignore[attr-defined]


def _path(word: str, folder: str) -> str:
    return word if word.startswith(("~", "/")) else os.path.normpath(os.path.join(folder, word))


def _link(value: object) -> Link | None:
    if not isinstance(value, Mapping):
        return None
    return Link(interface=_text(value, "interface"), hca=_texts(value.get("hca")), ip=_text(value, "ip"))
