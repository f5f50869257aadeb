"""Which variables a script's commands come to use, so that a choice that changes none of them needs no word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from orchestrator.foreign.shell.parsing import Simple
from orchestrator.foreign.shell.pieces import Arithmetic, Piece, RawWord, Reference, Substitution

_IN_CODE = re.compile(r"\$\{?#?([A-Za-z_][A-Za-z0-9_]*)")
_IN_SUM = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ONLY_TALKS = frozenset({"echo", "printf", ":", "true", "false", "test", "[", "[[", "sleep", "exit", "return"})


@dataclass(slots=True, kw_only=True)
class Uses:
    """What commands name, and what each variable is made of."""

    named: set[str] = field(default_factory=set)
    made_of: dict[str, set[str]] = field(default_factory=dict)

    def command(self, statement: Simple) -> None:
        """Take in a command; what only talks or tests uses nothing."""
        if statement.words and statement.words[0].plain not in _ONLY_TALKS:
            self.named.update(name for word in (*statement.words, *statement.assignments) for name in _of_word(word))

    def assignment(self, name: str, word: RawWord) -> None:
        self.made_of.setdefault(name, set()).update(_of_word(word))

    def reach(self, name: str) -> bool:
        """True when a command uses the variable, itself or through others."""
        used, left = set(self.named), list(self.named)
        while left:
            new = self.made_of.get(left.pop(), set()) - used
            used |= new
            left.extend(new)
        return name in used


def _of_word(word: RawWord) -> Iterator[str]:
    yield from _of_pieces(word.pieces)
    for item in word.items or ():
        yield from _of_word(item)


def _of_pieces(pieces: Iterable[Piece]) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, Reference):
            yield piece.name
            yield from _of_pieces(piece.argument)
        elif isinstance(piece, Substitution):
            yield from _IN_CODE.findall(piece.source)
        elif isinstance(piece, Arithmetic):
            yield from _IN_SUM.findall(piece.source)
