"""hosts.yaml read into an `Inventory`, and an entry opened as a host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.fleet.host import Host
from orchestrator.fleet.inventory import Declared, HostEntry, Inventory, SshConfig, SshSettings, declared_entry
from orchestrator.fleet.inventory import find_hosts_file as find_file
from orchestrator.profile.checking import require
from orchestrator.profile.schemas import read_schema
from orchestrator.profile.yaml_lines import Document, read_document

SCHEMA = ("orchestrator.fleet", "hosts.schema.json")


def read_inventory(path: Path) -> Inventory:
    """The entries of a hosts.yaml.

    Raises:
        InputError: The file cannot be read.
        InvalidFile: Every problem in it, with its line.
    """
    document = read_document(path)
    file = _shown(path)
    require(document, read_schema(*SCHEMA), file)
    hosts = document.value["hosts"] if isinstance(document.value, Mapping) else None
    assert isinstance(hosts, Mapping)  # the schema says so
    declared: dict[str, Declared] = {}
    problems: list[Problem] = []
    for name, spec in hosts.items():
        line = document.line_of(("hosts", name))
        assert isinstance(spec, str | Mapping)
        try:
            declared[name] = declared_entry(name, spec, folder=str(path.parent), source=f"{file}:{line}")
        except InputError as exc:
            problems.append(_problem(document, name, exc, file))
    if problems:
        raise InvalidFile(problems)
    return Inventory(declared, file)


def find_inventory(option: str | None, env: Mapping[str, str], *, cwd: Path, home: Path) -> Inventory:
    """The inventory of this command line (`find_hosts_file` says in which order), empty when there is no file."""
    path = find_file(option, env, cwd=cwd, home=home)
    return Inventory() if path is None else read_inventory(path)


class LazySshConfig:
    """The user's ssh_config, read (and paramiko imported) at the first question."""

    def __init__(self) -> None:
        self._read: SshConfig | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self._config().names

    def settings(self, name: str) -> SshSettings:
        return self._config().settings(name)

    def _config(self) -> SshConfig:
        if self._read is None:
            from orchestrator.fleet.ssh import read_ssh_config

            self._read = read_ssh_config()
        return self._read


def open_host(entry: HostEntry, *, connect_s: float = 20.0) -> Host:
    """The entry as a host that runs commands; an SSH connection is made by the first of them."""
    if entry.is_local:
        from orchestrator.fleet.local import LocalHost

        return LocalHost(entry.name)
    from orchestrator.fleet.ssh import SshHost

    return SshHost(entry, connect_s=connect_s)


def _problem(document: Document, name: str, exc: InputError, file: str) -> Problem:
    path = ("hosts", name, "address") if document.find(("hosts", name, "address")) else ("hosts", name)
    message = f"{exc.message}: {exc.hint}" if exc.hint else exc.message
    return Problem(file=file, line=document.line_of(path), path=".".join(path), message=message)


def _shown(path: Path) -> str:
    """The path as short as it can be said."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
