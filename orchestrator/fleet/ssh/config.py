"""The user's ssh_config, read as ssh reads it: `Include` followed, first word wins, tokens filled in."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import paramiko

from orchestrator.errors import InputError
from orchestrator.fleet.inventory import SshSettings

_SYSTEM_CONFIG = "/etc/ssh/ssh_config"
_INCLUDE_DEPTH = 16  # as ssh


class OpenSshConfig:
    """ssh_config as `fleet.inventory` asks for it.

    Args:
        text: The files' lines, the user's before the system's, `Include` already followed.
        config_file: Its path when it is not the default one.
    """

    def __init__(self, text: str, *, config_file: str | None = None) -> None:
        try:
            self._config = paramiko.SSHConfig.from_text(text)
        except paramiko.ssh_exception.ConfigParseError as exc:
            raise InputError(f"cannot read ssh_config: {exc}", hint="`ssh -G HOST` shows what ssh makes of it") from exc
        self._config_file = config_file

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(n for n in self._config.get_hostnames() if not set(n) & set("*?!")))

    def settings(self, name: str) -> SshSettings:
        """What ssh would use for this name.

        Raises:
            InputError: A `Match` or canonicalisation line cannot be followed, or `Port` is no number.
        """
        try:
            found = self._config.lookup(name)
        except (paramiko.SSHException, ImportError, OSError, KeyError, ValueError) as exc:
            raise InputError(f"cannot look {name} up in ssh_config: {exc}", hint="write it in hosts.yaml") from exc
        port = found.get("port")
        if port is not None and not port.isdecimal():
            raise InputError(f"ssh_config has a port for {name} that is no number: {port}")
        jump = found.get("proxyjump")
        return SshSettings(
            is_named=name in self.names or self._is_matched(name),
            address=found.get("hostname"),
            user=found.get("user"),
            port=int(port) if port else None,
            key_files=tuple(f for f in found.get("identityfile", ()) if f.lower() != "none"),
            known_hosts=_known_hosts(found),
            proxy_command=found.get("proxycommand"),
            proxy_jump=None if jump is None or jump.lower() == "none" else jump,
            identities_only=found.get("identitiesonly", "no").lower() == "yes",
            host_key_alias=found.get("hostkeyalias"),
            config_file=self._config_file,
        )

    def _is_matched(self, name: str) -> bool:
        """A pattern that says more than `*` covers the name (`Host spark*`)."""
        import fnmatch

        patterns = [p for p in self._config.get_hostnames() if p != "*" and not p.startswith("!")]
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def read_ssh_config(path: str | None = None) -> OpenSshConfig:
    """The user's and the system's ssh_config, or only the file named.

    Raises:
        InputError: The named file is not there, or a file cannot be parsed.
    """
    if path is not None:
        if not Path(path).expanduser().is_file():
            raise InputError(f"no such ssh_config: {path}")
        return OpenSshConfig("\n".join(_lines(path, depth=0)), config_file=str(Path(path).expanduser()))
    lines = [*_lines("~/.ssh/config", depth=0), "Host *", *_lines(_SYSTEM_CONFIG, depth=0)]
    return OpenSshConfig("\n".join(lines))


def _known_hosts(found: object) -> tuple[str, ...]:
    assert isinstance(found, dict)
    user, system = found.get("userknownhostsfile"), found.get("globalknownhostsfile")
    if user is None and system is None:
        return ()
    files = shlex.split(user) if user else ["~/.ssh/known_hosts"]
    files += shlex.split(system) if system else ["/etc/ssh/ssh_known_hosts"]
    return tuple(f for f in files if f not in ("none", os.devnull))


def _lines(path: str, *, depth: int) -> Iterator[str]:
    """A file's lines with `Include` followed; the block that an Include stood in goes on after it."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    block = "Host *"
    for line in text.splitlines():
        word, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if word.lower() != "include":
            if word.lower() in ("host", "match"):
                block = line
            yield line
        elif depth < _INCLUDE_DEPTH:
            base = Path(_SYSTEM_CONFIG).parent if path == _SYSTEM_CONFIG else Path("~/.ssh").expanduser()
            for pattern in shlex.split(rest):
                for file in sorted(glob.glob(str(base / Path(pattern).expanduser()))):
                    yield from _lines(file, depth=depth + 1)
            yield block
