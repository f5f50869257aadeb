"""Workloads from files: found by name, read with the line of every value, changed by `--set`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from orchestrator.errors import InputError
from orchestrator.profile.checking import require
from orchestrator.profile.schemas import Schema, read_schema
from orchestrator.profile.yaml_lines import Document, load_document, merge, read_document
from orchestrator.sweep.workload import Kind, Workload
from orchestrator.values import Json

LISTS = frozenset({"kinds", "prompt_tokens", "output_tokens", "concurrency"})
SET = "--set"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWorkload:
    """A workload file that can be named. `title` None: it has none, or the file cannot be read."""

    name: str
    title: str | None
    path: Path


def workload_schema() -> Schema:
    """The schema of workload files; its descriptions are the manual."""
    return read_schema("orchestrator.sweep", "workload.schema.json")


def search_path() -> tuple[Path, ...]:
    """Where a bare name is looked for: the working directory's profiles first, then the shipped ones."""
    package = Path(str(files("orchestrator")))
    shipped = (package / "shipped" / "workloads", package.parent / "profiles" / "workloads")
    return (Path("profiles", "workloads"), *shipped)


def list_workloads(search: Sequence[Path]) -> tuple[FoundWorkload, ...]:
    """All workloads that a bare name reaches, by name; an earlier directory hides a later one's."""
    found: dict[str, Path] = {}
    for directory in search:
        for path in sorted(directory.glob("*.yaml")):
            found.setdefault(path.stem, path)
    return tuple(FoundWorkload(name=n, title=_title(p), path=p) for n, p in sorted(found.items()))


def _title(path: Path) -> str | None:
    try:
        value = read_document(path).value
    except InputError:
        return None
    title = value.get("title") if isinstance(value, Mapping) else None
    return title if isinstance(title, str) else None


def load_workload(name_or_path: str, *, search: Sequence[Path]) -> Workload:
    """Read a workload by name or by path.

    Raises:
        InputError: There is no such file.
        InvalidFile: With every problem in it at once.
    """
    path = find_workload(name_or_path, search=search)
    document = read_document(path)
    require(document, workload_schema(), str(path))
    return _workload(document.value)


def find_workload(name_or_path: str, *, search: Sequence[Path]) -> Path:
    """
    Raises:
        InputError: Nothing has that name, with the nearest that exists.
    """
    if name_or_path.endswith((".yaml", ".yml")) or "/" in name_or_path:
        path = Path(name_or_path)
        if not path.is_file():
            raise InputError(f"no workload file {name_or_path}")
        return path
    for directory in search:
        if (path := directory / f"{name_or_path}.yaml").is_file():
            return path
    names = [w.name for w in list_workloads(search)]
    near = difflib.get_close_matches(name_or_path, names, n=1)
    known = f"known: {', '.join(names)}" if names else f"looked in {', '.join(map(str, search))}"
    raise InputError(
        f"no workload named {name_or_path!r}", hint=f"did you mean {near[0]!r}? {known}" if near else known
    )


def parse_overrides(texts: Sequence[str]) -> Mapping[str, str]:
    """`["concurrency=1,4"]` as a mapping; a later one wins.

    Raises:
        InputError: One has no `=`.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise InputError(f"{SET} {text}: expected KEY=VALUE", hint="for example --set concurrency=1,4")
        pairs[key.strip()] = value.strip()
    return pairs


def with_overrides(workload: Workload, changes: Mapping[str, str]) -> Workload:
    """The workload with some keys changed; values are read as in a file, lists may stand without brackets.

    Raises:
        InvalidFile: A key is unknown or a value does not fit.
    """
    if not changes:
        return workload
    document = load_document(f"name: {workload.name}", SET)
    for key, text in changes.items():
        written = f"[{text}]" if key in LISTS and not text.startswith("[") else text
        document = merge(document, load_document(f"{key}: {written}", SET))
    require(document, workload_schema(), SET)
    return _workload({**as_mapping(workload), **_mapping(document)})


def as_mapping(workload: Workload) -> dict[str, Json]:
    """The workload as its file would say it."""
    plain: dict[str, Json] = {}
    for f in fields(workload):
        value = getattr(workload, f.name)
        plain[f.name] = [str(v) if isinstance(v, Kind) else v for v in value] if f.name in LISTS else value
    return plain


def _mapping(document: Document) -> Mapping[str, Json]:
    value = document.value
    assert isinstance(value, Mapping), "checked against the schema"
    return value


def _workload(value: Json) -> Workload:
    """From a value that fits the schema."""
    assert isinstance(value, Mapping), "checked against the schema"
    plain: dict[str, Any] = {k: v for k, v in value.items() if v is not None}
    for key in LISTS & plain.keys():
        listed = plain[key] if isinstance(plain[key], list) else [plain[key]]
        plain[key] = tuple(Kind(v) for v in listed) if key == "kinds" else tuple(listed)
    for key in {"temperature", "request_timeout_s"} & plain.keys():
        plain[key] = float(plain[key])
    return Workload(**plain)
