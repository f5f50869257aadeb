"""Other people's YAML: read as their own tools read it, with the line of each value, and what is odd as notes.

A profile refuses what is unclear. A recipe already runs somewhere, so here the rules are PyYAML's: of a key written
twice the last one counts, `on` is true, anchors and merges work. A file that PyYAML refuses is read block by block
(a key at the margin and what hangs from it): prose that stands where a mapping should be is left out with a note, and
the rest of the file is still of use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from orchestrator.errors import InvalidFile, Problem
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.texts import shorten

MAX_CHARS = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 60
Steps = tuple[str | int, ...]
_AT_THE_MARGIN = re.compile(r"^[^\s#\-].*?:(?:\s|$)")
_ENTRY = re.compile(r"\s*(?:- |-$|#|[\w.\"'{<*&-]+\s*:(?:\s|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A document's plain values; `lines`: 1-based, of each key and list item; `texts`: first line of block scalars."""

    value: Any
    lines: Mapping[Steps, int] = field(default_factory=dict)
    texts: Mapping[Steps, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def where(self, *steps: str | int) -> str:
        """`line 12`; the dotted path when the line is not known."""
        for length in range(len(steps), 0, -1):
            if (line := self.lines.get(steps[:length])) is not None:
                return f"line {line}"
        return ".".join(str(step) for step in steps) or "line 1"


def read_lenient(text: str, file: str) -> Read:
    """The first document of a YAML text.

    Raises:
        InvalidFile: Nothing can be made of it: too large, too deep, or no block of it is YAML.
    """
    if len(text) > MAX_CHARS:
        raise _invalid(file, None, f"more than {MAX_CHARS} characters: not a configuration")
    try:
        return _read(text, 0)
    except yaml.YAMLError as exc:
        return _read_in_blocks(text, file, exc)
    except (ValueError, RecursionError, OverflowError) as exc:
        raise _invalid(file, None, f"cannot be read: {exc or type(exc).__name__}") from exc


def _read(text: str, offset: int) -> Read:
    loader = yaml.SafeLoader(text)
    try:
        node = next(_documents(loader), None)
        if node is None:
            return Read(value=None)
        walk = _Walk(offset=offset)
        walk.visit(node, ())
        return Read(value=loader.construct_document(node), lines=walk.lines, texts=walk.texts, notes=tuple(walk.notes))
    finally:
        loader.dispose()


def _documents(loader: yaml.SafeLoader) -> Iterator[yaml.Node]:
    while loader.check_node():
        node = loader.get_node()
        if node is not None:
            yield node


class _Walk:
    """Lines of all values, and keys that are written twice."""

    def __init__(self, *, offset: int) -> None:
        self.offset = offset
        self.lines: dict[Steps, int] = {}
        self.texts: dict[Steps, int] = {}
        self.notes: list[Note] = []
        self.left = MAX_NODES

    def visit(self, node: yaml.Node, steps: Steps) -> None:
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"more than {MAX_NODES} values once aliases are expanded")
        if len(steps) > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        self.lines.setdefault(steps, self._line(node))
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, steps)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.visit(item, (*steps, index))
        elif isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
            self.texts[steps] = self._line(node) + 1
        else:
            self.texts[steps] = self._line(node)

    def _mapping(self, node: yaml.MappingNode, steps: Steps) -> None:
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            line = self._line(key)
            if name in seen and name != "<<":
                self.notes.append(
                    Note(
                        fate=Fate.DROPPED,
                        what=".".join(str(s) for s in (*steps, name)),
                        where=f"line {seen[name]}",
                        why=f"written twice, lines {seen[name]} and {line}: the last one counts, as PyYAML reads it",
                    )
                )
                self._forget((*steps, name))
            seen[name] = line
            self.visit(value, (*steps, name))
            self.lines[(*steps, name)] = line

    def _forget(self, steps: Steps) -> None:
        for known in (self.lines, self.texts):
            for other in [s for s in known if s[: len(steps)] == steps]:
                del known[other]

    def _line(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + 1 + self.offset


def _read_in_blocks(text: str, file: str, exc: yaml.YAMLError) -> Read:
    """What can be read of a file that is not YAML as a whole."""
    value: dict[str, Any] = {}
    lines: dict[Steps, int] = {}
    texts: dict[Steps, int] = {}
    notes: list[Note] = []
    for first, block in _blocks(text):
        read = _read_block(block, first)
        if read is None and not any(line.strip() for line in block):
            continue
        if read is None:
            notes.append(_left_out(first, block, "this block is not YAML"))
            continue
        if isinstance(read.value, Mapping):
            value |= read.value
            lines |= read.lines
            texts |= read.texts
            notes.extend(read.notes)
    if not value:
        mark = getattr(exc, "problem_mark", None)
        problem = getattr(exc, "problem", None) or "unreadable"
        raise _invalid(file, None if mark is None else mark.line + 1, f"not valid YAML: {problem}") from exc
    return Read(value=value, lines=lines, texts=texts, notes=tuple(notes))


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each key at the margin with what hangs from it, and how many lines stand above."""
    block: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines()):
        if _AT_THE_MARGIN.match(line) and block:
            yield first, block
            block = []
        if not block:
            first = number
        block.append(line)
    if block:
        yield first, block


def _read_block(block: list[str], first: int) -> Read | None:
    if (read := _try(block, first)) is not None:
        return read
    above = _deeper_at_the_top(block)
    prose = [i for i, line in enumerate(block) if i and line.strip() and (i <= above or not _ENTRY.match(line))]
    kept = ["" if index in prose else line for index, line in enumerate(block)]
    head = [block[0]] if block[0].partition(":")[2].strip() else []
    for less in (kept, head):
        if less and (read := _try(less, first)) is not None:
            gone = prose if less is kept else [i for i, line in enumerate(block) if i and line.strip()]
            at = first + gone[0] if gone else first
            note = _left_out(at, [block[i] for i in gone], "prose where YAML wants `key: value`")
            return Read(value=read.value, lines=read.lines, texts=read.texts, notes=(*read.notes, note))
    return None


def _deeper_at_the_top(block: list[str]) -> int:
    """Index of the last line below the key that stands deeper than the block's own entries; 0: there is none."""
    indents = {i: len(line) - len(line.lstrip()) for i, line in enumerate(block) if i and line.strip()}
    first = next((i for i, indent in indents.items() if indent == min(indents.values())), 1)
    return max((i for i in indents if i < first), default=0)


def _try(block: list[str], first: int) -> Read | None:
    try:
        read = _read("\n".join(block) + "\n", first)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return read if isinstance(read.value, Mapping) else None


def _left_out(first: int, block: list[str], why: str) -> Note:
    shown = next((line.strip() for line in block if line.strip()), "")
    return Note(fate=Fate.DROPPED, what=shorten(shown), where=f"line {first + 1}", why=f"{why}; left out")


def _invalid(file: str, line: int | None, message: str) -> InvalidFile:
    return InvalidFile([Problem(file=file, line=line, path="", message=message)])
