"""Files of derived data: sealed by a digest, of one version of the program, never an error.

    results/.derived/<run>/…      `gate0 results clean --derived` or `rm -r` deletes it

The first line of a file names its format, the version that its content follows from, and the digest of the rest. What
does not fit is not there: it is computed again. A folder that cannot be written keeps nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from orchestrator import __version__

FOLDER = ".derived"
FORMAT = "gate0-derived/1"
SOURCES = ("orchestrator.figures", "orchestrator.records", "orchestrator.report.derived")
"""Packages whose text decides what a raw record comes to: with a change in them everything is computed again."""

TAG = "CACHEDIR.TAG"
TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# Derived from the records beside it; may be deleted.\n"
"""https://bford.info/cachedir: backup programs pass over such a folder."""


@cache
def version() -> str:
    """Of the program and of the text of its definitions."""
    texts = hashlib.sha256(__version__.encode())
    for package in SOURCES:
        for path in sorted(files(package).iterdir(), key=lambda p: p.name):
            if path.name.endswith(".py"):
                texts.update(path.name.encode() + b"\0" + path.read_bytes())
    return texts.hexdigest()[:16]


def stamp(path: Path) -> list[int] | None:
    """What changes with a file's content: size, times of change and place on the disk; None: it is not there."""
    try:
        s = os.stat(path)
    except OSError:
        return None
    return [s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino]


def read(path: Path) -> Any:
    """The content; None where there is none, or none that this version wrote and that is whole."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        if head != _head(body):
            return None
        return orjson.loads(body)
    except (OSError, ValueError):
        return None


def write(path: Path, content: Any) -> bool:
    """Put it there in one step; False where that cannot be done (a full or read-only disk, what JSON cannot say)."""
    try:
        body = orjson.dumps(content)
        path.parent.mkdir(parents=True, exist_ok=True)
        _tag(path)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_head(body) + b"\n" + body)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, TypeError):  # orjson's own error is a TypeError
        return False
    return True


def clean(root: Path) -> int:
    """Delete what is derived in a results folder; the bytes freed.

    Raises:
        OSError: It cannot be deleted.
    """
    folder = root / FOLDER
    if folder.is_symlink() or not folder.is_dir():
        return 0
    freed = sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file())
    shutil.rmtree(folder)
    return freed


def _head(body: bytes) -> bytes:
    return f"{FORMAT} {version()} {hashlib.sha256(body).hexdigest()}".encode()


def _tag(path: Path) -> None:
    folder = next((p for p in path.parents if p.name == FOLDER), None)
    if folder is not None and not (folder / TAG).exists():
        with contextlib.suppress(OSError):
            (folder / TAG).write_text(TAG_TEXT)
            (folder / ".gitignore").write_text("*\n")
