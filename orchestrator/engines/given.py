"""The command line as settings: each flag with its value and its place in the profile.

Which words belong to a flag is told by where they were declared and how flags begin, so no list of flags is needed; one
only adds spellings. What a version's own parser makes of the words is `flags.reading`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.flags.model import Catalogue, Flag
from orchestrator.engines.words import Parser
from orchestrator.values import Json

_FLAG = re.compile(r"^--?[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One flag as it stands on the command line.

    Attributes:
        path: Of its first word: `flags.tp`, `args[2]`, `serve.seed`.
        word: Its spelling there. name: canonical, without dashes (`tensor-parallel-size`).
        value: True for a bare switch, False for its negative form, several words as a list.
    """

    path: str
    word: str
    name: str
    value: Json


def given(parser: Parser, command: EngineCommand, catalogue: Catalogue | None = None) -> tuple[Given, ...]:
    """Every flag of the command line, in order; words that belong to none (program, model) are left out."""
    origins = command.origins or ("",) * len(command.argv)
    return tuple(_flags(parser, command.argv, origins, catalogue))


def given_words(
    parser: Parser, words: Sequence[str], path: str, catalogue: Catalogue | None = None
) -> tuple[Given, ...]:
    """The flags among words that all come from one place."""
    return tuple(_flags(parser, words, (path,) * len(words), catalogue))


def find_flag(name: str, catalogue: Catalogue | None) -> Flag | None:
    """The flag of this canonical name (no dashes) in the list."""
    return None if catalogue is None else catalogue.flags.get(f"--{name}")


def _flags(
    parser: Parser, words: Sequence[str], origins: Sequence[str], catalogue: Catalogue | None
) -> Iterator[Given]:
    spellings = _spellings(catalogue)
    starts = [index for index, word in enumerate(words) if _FLAG.match(word)]
    for start, end in zip(starts, [*starts[1:], len(words)][: len(starts)], strict=True):
        word, has_equals, inline = words[start].partition("=")
        # A value that begins another place's words is not this flag's.
        values = [
            w
            for w, o in zip(words[start + 1 : end], origins[start + 1 : end], strict=True)
            if _is_near(origins[start], o)
        ]
        head, _, key = word.partition(".")
        name, is_negative = spellings.get(head, (parser.canonical(head), _is_negated(parser, head)))
        value = _value([inline] if has_equals else values, is_negative=is_negative)
        yield Given(path=origins[start], word=word, name=name, value=_nested(key, value))


def _is_near(flag: str, value: str) -> bool:
    """Words of `args` have a place each; elsewhere a flag and its value share one."""
    return flag == value or (flag.startswith("args[") and value.startswith("args["))


def _spellings(catalogue: Catalogue | None) -> dict[str, tuple[str, bool]]:
    """Each spelling that the list knows: canonical name without dashes, and whether it means false."""
    found: dict[str, tuple[str, bool]] = {}
    for flag in catalogue.flags.values() if catalogue else ():
        name = flag.name.lstrip("-")
        found.update(dict.fromkeys((flag.name, *flag.aliases), (name, False)))
        found.update(dict.fromkeys(flag.negatives, (name, True)))
    return found


def _is_negated(parser: Parser, word: str) -> bool:
    bare = word.lstrip("-").replace("_", "-")
    is_disabled = bare.startswith("disable-") and parser.canonical(word) != bare
    return (bare.startswith("no-") and bare not in parser.own_no) or is_disabled


def _value(words: Sequence[str], *, is_negative: bool) -> Json:
    if is_negative:
        return False
    if not words:
        return True
    return words[0] if len(words) == 1 else list(words)


def _nested(key: str, value: Json) -> Json:
    """`--f.a.b 3` is {"a": {"b": 3}}."""
    for part in reversed(key.split(".")) if key else ():
        value = {part: value}
    return value
