"""Words of a command line as flags and values, as the engine's own parser would take them.

What an engine makes of words differs: argparse (vLLM, SGLang) knows a flag before it looks at values, so a value cannot
begin like a flag; llama-server takes the next word whatever it is. argparse completes a name that only one flag begins
with, glues a value to a short flag of one letter (`-n2`), and fills a list until the next flag. vLLM reads one key of a
JSON flag by a dotted name, and lets `_` stand for `-`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.flags.model import Catalogue, Conventions, Flag, ValueKind

FLAG_LIKE = re.compile(r"^--?[A-Za-z]")


class Match(StrEnum):
    """How a word was understood. POSITIONAL: it stands for itself, or is the rest that no flag takes."""

    EXACT = "exact"
    ALIAS = "alias"
    NEGATIVE = "negative"
    ABBREVIATION = "abbreviation"
    AMBIGUOUS = "ambiguous"
    UNKNOWN = "unknown"
    POSITIONAL = "positional"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One flag with its values, or one word without a flag.

    Attributes:
        index: Of its first word among the words read.
        count: How many words it takes up, its own included.
        spelling: The flag as written, without `=value` and dotted keys; of a positional the word.
        flag: None: it is unknown, ambiguous, or no flag.
        dotted: The keys after the first dot, as in `--compilation-config.pass_config.fuse_x`: `pass_config.fuse_x`.
        is_added: The dotted name ends in `+`: the values are added to a list.
        is_negative: A spelling that means false.
        values: Words that it takes, `=value` included. Of an unknown flag: all words until the next flag, since nobody
            knows how many are its own.
        is_joined: The value is in the flag's own word (`--port=8000`, `-n2`).
        candidates: Spellings that an ambiguous one could be, sorted.
        full: The spelling that was meant; the one as written where it is unknown.
    """

    index: int
    count: int
    spelling: str
    match: Match
    flag: Flag | None = None
    dotted: str | None = None
    is_added: bool = False
    is_negative: bool = False
    values: tuple[str, ...] = ()
    is_joined: bool = False
    candidates: tuple[str, ...] = ()
    full: str = ""

    @property
    def name(self) -> str:
        """Canonical name of a known flag, else the spelling."""
        return self.flag.name if self.flag else self.spelling


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """What one spelling means."""

    flag: Flag
    is_negative: bool = False


Spellings = Mapping[str, Spelling]


def spellings(catalogue: Catalogue) -> Spellings:
    """Every spelling of every flag: names, aliases and negatives."""
    return _spellings_of(_ById(catalogue))


def own_words(command: EngineCommand) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words after the program, and for each where in the profile it comes from."""
    first = next((index for index, origin in enumerate(command.origins) if origin), len(command.origins))
    return command.argv[first:], command.origins[first:]


def read_words(catalogue: Catalogue, words: Sequence[str]) -> tuple[Given, ...]:
    """The words as flags with their values and positionals, in the order given; every word is in exactly one of them.

    Args:
        words: What follows the program and subcommand: `("org/model", "--max-num-seqs", "8")`.
    """
    return tuple(_Reader(catalogue, tuple(words)).read())


def find_spelling(catalogue: Catalogue, word: str) -> Given:
    """What a flag's spelling alone means (`--max_num_seqs`, `-tp`, `--enable-prefix-cach`), without values."""
    return _Reader(catalogue, (word,)).named(0)


class _ById:
    """A catalogue as a cache key: by identity, since its mappings have no hash."""

    __slots__ = ("catalogue",)

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.catalogue is self.catalogue

    def __hash__(self) -> int:
        return id(self.catalogue)


@lru_cache(maxsize=64)
def _spellings_of(key: _ById) -> Spellings:
    found: dict[str, Spelling] = {}
    for flag in key.catalogue.flags.values():
        for word in (flag.name, *flag.aliases):
            found[word] = Spelling(flag=flag)
        for word in flag.negatives:
            found[word] = Spelling(flag=flag, is_negative=True)
    return found


