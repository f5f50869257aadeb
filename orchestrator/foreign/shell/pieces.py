"""What shell text is made of before anything is filled in: words of pieces, and operators, each with its line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Characters as meant, quotes and escapes resolved."""

    text: str
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`$NAME`, `${NAME}`, `${NAME:-argument}`, `${NAME[@]}`.

    Attributes:
        operator: What follows the name (`:-`, `%%`, ``), without `argument`.
        index: What stands in `[]`, None without.
        source: As written.
    """

    name: str
    source: str
    operator: str = ""
    argument: tuple[Text | Reference | Substitution | Arithmetic, ...] = ()
    index: str | None = None
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """`$(command)`, a command in backticks, or an expansion that is not read here. Only a shell knows its value."""

    source: str
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """`$((…))`: what stands inside, in pieces."""

    inner: tuple[Text | Reference | Substitution | Arithmetic, ...]
    source: str
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RawWord:
    """One word before expansion. `items`: the words of an array (`NAME=(a b)`), whose pieces are `NAME=` alone."""

    pieces: tuple[Text | Reference | Substitution | Arithmetic, ...]
    line: int
    items: tuple[RawWord, ...] | None = None

    @property
    def plain(self) -> str | None:
        """The word when it is unquoted text and nothing else: only such a word can be a keyword."""
        if len(self.pieces) == 1 and isinstance(only := self.pieces[0], Text) and not only.is_quoted:
            return only.text
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """`&&`, `;`, `|`, `(`, a newline, a redirection. `body`: the text of a here-document."""

    text: str
    line: int
    body: str | None = None


Token = RawWord | Operator
Piece = Text | Reference | Substitution | Arithmetic
