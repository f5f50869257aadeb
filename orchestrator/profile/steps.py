"""Paths inside a document: steps as values, dotted text for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.profile.yaml_lines import Document, Node, Steps

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dotted(steps: Sequence[str | int]) -> str:
    """`serve.max_model_len`, `args[0]`; a key that holds a dot or a space is shown as `flags["a.b"]`."""
    shown = ""
    for step in steps:
        if isinstance(step, int):
            shown += f"[{step}]"
        elif _BARE.fullmatch(step):
            shown += f".{step}" if shown else step
        else:
            shown += f'["{step}"]'
    return shown


def steps_of(path: str, document: Document) -> Steps:
    """The steps that a dotted path takes in this document, as far as they exist there.

    Keys may hold dots (`flags.a.b`): at each mapping the longest key that fits is taken.
    """
    taken: list[str | int] = []
    node: Node | None = document.root
    rest = path
    while rest and node is not None and (found := _longest_step(node, rest)) is not None:
        step, rest = found
        taken.append(step)
        node = node.child(step)
    return tuple(taken)


def _longest_step(node: Node, rest: str) -> tuple[str | int, str] | None:
    rest = rest.removeprefix(".")
    if isinstance(node.content, tuple) and (index := re.match(r"\[?([0-9]{1,6})\]?", rest)):
        return int(index[1]), rest[index.end() :]
    fitting = [key for key in _keys(node) for form in (key, f'["{key}"]') if _leads(form, rest)]
    if not fitting:
        return None
    key = max(fitting, key=len)
    shown = f'["{key}"]' if rest.startswith("[") else key
    return key, rest[len(shown) :]


def _leads(form: str, rest: str) -> bool:
    return rest == form or (rest.startswith(form) and rest[len(form)] in ".[")


def _keys(node: Node) -> Iterator[str]:
    if isinstance(node.content, Mapping):
        yield from node.content
