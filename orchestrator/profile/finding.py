"""Find a profile, or another of our YAML files, by name: in ./profiles first, then among the shipped ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orchestrator
from orchestrator.errors import InputError
from orchestrator.profile.wording import did_you_mean

SUFFIXES = (".yaml", ".yml")
OTHER_FOLDERS = frozenset({"workloads", "suites"})
"""Subfolders of a profile folder that hold other things than profiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file that can be named. `name`: what to type, the bare stem where that is unique, else `folder/stem`."""

    name: str
    path: Path


def shipped_dir() -> Path:
    """The folder of shipped profiles: in an installed wheel inside the package, in a checkout beside it."""
    package = Path(orchestrator.__file__).parent
    installed = package / "shipped"
    return installed if installed.is_dir() else package.parent / "profiles"


def is_path(name_or_path: str) -> bool:
    """True when it can only be a path: it has a YAML suffix, or starts with `/`, `./`, `../` or `~`."""
    return name_or_path.endswith(SUFFIXES) or name_or_path.startswith(("/", "./", "../", "~"))


def find_profile(name_or_path: str, search: Sequence[Path]) -> Path:
    """The file that a name or path means; the first folder that knows the name wins.

    Raises:
        InputError: There is none (with the nearest name), or one folder has several.
    """
    return find_file(name_or_path, search, kind="profile", other_folders=OTHER_FOLDERS)


def find_file(
    name_or_path: str, search: Sequence[Path], *, kind: str, other_folders: frozenset[str] = frozenset()
) -> Path:
    """As `find_profile`, for any kind of file; `kind` is its word in messages.

    Raises:
        InputError: There is none (with the nearest name), or one folder has several.
    """
    if is_path(name_or_path):
        path = _expanded(name_or_path)
        for candidate in (path, *(Path(f"{path}{suffix}") for suffix in SUFFIXES)):
            if _is_file(candidate):
                return candidate
        raise InputError(f"{kind} {name_or_path}: no such file", hint=_path_hint(path))
    for folder in search:
        if found := _in_folder(name_or_path, folder, other_folders):
            return _the_only(found, name_or_path, kind)
    known = [entry.name for entry in list_files(search, other_folders=other_folders)]
    near = did_you_mean(name_or_path, known)
    hint = near.removeprefix("; ") or (f"known: {', '.join(known)}" if known else f"give a path to a {kind}")
    places = ", ".join(str(folder) for folder in search)
    raise InputError(f"no {kind} is named `{name_or_path}` (looked in {places})", hint=hint)


def list_files(search: Sequence[Path], *, other_folders: frozenset[str] = frozenset()) -> tuple[Entry, ...]:
    """All files that can be named, by name; one hidden by an earlier folder is left out. Reads no file."""
    entries: dict[str, Entry] = {}
    for folder in search:
        files = list(_files(folder, other_folders))
        stems = [_stem(path) for path in files]
        for path in files:
            stem = _stem(path)
            is_bare = stems.count(stem) == 1 or path.parent == folder
            name = stem if is_bare else f"{path.parent.relative_to(folder).as_posix()}/{stem}"
            entries.setdefault(name, Entry(name=name, path=path))
    return tuple(entries[name] for name in sorted(entries))


def _in_folder(name: str, folder: Path, other_folders: frozenset[str]) -> tuple[Path, ...]:
    exact = tuple(path for suffix in SUFFIXES if _is_file(path := folder / f"{name}{suffix}"))
    if exact and not other_folders.intersection(name.split("/")[:-1]):
        return exact
    wanted = tuple(name.split("/"))
    return tuple(path for path in _files(folder, other_folders) if _tail(path, len(wanted)) == wanted)


def _tail(path: Path, length: int) -> tuple[str, ...]:
    return (*path.parts[:-1], _stem(path))[-length:]


def _files(folder: Path, other_folders: frozenset[str]) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.suffix in SUFFIXES and path.is_file() and not other_folders.intersection(inside[:-1]):
            yield path


def _the_only(found: tuple[Path, ...], name: str, kind: str) -> Path:
    if len(found) == 1:
        return found[0]
    both = " and ".join(str(path) for path in found)
    raise InputError(f"{kind} `{name}` could be {both}", hint="give the path, or the folder and the name")


def _path_hint(path: Path) -> str | None:
    siblings = [p.name for p in path.parent.iterdir() if p.suffix in SUFFIXES] if path.parent.is_dir() else []
    return did_you_mean(path.name, siblings).removeprefix("; ") or None


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as exc:
        raise InputError(f"{path}: no such user here") from exc


def _is_file(path: Path) -> bool:
    # A name can be too long for the file system, or hold a NUL: then there is no such file.
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _stem(path: Path) -> str:
    return path.name.removesuffix(path.suffix)
