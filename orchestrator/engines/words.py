"""Flags as words: one mapping, written the way each engine's own parser reads it.

The three parsers differ where it hurts: vLLM negates a switch with `--no-x`, SGLang mostly cannot negate one,
llama-server wants `on|off` for some; lists are words of their own for two of them and one comma-joined word for the
third; llama-server refuses `--flag=value`. JSON is always one word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.profile.model import FlagValue, Profile
from orchestrator.values import Json

NUMBER = re.compile(r"^-\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """How one engine reads its command line.

    Attributes:
        engine: Its name, for messages.
        aliases: Other spellings with their dashes (`-tp`, `--device-memory-utilization`) to the canonical name without.
        negates: A switch is turned off with `--no-x`.
        irregular: Switches that do the opposite of `negates`. Without a negative form, false leaves the switch out.
        on_off: Switches that take the word `on` or `off`.
        own_no: Flags that start with `no-` and negate nothing.
        comma_lists: A list is one comma-joined word.
        equals: `--flag=value` is understood.
    """

    engine: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    negates: bool = True
    irregular: frozenset[str] = frozenset()
    on_off: frozenset[str] = frozenset()
    own_no: frozenset[str] = frozenset()
    comma_lists: bool = False
    equals: bool = True

    def spelling(self, key: str) -> str:
        """The word that stands for a flag's key: `max_num_seqs` -> `--max-num-seqs`, `tp` -> `-tp`."""
        if key.startswith("-"):
            return key
        short, long = f"-{key}", f"--{key.replace('_', '-')}"
        is_short = short in self.aliases and long not in self.aliases and self.aliases[short] != key
        return short if is_short else long

    def canonical(self, key: str) -> str:
        """The one name of a flag without dashes, whatever the spelling, negation, `=value` or `.json.path`."""
        word = self.spelling(key).partition("=")[0].partition(".")[0]
        if not word.startswith("--"):
            return self.aliases.get(word, word.lstrip("-"))
        bare = word[2:].replace("_", "-")
        if bare.startswith("no-") and bare not in self.own_no:
            bare = bare[3:]
        return self.aliases.get(f"--{bare}", bare)

    def can_negate(self, name: str) -> bool:
        """True when the engine has a word for switching this off."""
        return (name not in self.irregular) is self.negates


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Where a profile's own flags name something: `flags.tp`, `args[2]`; `value` as far as it can be told."""

    path: str
    value: FlagValue


def words(parser: Parser, key: str, value: FlagValue) -> tuple[str, ...]:
    """One flag as words; empty for null, and for false where the engine has no way to say it (its default is off)."""
    if value is None:
        return ()
    word = parser.spelling(key)
    if isinstance(value, bool):
        return switch(parser, word, value)
    if isinstance(value, Mapping):
        return (word, compact_json(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = tuple(_text(item) for item in value)
        return (word, ",".join(texts)) if parser.comma_lists else (word, *texts)
    text = _text(value)
    if text.startswith("-") and not NUMBER.match(text) and parser.equals:
        return (f"{word}={text}",)
    return (word, text)


def switch(parser: Parser, word: str, value: bool) -> tuple[str, ...]:
    """A boolean flag as words."""
    name = parser.canonical(word)
    if name in parser.on_off:
        return (word, "on" if value else "off")
    if value:
        return (word,)
    if not parser.can_negate(name):
        return ()
    long = word if word.startswith("--") else f"--{name}"
    return (f"--no-{long[2:]}",)


def compact_json(value: Json) -> str:
    """JSON without spaces, keys in the order given: one word."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def declared(parser: Parser, profile: Profile) -> dict[str, Declaration]:
    """Every flag that the profile itself names, in `flags` or `args`, by canonical name; the last one wins."""
    found = {
        parser.canonical(key): Declaration(path=f"flags.{key}", value=value) for key, value in profile.flags.items()
    }
    found.update(_in_args(parser, profile.args))
    return found


def twice(parser: Parser, flags: Mapping[str, FlagValue]) -> Iterator[tuple[str, str]]:
    """Keys of `flags` that are two spellings of one flag, as `(path, message)`."""
    seen: dict[str, str] = {}
    for key in flags:
        name = parser.canonical(key)
        if name in seen:
            yield f"flags.{key}", f"the same flag as flags.{seen[name]}; give it once"
        seen.setdefault(name, key)


def flag_names(parser: Parser, argv: Sequence[str]) -> tuple[str, ...]:
    """Canonical names of the flags among words that this module or an engine wrote."""
    return tuple(parser.canonical(word) for word in argv if _is_flag(word))


def _in_args(parser: Parser, args: Sequence[str]) -> Iterator[tuple[str, Declaration]]:
    for index, word in enumerate(args):
        if not _is_flag(word):
            continue
        _, has_equals, inline = word.partition("=")
        after = args[index + 1] if index + 1 < len(args) and not _is_flag(args[index + 1]) else True
        yield parser.canonical(word), Declaration(path=f"args[{index}]", value=inline if has_equals else after)


def _is_flag(word: str) -> bool:
    return bool(re.match(r"^--?[A-Za-z]", word))


def _text(value: Json) -> str:
    if isinstance(value, bool | Mapping) or value is None:
        return compact_json(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return compact_json(value)
    return str(value)
