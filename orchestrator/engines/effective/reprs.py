"""Python's way of printing values, read back without evaluating anything.

Engines log their settings as a dictionary, as `Name(key=value, …)`, or as `key=value, …`, mixed with what is no
literal: `torch.bfloat16`, `<CompilationMode.NONE: 0>`, `SpeculativeConfig(method='mtp')`, bare words. A line may also
have been cut. What was read up to there is kept, and the result says that it is not whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.values import MAX_LEVELS, Json

_KEY = re.compile(r"\s*([A-Za-z_]\w*)=")
_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_STRING = re.compile(r"[bru]*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL)
_ENUM = re.compile(r"<[\w.]+: ('[^']*'|\"[^\"]*\"|[^<>]*)>")
_OBJECT = re.compile(r"<[^<>]*>")
_BARE = re.compile(r"[^,()\[\]{}]*")
_BARE_KEY = re.compile(r"[^,:()\[\]{}]*")
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_WORDS: Mapping[str, Json] = {"True": True, "False": False, "None": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A value, and whether its end was reached."""

    value: Json
    is_whole: bool


def parse_repr(text: str) -> Parsed:
    """Read the value at the beginning of the text; what follows it is left."""
    reader = _Reader(text)
    value = reader.value()
    return Parsed(value=value, is_whole=not reader.is_cut())


def parse_fields(text: str) -> Parsed:
    """Read `key=value, key=value` up to the end of the text, as a mapping."""
    reader = _Reader(text)
    value = reader.fields(closing="")
    return Parsed(value=value, is_whole=not reader.is_cut())


class _Reader:
    """A position in a text that moves forward; `is_cut()` once the text broke off or made no sense."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._levels = 0
        self._broken = False

    def value(self, *, bare: re.Pattern[str] = _BARE) -> Json:
        self._skip_space()
        rest = self.text[self.at : self.at + 1]
        if rest in _CLOSING:
            return self._cut() if self._levels == MAX_LEVELS else self._nested(rest)
        if rest == "<":
            return self._angle()
        if string := _STRING.match(self.text, self.at):
            self.at = string.end()
            return _literal(string.group())
        if rest in ("'", '"', ""):
            return self._cut()
        if call := _CALL.match(self.text, self.at):
            return self._cut() if self._levels == MAX_LEVELS else self._nested(call.group())
        return self._bare(bare)

    def _nested(self, opening: str) -> Json:
        self._levels += 1
        if opening == "{":
            found = self._braces()
        elif opening in _CLOSING:
            found = self._items(_CLOSING[opening])
        else:
            self.at += len(opening)
            found = self._call()
        self._levels -= 1
        return found

    def fields(self, *, closing: str) -> dict[str, Json]:
        found: dict[str, Json] = {}
        while not self.is_cut() and not self._ends(closing):
            key = _KEY.match(self.text, self.at)
            if key is None:
                self._cut()
                break
            self.at = key.end()
            value = self.value()
            if not self.is_cut() or isinstance(value, Mapping | list):
                found[key.group(1)] = value
            self._separator(closing)
        return found

    def _call(self) -> Json:
        """`Path('x')` is its one argument, `Config(a=1)` a mapping, `set()` an empty list."""
        if _KEY.match(self.text, self.at):
            return self.fields(closing=")")
        items = self._until(")")
        return items[0] if len(items) == 1 else items

    def _items(self, closing: str) -> list[Json]:
        self.at += 1
        return self._until(closing)

    def _until(self, closing: str) -> list[Json]:
        items: list[Json] = []
        while not self.is_cut() and not self._ends(closing):
            item = self.value()
            if not self.is_cut():
                items.append(item)
            self._separator(closing)
        return items

    def _braces(self) -> Json:
        """A dictionary, or a set, which becomes a list."""
        self.at += 1
        found: dict[str, Json] = {}
        members: list[Json] = []
        while not self.is_cut() and not self._ends("}"):
            key = self.value(bare=_BARE_KEY)
            self._skip_space()
            if self.text[self.at : self.at + 1] != ":":
                members.append(key)
            else:
                self.at += 1
                value = self.value()
                if not self.is_cut() or isinstance(value, Mapping | list):
                    found[str(key)] = value
            self._separator("}")
        return found if found or not members or self.is_cut() else members

    def _angle(self) -> Json:
        if enum := _ENUM.match(self.text, self.at):
            self.at = enum.end()
            return _literal(enum.group(1))
        if thing := _OBJECT.match(self.text, self.at):
            self.at = thing.end()
            return thing.group()
        return self._cut()

    def _bare(self, pattern: re.Pattern[str]) -> Json:
        found = pattern.match(self.text, self.at)
        word = found.group().strip() if found else ""
        if found is None or not word:
            return self._cut()
        self.at = found.end()
        # A word at the very end may be half a word.
        if self.at == len(self.text) and "…" in word:
            return self._cut()
        return _literal(word)

    def _ends(self, closing: str) -> bool:
        self._skip_space()
        if not closing:
            return self.at >= len(self.text)
        if self.at >= len(self.text):
            self._cut()
            return True
        if self.text[self.at] == closing:
            self.at += 1
            return True
        return False

    def _separator(self, closing: str) -> None:
        self._skip_space()
        here = self.text[self.at : self.at + 1]
        if here == ",":
            self.at += 1
        elif here != closing:
            self._cut()

    def _skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def is_cut(self) -> bool:
        return self._broken

    def _cut(self) -> Json:
        self._broken = True
        return None


def _literal(word: str) -> Json:
    if word in _WORDS:
        return _WORDS[word]
    try:
        value = ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, bool | int | float | str) or value is None else word


def is_sequence(value: Json) -> bool:
    """A list, and not the text that Python takes for one."""
    return isinstance(value, Sequence) and not isinstance(value, str)
