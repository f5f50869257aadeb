"""YAML read safely, with the file and line of every value.

Theory of operation: PyYAML's event stream (never its constructors) is folded into a tree of `Node`s. Each node knows
the file and line it was written on, so two documents can be merged (`extends`) and a problem in the merged value still
names the file and line where its author wrote it. Scalars are read by `scalars.read_plain`; keys are always text as
written. Aliases and merge keys work, bounded in depth and in expanded size; tags do not, except `!!str`.

Anything that is not such a document is an InvalidFile with all problems that could be found before giving up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from orchestrator.errors import InputError, InvalidFile, Problem
from orchestrator.profile.scalars import Scalar, read_plain
from orchestrator.profile.yaml_syntax import syntax_problem
from orchestrator.values import Json

MAX_CHARACTERS = 300_000
MAX_DEPTH = 40
MAX_NODES = 50_000
"""Counted after aliases are expanded: a file of nested aliases cannot grow past it."""

Steps = tuple[str | int, ...]
"""Keys and list positions from the root, `("serve", "max_model_len")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something was written; `line` is 1-based."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value and where it was written: for a mapping's value, the line of its key.

    Attributes:
        content: A scalar, the items of a list, or the entries of a mapping.
        written: A scalar's text as typed, quotes removed; None for lists and mappings.
        is_plain: The scalar was written without quotes.
        size: Nodes in this subtree, itself included, aliases expanded.
        height: Levels below this node, aliases expanded; 0 for a scalar.
    """

    place: Place
    content: Scalar | tuple[Node, ...] | Mapping[str, Node]
    written: str | None = None
    is_plain: bool = False
    size: int = 1
    height: int = 0

    def child(self, step: str | int) -> Node | None:
        """The entry or item at one step, None when there is none."""
        if isinstance(self.content, Mapping):
            return self.content.get(str(step))
        if isinstance(self.content, tuple) and isinstance(step, int) and 0 <= step < len(self.content):
            return self.content[step]
        return None

    def plain(self) -> Json:
        """The subtree as plain Python values."""
        if isinstance(self.content, Mapping):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, tuple):
            return [node.plain() for node in self.content]
        return self.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file's value with the line of every part of it."""

    file: str
    root: Node

    @property
    def value(self) -> Json:
        """The document as plain Python: dict, list, str, int, float, bool, None."""
        return self.root.plain()

    def find(self, path: Sequence[str | int]) -> Node | None:
        """The node at a path, None when there is none."""
        node: Node | None = self.root
        for step in path:
            node = node.child(step) if node is not None else None
        return node

    def place_of(self, path: Sequence[str | int]) -> Place:
        """File and line of the value at a path, or of its nearest ancestor that exists."""
        node = self.root
        for step in path:
            below = node.child(step)
            if below is None:
                break
            node = below
        return node.place

    def line_of(self, path: Sequence[str | int]) -> int:
        """The line of `place_of`."""
        return self.place_of(path).line

    def written(self, path: Sequence[str | int]) -> str | None:
        """The scalar at a path as typed, quotes removed; None for lists, mappings and absent paths."""
        node = self.find(path)
        return None if node is None else node.written


def merge(base: Document, over: Document) -> Document:
    """`over` laid upon `base`: mappings merge key by key, anything else (lists, null) replaces. Places are kept."""
    return Document(file=over.file, root=_merge_nodes(base.root, over.root))


def read_document(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        InputError: It cannot be read.
        InvalidFile: It is not UTF-8, or as `load_document`.
    """
    return load_document(read_text(path), str(path))


def read_text(path: Path) -> str:
    """A file's text.

    Raises:
        InputError: It cannot be read.
        InvalidFile: It is not UTF-8, with the line of the first wrong byte.
    """
    try:
        raw = path.read_bytes()
    except OSError as exc:
        raise InputError(f"cannot read {path}: {exc.strerror or exc}") from exc
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        what = f"not UTF-8 text: byte 0x{raw[exc.start]:02x}"
        raise InvalidFile([Problem(file=str(path), line=line, path="", message=what)]) from exc


def load_document(text: str, file: str) -> Document:
    """Parse YAML text; `file` is the name shown in problems.

    Raises:
        InvalidFile: Syntax errors, duplicate keys, tags, non-text keys, several documents, too deep or too large.
    """
    if len(text) > MAX_CHARACTERS:
        what = f"too large: {len(text)} characters, at most {MAX_CHARACTERS}"
        raise InvalidFile([Problem(file=file, line=None, path="", message=what)])
    builder = _Builder(file=file)
    try:
        root = builder.document(yaml.parse(text, Loader=yaml.SafeLoader))
    except _GaveUp as stop:
        builder.problems.append(stop.problem)
    # PyYAML's scanner lets ValueError and OverflowError out: "\UFFFFFFFF" and over-long %YAML versions.
    except (yaml.YAMLError, ValueError, OverflowError) as exc:
        builder.problems.append(syntax_problem(exc, text, file))
    if builder.problems:
        raise InvalidFile(sorted(builder.problems, key=lambda p: p.line or 0))
    return Document(file=file, root=root)


class _GaveUp(Exception):
    """Reading cannot go on after this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(slots=True, kw_only=True)
class _Builder:
    """Folds events into nodes; collects what is wrong but readable, gives up on what is not."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, Node | None] = field(default_factory=dict)
    nodes: int = 0

    def document(self, events: Iterator[Any]) -> Node:
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise _GaveUp(self._problem(event, "a second document: one per file, remove the `---` before it"))
            if isinstance(event, yaml.NodeEvent):
                root = self._node(event, events, depth=0)
        return root or Node(place=Place(file=self.file, line=1), content=None)

    def _node(self, event: Any, events: Iterator[Any], *, depth: int) -> Node:
        self._count(event, 1)
        self._check_depth(event, depth)
        if isinstance(event, yaml.AliasEvent):
            node = self._alias(event)
            self._check_depth(event, depth + node.height)
            return node
        self._check_tag(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = self._fold(event, events, depth=depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _fold(self, event: Any, events: Iterator[Any], *, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(event, events, depth=depth)
        return self._mapping(event, events, depth=depth)

    def _scalar(self, event: Any) -> Node:
        if any(0xD800 <= ord(c) <= 0xDFFF for c in event.value):
            self.problems.append(self._problem(event, "half a surrogate pair is not text: write the character itself"))
        is_plain = not event.style and event.tag is None
        value = read_plain(event.value) if is_plain else event.value
        return Node(place=self._place(event), content=value, written=event.value, is_plain=is_plain)

    def _list(self, event: Any, events: Iterator[Any], *, depth: int) -> Node:
        items: list[Node] = []
        while not isinstance(inner := next(events), yaml.SequenceEndEvent):
            items.append(self._node(inner, events, depth=depth + 1))
        return _branch(self._place(event), tuple(items), items)

    def _mapping(self, event: Any, events: Iterator[Any], *, depth: int) -> Node:
        entries: dict[str, Node] = {}
        inherited: dict[str, Node] = {}
        while not isinstance(key_event := next(events), yaml.MappingEndEvent):
            key = self._node(key_event, events, depth=depth + 1)
            value = self._node(next(events), events, depth=depth + 1)
            if key.written == "<<" and key.is_plain:
                inherited = {**self._merged(value), **inherited}
            elif (name := self._key(key)) is not None:
                self._refuse_duplicate(name, key, entries.get(name))
                entries[name] = replace(value, place=key.place)
        content = {**inherited, **entries}
        return _branch(self._place(event), content, list(content.values()))

    def _key(self, key: Node) -> str | None:
        if key.written:
            return key.written
        what = "an empty key" if key.written is not None else "a list or mapping as a key: keys are text"
        self.problems.append(self._at(key.place.line, what))
        return None

    def _refuse_duplicate(self, name: str, key: Node, before: Node | None) -> None:
        if before is not None:
            what = f"key `{name}` is written twice: lines {before.place.line} and {key.place.line}"
            self.problems.append(self._at(key.place.line, what))

    def _merged(self, value: Node) -> dict[str, Node]:
        sources = value.content if isinstance(value.content, tuple) else (value,)
        found: dict[str, Node] = {}
        for source in sources:
            if isinstance(source.content, Mapping):
                found = {**source.content, **found}
            else:
                self.problems.append(self._at(value.place.line, "`<<` takes a mapping, or a list of mappings"))
        return found

    def _alias(self, event: Any) -> Node:
        if event.anchor not in self.anchors:
            known = ", ".join(f"&{name}" for name in self.anchors) or "none"
            raise _GaveUp(self._problem(event, f"alias `*{event.anchor}` has no anchor above it; anchors: {known}"))
        node = self.anchors[event.anchor]
        if node is None:
            raise _GaveUp(self._problem(event, f"alias `*{event.anchor}` stands inside its own anchor"))
        self._count(event, node.size)
        return replace(node, place=self._place(event))

    def _count(self, event: Any, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise _GaveUp(self._problem(event, f"more than {MAX_NODES} values once aliases are expanded"))

    def _check_depth(self, event: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _GaveUp(self._problem(event, f"nested deeper than {MAX_DEPTH} levels"))

    def _check_tag(self, event: Any) -> None:
        if event.tag not in {None, "!", "tag:yaml.org,2002:str"}:
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.problems.append(self._problem(event, f"tag `{shown}` is not supported: write the plain value"))

    def _place(self, event: Any) -> Place:
        return Place(file=self.file, line=event.start_mark.line + 1)

    def _problem(self, event: Any, message: str) -> Problem:
        return self._at(event.start_mark.line + 1, message)

    def _at(self, line: int, message: str) -> Problem:
        return Problem(file=self.file, line=line, path="", message=message)


def _branch(place: Place, content: tuple[Node, ...] | Mapping[str, Node], children: Sequence[Node]) -> Node:
    size = 1 + sum(node.size for node in children)
    height = 1 + max((node.height for node in children), default=0)
    return Node(place=place, content=content, size=size, height=height)


def _merge_nodes(base: Node, over: Node) -> Node:
    if not (isinstance(base.content, Mapping) and isinstance(over.content, Mapping)):
        return over
    entries = dict(base.content)
    for key, node in over.content.items():
        entries[key] = _merge_nodes(entries[key], node) if key in entries else node
    return replace(over, content=entries)
