"""Load a profile: find it, lay it upon its parents, check everything at once, build the model.

A document keeps the file and line of each value through the merge, so a problem that a parent brought in is reported in
the parent's file. Checks run on the merged document: only there is it known what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.profile.building import build_profile, resolved_value
from orchestrator.profile.checking import check, in_order
from orchestrator.profile.finding import OTHER_FOLDERS, find_profile, is_path, list_files, shipped_dir
from orchestrator.profile.model import Profile
from orchestrator.profile.rules import broken_rules
from orchestrator.profile.schemas import profile_schema
from orchestrator.profile.steps import dotted, steps_of
from orchestrator.profile.wording import did_you_mean
from orchestrator.profile.yaml_lines import Document, Node, Place, load_document, merge, read_text
from orchestrator.values import Json

_PATH_WORD = re.compile(r"(?:(?<=given as )\w|\w+[.\[])[\w.\[\]-]*[\w\]]")
"""What may be a dotted path in an engine's message: a word with a dot or an index, any word after "given as"."""
NOT_INHERITED = frozenset({"name", "title", "note", "extends"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A profile and where each part of it was written.

    Attributes:
        text: The file as written.
        resolved: What the file and its parents come to, as plain JSON in the file's own words.
        document: The same with places.
        parents: Parents as profiles of their own, nearest first.
    """

    profile: Profile
    text: str
    path: Path
    resolved: Mapping[str, Json]
    document: Document
    parents: tuple[Profile, ...] = ()

    def place_of(self, path: str) -> Place:
        """File and line of a dotted path (`serve.max_model_len`), or of its nearest ancestor that was written."""
        return self.document.place_of(steps_of(path, self.document))


def search_path(working_dir: Path = Path()) -> tuple[Path, ...]:
    """Where names are looked for: `profiles` in the working directory, then the shipped ones."""
    own, shipped = working_dir / "profiles", shipped_dir()
    return (own,) if own.resolve() == shipped.resolve() else (own, shipped)


def load_profile(name_or_path: str, *, search: Sequence[Path], engines: Collection[str] | None = None) -> Loaded:
    """Load a profile by name or path.

    Args:
        search: Folders for names, first wins (`search_path()`).
        engines: Names of the installed engines; None: any name is taken.

    Raises:
        InputError: No such profile, or the name is ambiguous.
        InvalidFile: Everything that is wrong with it and its parents.
    """
    return load_file(find_profile(name_or_path, search), search=search, engines=engines)


def load_file(path: Path, *, search: Sequence[Path], engines: Collection[str] | None = None) -> Loaded:
    """As `load_profile`, from a path."""
    chain = _read_chain(path, search)
    return _loaded(chain, engines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A profile that can be named, as far as its file can be read; None where it cannot."""

    name: str
    path: Path
    engine: str | None
    title: str | None


def list_profiles(search: Sequence[Path]) -> tuple[Listed, ...]:
    """All profiles that can be named, by name, with what their files and parents say; nothing is checked."""
    return tuple(_listed(entry.name, entry.path, search) for entry in list_files(search, other_folders=OTHER_FOLDERS))


def problems_at(loaded: Loaded, found: Sequence[tuple[str, str]]) -> InvalidFile:
    """Turn an engine's `(dotted path, message)` findings into problems with file and line.

    Where a message names another path of the same profile (`serve.max_model_len`), that one's place is added, so a
    setting given twice names both lines.
    """
    return InvalidFile(in_order([_problem_at(loaded, path, message) for path, message in found]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """One file of a chain of parents."""

    path: Path
    text: str
    document: Document


def _read_chain(path: Path, search: Sequence[Path]) -> tuple[_Link, ...]:
    """The file and its parents, nearest first."""
    links = [_read(path)]
    while (parent := _parent_name(links[-1].document)) is not None:
        found = _find_parent(parent, links[-1], search)
        _refuse_cycle(found, links)
        links.append(_read(found))
    return tuple(links)


def _read(path: Path) -> _Link:
    text = read_text(path)
    document = load_document(text, str(path))
    if not isinstance(document.root.content, Mapping):
        raise InvalidFile(check(document, profile_schema(), str(path)))
    return _Link(path=path, text=text, document=document)


def _parent_name(document: Document) -> str | None:
    node = document.find(("extends",))
    return node.content if node is not None and isinstance(node.content, str) and node.content else None


def _find_parent(name: str, child: _Link, search: Sequence[Path]) -> Path:
    beside = child.path.parent
    try:
        if is_path(name) and not name.startswith(("/", "~")):
            path = str(beside / name)
            # `./args` beside a file named without a folder comes to `args`, which would be a name.
            return find_profile(path if is_path(path) else f"./{path}", search)
        return find_profile(name, search if _is_searched(beside, search) else (beside, *search))
    except InputError as exc:
        what = f"no such parent: {exc.message}" + (f"; {exc.hint}" if exc.hint else "")
        raise InvalidFile([_problem(child.document, "extends", what)]) from exc


def _is_searched(folder: Path, search: Sequence[Path]) -> bool:
    return bool(search) and folder.resolve() == search[0].resolve()


def _refuse_cycle(found: Path, links: Sequence[_Link]) -> None:
    met = [link.path.resolve() for link in links]
    if found.resolve() in met:
        circle = " -> ".join([link.path.name for link in links[met.index(found.resolve()) :]] + [found.name])
        raise InvalidFile([_problem(links[-1].document, "extends", f"parents go round in a circle: {circle}")])


def _loaded(chain: Sequence[_Link], engines: Collection[str] | None) -> Loaded:
    documents = _merged(chain)
    problems = [p for document in documents for p in _problems_in(document, engines)]
    if problems:
        raise InvalidFile(in_order(problems))
    values = [resolved_value(document) for document in documents]
    names = [str(value["name"]) for value in values]
    profiles = [
        build_profile(value, source=str(link.path), lineage=tuple(names[index + 1 :]))
        for index, (value, link) in enumerate(zip(values, chain, strict=True))
    ]
    return Loaded(
        profile=profiles[0],
        text=chain[0].text,
        path=chain[0].path,
        resolved=values[0],
        document=documents[0],
        parents=tuple(profiles[1:]),
    )


def _merged(chain: Sequence[_Link]) -> tuple[Document, ...]:
    """Each file laid upon its parents, nearest first."""
    merged = [chain[-1].document]
    for link in reversed(chain[:-1]):
        merged.append(merge(_heritable(merged[-1]), link.document))
    return tuple(reversed(merged))


def _heritable(document: Document) -> Document:
    entries = document.root.content
    kept = {k: v for k, v in entries.items() if k not in NOT_INHERITED} if isinstance(entries, Mapping) else {}
    return replace(document, root=replace(document.root, content=kept))


def _problems_in(document: Document, engines: Collection[str] | None) -> tuple[Problem, ...]:
    found = (*check(document, profile_schema(), document.file), *broken_rules(document))
    engine: Node | None = document.find(("engine",))
    if engines is None or engine is None or not isinstance(engine.content, str) or engine.content in engines:
        return found
    near = did_you_mean(engine.content, engines)
    what = f"no engine `{engine.content}` is installed{near or '; installed: ' + ', '.join(sorted(engines))}"
    return (*found, _problem(document, "engine", what))


def _listed(name: str, path: Path, search: Sequence[Path]) -> Listed:
    try:
        document = _merged(_read_chain(path, search))[0]
    except InputError:
        return Listed(name=name, path=path, engine=None, title=None)
    return Listed(name=name, path=path, engine=document.written(("engine",)), title=document.written(("title",)))


def _problem_at(loaded: Loaded, path: str, message: str) -> Problem:
    steps = steps_of(path, loaded.document)
    place = loaded.document.place_of(steps)
    others = [
        f"`{dotted(other)}` is at {loaded.document.place_of(other)}"
        for word in dict.fromkeys(_PATH_WORD.findall(message))
        if dotted(other := steps_of(word, loaded.document)) == word and other != steps
    ]
    shown = f"{message} ({', '.join(others)})" if others else message
    return Problem(file=place.file, line=place.line, path=path, message=shown)


def _problem(document: Document, key: str, message: str) -> Problem:
    place = document.place_of((key,))
    return Problem(file=place.file, line=place.line, path=key, message=message)
