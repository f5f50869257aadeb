"""Every figure that is published: its formula, its unit, and what others mean by the name.

A record carries the tags (`definitions()`); figures with different tags are never compared. A tag changes its version
when its formula changes in a way that moves the number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from orchestrator.errors import InputError
from orchestrator.figures.plain import Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Plain):
    """One figure.

    Attributes:
        name: As in tables and JSON, without its unit.
        tag: `words/vN`: what a record says of its figure of that name.
        unit: `ms`, `tok/s`, …; empty for a share or a count.
        meaning: What it tells, and when there is none, in one sentence or two.
        formula: With the record's own names for the stamps.
        peers: What other tools call it, and how theirs differs.
    """

    name: str
    tag: str
    unit: str
    meaning: str
    formula: str
    peers: str

    @property
    def lines(self) -> tuple[str, str, str]:
        """The explanation in three lines."""
        return self.meaning, f"= {self.formula}", f"elsewhere: {self.peers}"


def all_definitions() -> tuple[Definition, ...]:
    """In the order of the manual: a request, a cell, its load, a series."""
    from orchestrator.figures.glossary_loads import LOADS
    from orchestrator.figures.glossary_requests import REQUESTS

    return (*REQUESTS, *LOADS)


def definitions(*, clock: str = "user") -> dict[str, str]:
    """Name to tag: what a record's `definitions` field carries.

    Args:
        clock: `user` (stamps at the socket read) or `kernel` (the kernel's receive stamps).
    """
    return {"clock": f"monotonic_{clock}_at_socket_read/v1", **{d.name: d.tag for d in all_definitions()}}


@cache
def find_definition(name: str) -> Definition:
    """By its name, with or without a unit (`ttft`, `ttft_ms`, `TTFT`), or by its tag, as records and sheets show it.

    Raises:
        InputError: No figure of that name.
    """
    known = {d.name: d for d in all_definitions()}
    by_tag = {d.tag: d for d in all_definitions()}
    if name in by_tag:
        return by_tag[name]
    asked = name.lower().replace("-", "_")
    for candidate in (asked, *(asked.removesuffix(unit) for unit in ("_ms", "_s", "_tok_per_s", "_rps"))):
        if candidate in known:
            return known[candidate]
    near = get_close_matches(asked, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "`gate0 docs metrics` names them all"
    raise InputError(f"no figure named {name!r}", hint=hint)


def manual(of: tuple[Definition, ...]) -> str:
    """As Markdown, one section a figure."""
    return "# Figures\n\n" + "\n".join(line for d in of for line in _section(d))


def _section(d: Definition) -> Iterator[str]:
    unit = f" ({d.unit})" if d.unit else ""
    yield f"## `{d.name}`{unit}: {d.tag}"
    yield ""
    yield from (f"- {line}" for line in d.lines)
    yield ""
