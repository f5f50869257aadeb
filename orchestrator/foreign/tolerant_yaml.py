"""Compose files and manifests as their own tools take them, for a reader that takes no unclear YAML.

Theory of operation. What the profile reader refuses and other tools read is blanked out in the text, so that every line
keeps its number: the earlier one of two equal keys (the last one counts, as PyYAML and older compose read it), and tags
(`!reset`, `!override`: compose's own for files that are laid upon others).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from orchestrator.foreign.model import Fate, Note
from orchestrator.profile.yaml_lines import Document, load_document

MAX_CHARS = 300_000
_TEXT_TAG = ("!!", "str")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerated:
    """The document, and what was passed over in its text."""

    document: Document
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gone:
    """A span of the text that is not read, and what is said of it."""

    begin: int
    end: int
    note: Note


def load_tolerant(text: str, source: str) -> Tolerated:
    """The first document of a text.

    Raises:
        InvalidFile: It is no YAML, with the line.
    """
    gone: list[_Gone] = []
    if len(text) <= MAX_CHARS:
        try:
            gone = [*_tags(text), *_twice(text)]
        except (yaml.YAMLError, ValueError, RecursionError):
            gone = []  # the strict reader says what is wrong, on its line
    for span in gone:
        blank = "".join(sign if sign in "\r\n" else " " for sign in text[span.begin : span.end])
        text = text[: span.begin] + blank + text[span.end :]
    return Tolerated(document=load_document(text, source), notes=tuple(span.note for span in gone))


def _tags(text: str) -> Iterator[_Gone]:
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.TagToken) and token.value != _TEXT_TAG:
            begin, end = token.start_mark.index, token.end_mark.index
            what = text[begin:end].strip()
            is_merging = what in {"!reset", "!override"}
            why = (
                "says how this file is laid upon another one: it is read alone" if is_merging else "a tag: passed over"
            )
            note = Note(
                fate=Fate.PERSON if is_merging else Fate.DROPPED, what=what, where=f"line {_line(token)}", why=why
            )
            yield _Gone(begin=begin, end=end, note=note)


def _twice(text: str) -> Iterator[_Gone]:
    seen: set[int] = set()
    for root in yaml.compose_all(text, Loader=yaml.SafeLoader):
        stack: list[yaml.Node] = [] if root is None else [root]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                stack.extend(node.value)
            elif isinstance(node, yaml.MappingNode):
                stack.extend(value for _, value in node.value)
                yield from _in_mapping(node)


def _in_mapping(node: yaml.MappingNode) -> Iterator[_Gone]:
    last: dict[str, int] = {}
    for index, (key, _) in enumerate(node.value):
        if isinstance(key, yaml.ScalarNode):
            last[key.value] = index
    for index, (key, value) in enumerate(node.value):
        if not isinstance(key, yaml.ScalarNode) or last[key.value] == index or key.value == "<<" or node.flow_style:
            continue
        lines = f"{_line(key)} and {_line(node.value[last[key.value]][0])}"
        note = Note(
            fate=Fate.DROPPED,
            what=str(key.value),
            where=f"line {_line(key)}",
            why=f"written twice, lines {lines}: the last one counts",
        )
        yield _Gone(begin=key.start_mark.index, end=value.end_mark.index, note=note)


def _line(part: yaml.Node | yaml.Token) -> int:
    return int(part.start_mark.line) + 1
