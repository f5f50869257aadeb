"""The keys that are offered to a host, in ssh's order: those named, the agent's, then the default files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.pkey import UnknownKeyType

from orchestrator.fleet.inventory import HostEntry

DEFAULT_KEY_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_MAX_OFFERS = 5  # sshd hangs up at the sixth (MaxAuthTries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A key that can sign, and where it comes from."""

    key: paramiko.PKey
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A key file that cannot be used, and why. `needs_passphrase`: it would be, with `ssh-add`."""

    file: str
    why: str
    needs_passphrase: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """What can be offered, and what was left out."""

    usable: tuple[Identity, ...]
    unusable: tuple[Unusable, ...]


@contextlib.contextmanager
def identities(entry: HostEntry) -> Iterator[Identities]:
    """The keys for one host; the agent stays open meanwhile, it has to sign."""
    agent = _open_agent()
    try:
        named, unusable = _from_files(entry.key_files)
        held = [] if agent is None else list(agent.get_keys())
        agent_keys = [Identity(key=key, origin="agent") for key in held]
        if entry.key_files and entry.identities_only:
            wanted = {blob for f in entry.key_files if (blob := _public_blob(f)) is not None}
            agent_keys = [i for i in agent_keys if i.key.asbytes() in wanted]
        defaults: list[Identity] = []
        if not entry.key_files:
            defaults, locked = _from_files(tuple(f for f in DEFAULT_KEY_FILES if Path(f).expanduser().is_file()))
            unusable += locked
        ordered = _without_repeats([*named, *agent_keys, *defaults])
        yield Identities(usable=tuple(ordered[:_MAX_OFFERS]), unusable=tuple(unusable))
    finally:
        if agent is not None:
            agent.close()


def _open_agent() -> paramiko.Agent | None:
    try:
        return paramiko.Agent()
    except (paramiko.SSHException, OSError):  # a stale SSH_AUTH_SOCK is the same as no agent
        return None


def _from_files(files: tuple[str, ...]) -> tuple[list[Identity], list[Unusable]]:
    usable, unusable = [], []
    for file in files:
        loaded = _load(file)
        if isinstance(loaded, Unusable):
            unusable.append(loaded)
        else:
            usable.append(Identity(key=loaded, origin=file))
    return usable, unusable


def _load(file: str) -> paramiko.PKey | Unusable:
    try:
        return paramiko.PKey.from_path(Path(file).expanduser())
    except FileNotFoundError:
        return Unusable(file=file, why="no such file")
    except PermissionError:
        return Unusable(file=file, why="not readable for you")
    except (TypeError, paramiko.PasswordRequiredException):  # cryptography says so with a TypeError
        return Unusable(file=file, why="protected by a passphrase", needs_passphrase=True)
    except (ValueError, OSError, paramiko.SSHException, UnknownKeyType) as exc:
        return Unusable(file=file, why=f"not a private key that can be read ({type(exc).__name__})")


def _public_blob(file: str) -> bytes | None:
    """The public half of a key file, from `FILE.pub`."""
    import base64

    with contextlib.suppress(OSError, IndexError, ValueError):
        return base64.b64decode(Path(f"{file}.pub").expanduser().read_text().split()[1])
    return None


def _without_repeats(found: list[Identity]) -> list[Identity]:
    seen: set[bytes] = set()
    kept = []
    for identity in found:
        blob = identity.key.asbytes()
        if blob not in seen:
            seen.add(blob)
            kept.append(identity)
    return kept
