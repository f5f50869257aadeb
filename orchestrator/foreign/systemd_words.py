"""A line of a unit file as words, as systemd splits and expands it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.errors import InputError
from orchestrator.foreign.shell import Word

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_NUMBER = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([0-7]{3})")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_WHOLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_SPECIFIERS = {"h": "HOME", "u": "USER"}


def split_line(
    text: str, *, line: int, is_command: bool = True, variables: Mapping[str, Word] | None = None
) -> tuple[Word, ...]:
    """Words of an `ExecStart=` or `Environment=` value.

    Args:
        is_command: `$NAME` is a variable, `$$` a dollar; in `Environment=` both are letters.
        variables: What the unit sets; other variables stay as `${NAME}`. `%h` is `${HOME}`.

    Raises:
        InputError: A quote is never closed.
    """
    found: list[Word] = []
    for written in _Splitter(text=text, line=line).words():
        known = variables or {}
        if (
            is_command
            and _WHOLE.fullmatch(written)
            and (value := known.get(written[1:])) is not None
            and value.is_known
        ):
            found.extend(Word(text=part, line=line) for part in value.text.split())
        else:
            found.append(_expanded(written, line, known, is_command=is_command))
    return tuple(found)


@dataclass(slots=True, kw_only=True)
class _Splitter:
    text: str
    line: int
    at: int = 0
    found: list[str] = field(default_factory=list)

    def words(self) -> list[str]:
        while True:
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            if self.at >= len(self.text):
                return self.found
            self.found.append(self._word())

    def _word(self) -> str:
        out: list[str] = []
        quote = ""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                out.append(self._escape())
                continue
            self.at += 1
            if quote:
                if char == quote:
                    quote = ""
                    continue
            elif char in "'\"":
                quote = char
                continue
            elif char.isspace():
                break
            out.append(char)
        if quote:
            raise InputError(f"line {self.line}: `{quote}` is opened and never closed")
        return "".join(out)

    def _escape(self) -> str:
        number = _NUMBER.match(self.text, self.at + 1)
        if number is not None:
            self.at = number.end()
            code = int(number[1] or number[2] or "0", 16) if number[3] is None else int(number[3], 8)
            return chr(code) if not 0xD800 <= code <= 0xDFFF else ""
        char = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        return _ESCAPES.get(char, char if char in "\\'\"" else f"\\{char}")


def _expanded(text: str, line: int, known: Mapping[str, Word], *, is_command: bool) -> Word:
    missing: list[str] = []
    out: list[str] = []
    at = 0
    while at < len(text):
        two = text[at : at + 2]
        variable = _VARIABLE.match(text, at) if is_command else None
        if two == "%%" or (two == "$$" and is_command):
            out.append(two[0])
            at += 2
        elif two[0] == "%" and two[1:] in _SPECIFIERS:
            name = _SPECIFIERS[two[1:]]
            missing.append(name)
            out.append(f"${{{name}}}")
            at += 2
        elif two[0] == "%" and two[1:].isalpha():
            missing.append(two)
            out.append(two)
            at += 2
        elif variable is not None and (variable[1] or variable.end() == len(text)):
            name = variable[1] or variable[2]
            value = known.get(name)
            out.append(value.text if value is not None else f"${{{name}}}")
            missing.extend(value.missing if value is not None else (name,))
            at = variable.end()
        else:
            out.append(text[at])
            at += 1
    return Word(text="".join(out), line=line, missing=tuple(dict.fromkeys(missing)))
