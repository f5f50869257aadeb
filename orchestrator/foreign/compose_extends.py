"""A compose file's services before they are read: `extends` and `include` resolved as compose merges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.errors import InputError
from orchestrator.foreign.interpolation import Interpolation
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell import ReadFile
from orchestrator.foreign.tolerant_yaml import load_tolerant
from orchestrator.profile.yaml_lines import Document, Node

MAX_DEPTH = 10
_JOINED = frozenset({"volumes", "ports", "env_file", "devices", "environment", "tmpfs", "cap_add", "expose", "dns"})
"""Lists that compose joins; all others are replaced."""


@dataclass(slots=True, kw_only=True)
class NodeReader:
    """Reads services as nodes, and notes files that are not at hand."""

    read_file: ReadFile | None
    notes: list[Note] = field(default_factory=list)

    def services(self, document: Document, values: Mapping[str, str], depth: int = 0) -> dict[str, Node]:
        """The file's services, and those of the files that it includes."""
        found: dict[str, Node] = {}
        included = document.root.child("include")
        items = included.content if included is not None and isinstance(included.content, tuple) else ()
        for item in items if depth < MAX_DEPTH else ():
            for path in _paths(item):
                other = self._file(path, values, where="include")
                if other is not None:
                    found.update(self.services(other, values, depth + 1))
        own = document.root.child("services")
        if own is not None and isinstance(own.content, Mapping):
            found.update({name: node for name, node in own.content.items() if isinstance(node.content, Mapping)})
        return found

    def extended(
        self, node: Node, services: Mapping[str, Node], values: Mapping[str, str], *, name: str, depth: int = 0
    ) -> Node:
        """A service laid upon the one that it extends."""
        told = node.child("extends")
        if told is None or depth > MAX_DEPTH:
            return node
        file = told.child("file")
        wanted = told.written or (service.written if (service := told.child("service")) is not None else None)
        around = services
        if file is not None and file.written:
            other = self._file(file.written, values, where=f"services.{name}.extends")
            around = self.services(other, values) if other is not None else {}
        base = around.get(wanted or "")
        if base is None:
            why = "the service that is extended is not at hand: what it says is missing here"
            self._note(f"extends: {wanted}", f"services.{name}.extends", why)
            return node
        return _merged(self.extended(base, around, values, name=name, depth=depth + 1), node)

    def _file(self, path: str, values: Mapping[str, str], *, where: str) -> Document | None:
        filled = Interpolation(values=values).word(path, line=1).text
        text = self.read_file(filled) if self.read_file is not None else None
        if text is None:
            self._note(f"file {filled}", where, "the file is not at hand: what it says is missing here")
            return None
        try:
            read = load_tolerant(text, filled)
        except InputError as exc:
            self._note(f"file {filled}", where, exc.message.partition("\n")[0])
            return None
        self.notes.extend(replace(note, where=f"{filled}: {note.where}") for note in read.notes)
        return read.document

    def _note(self, what: str, where: str, why: str) -> None:
        self.notes.append(Note(fate=Fate.PERSON, what=what, where=where, why=why))


def _paths(item: Node) -> tuple[str, ...]:
    if item.written is not None:
        return (item.written,)
    path = item.child("path")
    if path is None:
        return ()
    if isinstance(path.content, tuple):
        return tuple(each.written for each in path.content if each.written)
    return (path.written,) if path.written else ()


def _merged(base: Node, over: Node) -> Node:
    if not isinstance(base.content, Mapping) or not isinstance(over.content, Mapping):
        return over
    entries = {key: node for key, node in base.content.items() if key not in {"extends", "depends_on"}}
    for key, node in over.content.items():
        before = entries.get(key)
        if before is None or key in {"extends", "command", "entrypoint"}:
            entries[key] = node
        elif key in _JOINED:
            entries[key] = _joined(before, node)
        else:
            entries[key] = _merged(before, node)
    return replace(over, content=entries)


def _joined(base: Node, over: Node) -> Node:
    if isinstance(base.content, Mapping) and isinstance(over.content, Mapping):
        return _merged(base, over)
    return replace(over, content=(*_items(base), *_items(over)), written=None)


def _items(node: Node) -> tuple[Node, ...]:
    """A list's items; a mapping's entries as `name=value`; a scalar alone."""
    if isinstance(node.content, tuple):
        return node.content
    if isinstance(node.content, Mapping):
        return tuple(
            replace(value, content=text, written=text)
            for name, value in node.content.items()
            for text in (name if value.content is None else f"{name}={value.written or ''}",)
        )
    return (node,)
