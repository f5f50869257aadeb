"""Turn references to secrets into secrets: from the environment, else from a file that only its owner can read."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.profile.loading import Loaded
from orchestrator.profile.model import Profile, SecretRef
from orchestrator.profile.wording import did_you_mean
from orchestrator.values import Secret

_LINE = re.compile(r"(?:export )?([A-Za-z_][A-Za-z0-9_]*)=(.*)")


def default_secrets_file(environ: Mapping[str, str]) -> Path:
    """`$XDG_CONFIG_HOME/gate0/secrets`, `~/.config/gate0/secrets` when that is not set."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "gate0" / "secrets"


def resolve_env(
    profile: Profile,
    *,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    loaded: Loaded | None = None,
) -> dict[str, str | Secret]:
    """The profile's environment for the server, references replaced by secrets.

    Args:
        environ: Where secrets are looked for first; None: this program's environment.
        file: The secrets file; None: `default_secrets_file`.
        loaded: Lets messages name the line of a reference.

    Raises:
        InputError: A secret is not to be had, or the secrets file cannot be used.
    """
    known = os.environ if environ is None else environ
    place = file or default_secrets_file(known)
    env: dict[str, str | Secret] = {}
    for name, value in profile.env.items():
        if isinstance(value, SecretRef):
            where = str(loaded.place_of(f"env.{name}")) if loaded is not None else None
            env[name] = resolve(value, environ=known, file=place, where=where or f"env.{name}")
        elif value is not None:
            env[name] = value
    return env


def resolve(
    ref: SecretRef, *, environ: Mapping[str, str] | None = None, file: Path | None = None, where: str | None = None
) -> Secret:
    """One secret, from the environment, else from the secrets file.

    Args:
        environ, file: As in `resolve_env`.
        where: What names it (`profile.yaml:12`), for the message.

    Raises:
        InputError: It is in neither, or the file cannot be used.
    """
    known = os.environ if environ is None else environ
    if value := known.get(ref.name):
        return Secret(ref.name, value)
    place = file or default_secrets_file(known)
    stored = read_secrets_file(place)
    if value := stored.get(ref.name):
        return Secret(ref.name, value)
    named = f", named at {where}" if where else ""
    raise InputError(
        f"secret `{ref.name}`{named} is not set{did_you_mean(ref.name, stored)}",
        hint=f"export {ref.name}, or add the line `{ref.name}=…` to {place} (mode 600)",
    )


def generated_key_file(profile_name: str, environ: Mapping[str, str] | None = None) -> Path:
    """`$XDG_STATE_HOME/gate0/keys/PROFILE`, below `~/.local/state` when that is not set."""
    known = os.environ if environ is None else environ
    base = known.get("XDG_STATE_HOME") or str(Path(known.get("HOME", "~")).expanduser() / ".local" / "state")
    return Path(base) / "gate0" / "keys" / profile_name


def kept_key(file: Path, new: Callable[[], str]) -> Secret:
    """The key in the file; a new one is written there (mode 600) when there is no file yet.

    Two that come at the same time get the same key.

    Raises:
        InputError: The file can be read by others, is empty, or cannot be read or written.
    """
    try:
        if not file.exists():
            _write_key(file, new())
        _refuse_open_to_others(file)
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(
            f"cannot keep the generated key in {file}: {type(exc).__name__}",
            hint="make its folder writable, set XDG_STATE_HOME, or name a key of your own: `api_key: {secret: NAME}`",
        ) from exc
    if not key:
        raise InputError(f"{file} holds no key", hint=f"remove it, and a new key is generated: `rm {file}`")
    return Secret("api_key", key)


def _write_key(file: Path, key: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(f"{key}\n")
        # A link, not a rename: who comes second finds the first one's key.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, file)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _refuse_open_to_others(file: Path) -> None:
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        raise InputError(f"{file} can be read by others (mode {mode:04o})", hint=f"chmod 600 {file}")


def read_secrets_file(file: Path) -> Mapping[str, str]:
    """The file's `NAME=value` lines; empty when there is no file. Blank lines and `#` lines are skipped.

    Raises:
        InputError: Others can read it, it is not readable, or a line is not of that form (its text is never shown).
    """
    try:
        _refuse_open_to_others(file)
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(f"cannot read the secrets file {file}: {type(exc).__name__}") from exc
    return dict(_pair(file, number, line) for number, line in enumerate(lines, 1) if _has_content(line))


def _pair(file: Path, number: int, line: str) -> tuple[str, str]:
    pair = _LINE.fullmatch(line.strip())
    if pair is None:
        raise InvalidFile([Problem(file=str(file), line=number, path="", message="expected `NAME=value`")])
    name, value = pair[1], pair[2].strip()
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return name, value[1:-1] if is_quoted else value


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")
