"""OpenSSH's known_hosts format, read and written without an SSH library: names, patterns, hashes, markers.

Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import fnmatch
import hashlib
import hmac
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.fleet.inventory import DEFAULT_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """A host's public key: its type (`ssh-ed25519`, `ssh-rsa`, `ecdsa-sha2-…`) and its blob."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    @property
    def display(self) -> str:
        """Type and fingerprint, `ssh-ed25519 SHA256:…`."""
        return f"{self.type} {self.fingerprint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """One line that matched: where it stands, its key, and its marker (`@revoked`, `@cert-authority`) if any."""

    file: str
    line: int
    key: HostKey
    marker: str | None = None


def host_label(address: str, port: int) -> str:
    """The name that known_hosts has for an address: bare at port 22, else `[address]:port`."""
    return address if port == DEFAULT_PORT else f"[{address}]:{port}"


def find_keys(text: str, label: str, *, file: str) -> tuple[KnownHost, ...]:
    """The lines of a known_hosts text that speak of `label`; lines that cannot be read are skipped, as ssh does."""
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.split()
        if not words or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else None
        if len(words) < 3 or not _names_match(words[0], label):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        found.append(KnownHost(file=file, line=number, key=HostKey(type=words[1], blob=blob), marker=marker))
    return tuple(found)


def read_keys(files: Iterable[str], label: str) -> tuple[KnownHost, ...]:
    """The same over files; one that is not there is empty."""
    found: list[KnownHost] = []
    for file in files:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            text = Path(file).expanduser().read_text(encoding="utf-8", errors="replace")
            found += find_keys(text, label, file=file)
    return tuple(found)


def append_key(file: Path, label: str, key: HostKey) -> None:
    """Add a line to a known_hosts file atomically; the file is only for its owner (0600), its folder too (0700).

    Raises:
        OSError: The file cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = Path(os.path.realpath(file))  # a symlinked known_hosts stays a symlink
    before = place.read_bytes() if place.exists() else b""
    if before and not before.endswith(b"\n"):
        before += b"\n"
    line = f"{label} {key.type} {base64.b64encode(key.blob).decode()}\n"
    descriptor, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)  # mkstemp: 0600
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(before + line.encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _names_match(names: str, label: str) -> bool:
    """Whether a line's first word speaks of the label: exact, pattern, `!pattern`, or a salted hash."""
    if names.startswith("|1|"):
        return _hash_matches(names, label)
    is_match = False
    for pattern in names.lower().split(","):
        is_negated = pattern.startswith("!")
        if _glob_matches(pattern.removeprefix("!"), label.lower()):
            if is_negated:
                return False
            is_match = True
    return is_match


def _glob_matches(pattern: str, label: str) -> bool:
    """ssh's patterns know only `*` and `?`; a bracket is a bracket, as in `[address]:port`."""
    return fnmatch.fnmatchcase(label, pattern.replace("[", "[[]"))


def _hash_matches(hashed: str, label: str) -> bool:
    parts: Sequence[str] = hashed.split("|")
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[2:4])
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, label.encode(), hashlib.sha1).digest(), digest)
