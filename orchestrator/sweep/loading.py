"""Workloads from files: found by name, read with the line of every value, changed by `--set`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.profile.checking import check, in_order
from orchestrator.profile.schemas import Schema, read_schema
from orchestrator.profile.yaml_lines import read_document
from orchestrator.sweep.overrides import is_override, with_changes
from orchestrator.sweep.workload import Workload
from orchestrator.sweep.workload_checks import cross_problems
from orchestrator.sweep.workload_values import workload_of


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


def load_workload(name_or_path: str, *, search: Sequence[Path], changes: Mapping[str, str] | None = None) -> Workload:
    """Read a workload by name or by path, and the files it names.

    Args:
        changes: `parse_overrides` of `--set`: laid upon the file before it is checked.

    Raises:
        InputError: There is no such file.
        InvalidFile: With every problem in it at once, each at its line or its override.
    """
    path = find_workload(name_or_path, search=search)
    schema, written = workload_schema(), read_document(path)
    try:
        document = with_changes(written, changes or {}, schema)
        if problems := check(document, schema, str(path)) or cross_problems(document, written, schema):
            raise InvalidFile(in_order(list(problems)))
        workload = workload_of(document)
    except InvalidFile as exc:
        raise InvalidFile([_placed(problem) for problem in exc.problems], hint=exc.hint) from exc
    _require_distinct(workload, path)
    return workload


def _placed(problem: Problem) -> Problem:
    """An override has no lines."""
    return replace(problem, line=None) if is_override(problem.file) else problem


def _require_distinct(workload: Workload, path: Path) -> None:
    ids = [cell.id for cell in workload.cells()]
    if twice := next((i for i in ids if ids.count(i) > 1), None):
        what = f"two of its cells would both be called {twice}: write the sizes so that they differ"
        raise InvalidFile([Problem(file=str(path), line=None, path="", message=what)])


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
