"""What a command line says, flag by flag, with the place in the profile that each word comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import EngineCommand
from orchestrator.engines.words import Parser
from orchestrator.values import Json

_FLAG = re.compile(r"--?[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFlag:
    """A flag's value as its words tell it, and where it was declared (empty: not known)."""

    value: Json
    origin: str


def given_flags(parser: Parser, command: EngineCommand) -> Mapping[str, GivenFlag]:
    """All flags of a command by canonical name; the last of a repeated one, dotted keys of one gathered."""
    found: dict[str, GivenFlag] = {}
    for index, words in _runs(command.argv):
        origin = command.origins[index] if command.origins else ""
        name, value = _read(parser, words)
        before = found.get(name)
        if isinstance(value, dict) and before is not None and isinstance(before.value, dict):
            value, origin = {**before.value, **value}, before.origin
        found[name] = GivenFlag(value=value, origin=origin)
    return found


def _runs(argv: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each flag with the words that follow it, and its index."""
    starts = [index for index, word in enumerate(argv) if _FLAG.match(word)]
    for start, end in zip(starts, [*starts[1:], len(argv)], strict=True):
        yield start, tuple(argv[start:end])


def _read(parser: Parser, words: Sequence[str]) -> tuple[str, Json]:
    word, has_equals, inline = words[0].partition("=")
    head, _, keys = word.partition(".")
    name = parser.canonical(head)
    after = (inline,) if has_equals else tuple(words[1:])
    if not after:
        value: Json = not _is_negative(head, name)
    else:
        value = _value(after[0]) if len(after) == 1 else [_value(text) for text in after]
    for key in reversed(keys.split(".") if keys else ()):
        value = {key: value}
    return name, value


def _is_negative(word: str, name: str) -> bool:
    """`--no-x` of `x`, and `--disable-x` of `enable-x`."""
    bare = word.lstrip("-").replace("_", "-")
    return bare != name and bare.startswith(("no-", "disable-"))


def _value(text: str) -> Json:
    if not text.startswith(("{", "[")):
        return text
    try:
        found: Json = json.loads(text)
    except ValueError:
        return text
    return found
