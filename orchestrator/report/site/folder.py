"""Writing the folder: only into one that is ours or free, and of ours only what we wrote is ever removed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.errors import InputError, StoreError
from orchestrator.records.store import write_atomically

MARKER = ".gate0-site.json"
FORMAT = "gate0-site/1"
_OURS = re.compile(r"(?:configurations/)?[A-Za-z0-9][A-Za-z0-9._-]*\.(?:html|css|js)")


def write_site(files: Mapping[str, str], folder: Path) -> None:
    """Write what changed, then the marker with all names, then remove what an earlier marker named and is no more.

    Raises:
        InputError: A file of that name is there, and no marker says that it is ours.
        StoreError: The folder cannot be written.
    """
    before = _marked(folder)
    if before is None:
        taken = sorted(name for name in files if (folder / name).exists())
        if taken:
            raise InputError(
                f"{folder / taken[0]} is there and was not written by `gate0 report --format site`",
                hint="choose an empty folder with `-o DIR`",
            )
    try:
        # Named before they are written, so that an interrupted one is ours too.
        _mark(folder, {*files, *(before or ())})
        for name, text in files.items():
            _write(folder / name, text)
        for name in sorted(set(before or ()) - set(files)):
            (folder / name).unlink(missing_ok=True)
        _mark(folder, files)
    except OSError as exc:
        raise StoreError(f"cannot write {folder}: {exc.strerror}", hint="choose another place with `-o DIR`") from exc


def _marked(folder: Path) -> tuple[str, ...] | None:
    """The names that the marker lists, those that could be ours; None without a marker that can be read."""
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            return None
        return tuple(name for name in found["files"] if isinstance(name, str) and _OURS.fullmatch(name))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _mark(folder: Path, names: Iterable[str]) -> None:
    text = json.dumps({"format": FORMAT, "files": sorted(names)}, indent=1) + "\n"
    _write(folder / MARKER, text)


def _write(path: Path, text: str) -> None:
    """Untouched where it says the same already: a copy to a host sends what changed."""
    try:
        if path.read_bytes() == text.encode():
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