class _Reader:
    """One pass over the words of one command line."""

    def __init__(self, catalogue: Catalogue, words: tuple[str, ...]) -> None:
        self.conventions: Conventions = catalogue.conventions
        self.table = spellings(catalogue)
        self.words = words

    @property
    def is_argparse(self) -> bool:
        return self.conventions.abbreviations

    def read(self) -> Iterator[Given]:
        index, only_positionals = 0, False
        while index < len(self.words):
            word = self.words[index]
            if self.is_argparse and word == "--" and not only_positionals:
                only_positionals = True
                yield Given(index=index, count=1, spelling=word, match=Match.POSITIONAL, full=word)
            elif only_positionals or not self.is_flag(word):
                yield Given(index=index, count=1, spelling=word, match=Match.POSITIONAL, values=(word,), full=word)
            else:
                given = self.with_values(self.named(index))
                index += given.count - 1
                yield given
            index += 1

    def is_flag(self, word: str) -> bool:
        if not FLAG_LIKE.match(word):
            return False
        return not (self.is_argparse and " " in word and self.lookup(word.partition("=")[0]) is None)

    def named(self, index: int) -> Given:
        """The flag at this word, with the value that is in the word itself."""
        word = self.words[index]
        name, has_equals, inline = word.partition("=")
        joined = (inline,) if has_equals else ()
        head, dotted, is_added = self.undotted(name)
        exact = self.lookup(head)
        if exact is not None:
            return self.known(index, head, exact, joined, dotted=dotted, is_added=is_added)
        if self.is_argparse and not head.startswith("--") and (short := self.lookup(head[:2])) is not None:
            glued = word[2:].removeprefix("=")
            return self.known(index, head[:2], short, (glued,))
        hits = self.completions(head) if self.is_argparse else ()
        meant = {(self.table[hit].flag.name, self.table[hit].is_negative) for hit in hits}
        if len(meant) == 1:
            given = self.known(index, hits[0], self.table[hits[0]], joined, dotted=dotted, is_added=is_added)
            return replace(given, spelling=head, match=Match.ABBREVIATION)
        match = Match.AMBIGUOUS if hits else Match.UNKNOWN
        return Given(
            index=index,
            count=1,
            spelling=head,
            match=match,
            dotted=dotted,
            is_added=is_added,
            values=joined,
            is_joined=bool(joined),
            candidates=hits,
            full=head,
        )

    def undotted(self, name: str) -> tuple[str, str | None, bool]:
        """The name without its dotted keys, the keys, and whether they end in `+`."""
        if not self.conventions.dotted or "." not in name or name in self.table:
            return name, None, False
        head, _, keys = name.partition(".")
        return head, keys.removesuffix("+"), keys.endswith("+")

    def lookup(self, head: str) -> Spelling | None:
        return self.table.get(head) or self.table.get(self.normal(head))

    def normal(self, head: str) -> str:
        return f"--{head[2:].replace('_', '-')}" if self.conventions.underscores and head.startswith("--") else head

    def completions(self, head: str) -> tuple[str, ...]:
        begun = self.normal(head)
        return tuple(sorted(spelling for spelling in self.table if spelling.startswith(begun)))

    def known(
        self,
        index: int,
        head: str,
        found: Spelling,
        joined: tuple[str, ...],
        *,
        dotted: str | None = None,
        is_added: bool = False,
    ) -> Given:
        full = head if head in self.table else self.normal(head)
        is_name = full == found.flag.name
        match = Match.NEGATIVE if found.is_negative else Match.EXACT if is_name else Match.ALIAS
        return Given(
            index=index,
            count=1,
            spelling=head,
            match=match,
            flag=found.flag,
            dotted=dotted,
            is_added=is_added,
            is_negative=found.is_negative,
            values=joined,
            is_joined=bool(joined),
            full=full,
        )

    def with_values(self, given: Given) -> Given:
        """The same with the words that follow and are its values."""
        if given.is_joined:
            return given
        taken = self.values_after(given)
        return replace(given, values=taken, count=1 + len(taken))

    def values_after(self, given: Given) -> tuple[str, ...]:
        rest = self.words[given.index + 1 :]
        if given.dotted is not None:
            return rest[:1]
        if given.flag is None:
            return self.run(rest)
        _, most = arity(given.flag, is_negative=given.is_negative)
        if not self.is_argparse:
            return rest[:most]
        return self.run(rest)[:most] if most != 0 else ()

    def run(self, words: Sequence[str]) -> tuple[str, ...]:
        """Words until the next flag."""
        found = []
        for word in words:
            if self.is_flag(word) or (self.is_argparse and word == "--"):
                break
            found.append(word)
        return tuple(found)


def arity(flag: Flag, *, is_negative: bool = False) -> tuple[int, int | None]:
    """The least and the most words that follow a flag; None: any number."""
    if is_negative or flag.kind in {ValueKind.NONE, ValueKind.BOOL}:
        return (0, 0)
    if isinstance(flag.nargs, int):
        return (flag.nargs, flag.nargs)
    return {None: (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}[flag.nargs]
