"""Compose's `${NAME}` in texts: `$$`, defaults, alternatives, required ones, nested."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.foreign.hiding import MASK, is_secret
from orchestrator.foreign.model import Fate, Note
from orchestrator.foreign.shell import Word

MAX_DEPTH = 20
MAX_TEXT = 200_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r":?[-?+]")


@dataclass(slots=True, kw_only=True)
class Interpolation:
    """Fills in variables, and remembers what was taken for those that nothing sets.

    Attributes:
        defaults: Defaults that were taken.
        left_out: `${NAME:+words}` that came to nothing.
        required: `${NAME:?message}` that nothing sets.
        missing: Variables without a default that nothing sets: they stay as written.
    """

    values: Mapping[str, str]
    defaults: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    required: dict[str, str] = field(default_factory=dict)

    def word(self, text: str, *, line: int) -> Word:
        """A text with its variables filled in; what nothing sets stands as `${NAME}`."""
        missing: dict[str, None] = {}
        filled = self._filled(text[:MAX_TEXT], missing, 0)
        return Word(text=filled, line=line, missing=tuple(missing))

    def notes(self, where: str, *, named: frozenset[str] = frozenset()) -> tuple[Note, ...]:
        """What was taken or is missing, for the loss report.

        Args:
            named: Variables that the launch itself names as to be given.
        """
        found: list[Note] = []
        if self.defaults:
            shown = ", ".join(f"{n}={MASK if is_secret(n, v) else v}" for n, v in self.defaults.items())
            why = "defaults, taken because nothing sets these variables"
            found.append(Note(fate=Fate.TRANSLATED, what=shown, where=where, why=why))
        for name, words in self.left_out.items():
            why = f"given only where {name} is set, and it is not"
            found.append(Note(fate=Fate.DROPPED, what=f"${{{name}:+{words}}}", where=where, why=why))
        for name, message in self.required.items():
            if name in named:
                continue
            why = f"must be set by whoever starts it{f': {message}' if message else ''}"
            found.append(Note(fate=Fate.PERSON, what=f"${{{name}:?}}", where=where, why=why))
        return tuple(found)

    def _filled(self, text: str, missing: dict[str, None], depth: int) -> str:
        out: list[str] = []
        at = 0
        while (dollar := text.find("$", at)) >= 0:
            out.append(text[at:dollar])
            part, at = self._at(text, dollar, missing, depth)
            out.append(part)
        return "".join([*out, text[at:]])[:MAX_TEXT]

    def _at(self, text: str, dollar: int, missing: dict[str, None], depth: int) -> tuple[str, int]:
        if text.startswith("$$", dollar):
            return "$", dollar + 2
        if not text.startswith("${", dollar):
            named = _NAME.match(text, dollar + 1)
            return (self._plain(named[0], missing), named.end()) if named is not None else ("$", dollar + 1)
        end = _closing(text, dollar + 2)
        named = _NAME.match(text, dollar + 2)
        if end is None or named is None or depth > MAX_DEPTH:
            return "$", dollar + 1
        operator = _OPERATOR.match(text, named.end(), end)
        if operator is None:
            whole = named.end() == end
            return (self._plain(named[0], missing), end + 1) if whole else ("$", dollar + 1)
        return self._chosen(named[0], operator[0], text[operator.end() : end], missing, depth), end + 1

    def _plain(self, name: str, missing: dict[str, None]) -> str:
        value = self.values.get(name)
        # A secret's value goes nowhere: what would hold it waits for it, as for one that is not known.
        if value is not None and not is_secret(name, value):
            return value
        missing[name] = None
        return f"${{{name}}}"

    def _chosen(self, name: str, operator: str, argument: str, missing: dict[str, None], depth: int) -> str:
        value = self.values.get(name)
        is_set = value is not None and (value != "" or not operator.startswith(":"))
        if operator.endswith("+"):
            if is_set:
                return self._filled(argument, missing, depth + 1)
            self.left_out.setdefault(name, argument)
            return ""
        if is_set:
            return self._plain(name, missing)
        if operator.endswith("?"):
            self.required.setdefault(name, argument)
            return self._plain(name, missing) if value is None else ""
        taken = self._filled(argument, missing, depth + 1)
        if taken:
            self.defaults.setdefault(name, taken)
        return taken


def marked(words: Sequence[Word], whole: Word) -> tuple[Word, ...]:
    """Words split from a text, each with those of the text's missing variables that stand in it."""
    return tuple(
        Word(text=word.text, line=word.line, missing=tuple(n for n in whole.missing if f"${{{n}}}" in word.text))
        for word in words
    )


def _closing(text: str, at: int) -> int | None:
    depth = 1
    while at < len(text):
        if text.startswith("${", at):
            depth += 1
            at += 2
            continue
        if text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return None
