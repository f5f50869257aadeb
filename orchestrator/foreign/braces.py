"""`{key}` placeholders in a command, beside JSON that has braces of its own.

Theory of operation. Two tools read the same templates in two ways: one replaces each known `{key}` and leaves every
other brace alone; the other is `str.format`, where a literal brace is written twice. People copy commands from one to
the other, so both styles occur, now and then in one command. It is therefore decided for each word by what comes out:
the reading under which the word holds valid JSON is the one that was meant.
"""

from __future__ import annotations

import json
import re
import shlex
import string
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.values import Json, read_json

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
MAX_ROUNDS = 10
MAX_FILLED = 300_000
_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\[^\n]|[^\s'"\\])+""", re.DOTALL)
_COMMENT = re.compile(r"(?<![^\s])#[^\n]*")
_PIECE = re.compile(rf"(?P<comment>{_COMMENT.pattern})|(?P<word>{_WORD.pattern})", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A command with its placeholders filled in.

    Attributes:
        missing: Placeholders that nothing gives a value; they stand as written.
        used: Keys whose values were taken.
        requoted: Keys whose JSON stood without single quotes, where a shell would have torn it.
        is_doubled: Some braces were written twice.
        unclear: Words whose braces fit neither reading; they stand as written.
    """

    text: str
    missing: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    requoted: tuple[str, ...] = ()
    is_doubled: bool = False
    unclear: tuple[str, ...] = ()


def as_text(value: Json) -> str:
    """A default as the text that stands for it: what Python prints, JSON for lists and mappings."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return str(value)
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, int | float) else str(value)


def resolve(values: Mapping[str, Json]) -> dict[str, str]:
    """The values as text, with references to each other filled in; what names itself stays as written."""
    texts = {key: as_text(value) for key, value in values.items() if value is not None}
    for _ in range(MAX_ROUNDS):
        filled = {key: _replace(text, {k: v for k, v in texts.items() if k != key}) for key, text in texts.items()}
        if filled == texts or any(len(text) > MAX_FILLED for text in filled.values()):
            break
        texts = filled
    return texts


def fill(command: str, values: Mapping[str, str]) -> Filled:
    """Fill a shell command's placeholders, word by word; what is not a word (blanks, comments) stays."""
    state = _State(values=values)
    text = _PIECE.sub(lambda found: found[0] if found["comment"] is not None else state.word(found[0]), command)
    return Filled(
        text=text,
        missing=tuple(dict.fromkeys(state.missing)),
        used=tuple(dict.fromkeys(state.used)),
        requoted=tuple(dict.fromkeys(state.requoted)),
        is_doubled=state.is_doubled,
        unclear=tuple(dict.fromkeys(state.unclear)),
    )


class _State:
    def __init__(self, *, values: Mapping[str, str]) -> None:
        self.values = values
        self.missing: list[str] = []
        self.used: list[str] = []
        self.requoted: list[str] = []
        self.unclear: list[str] = []
        self.is_doubled = False

    def word(self, word: str) -> str:
        if "{" not in word and "}" not in word:
            return word
        names = PLACEHOLDER.findall(_without_variables(word))
        self.used += [name for name in names if name in self.values]
        whole = self._whole(word, names)
        if whole is not None:
            return whole
        plain = _replace(word, self.values)
        if "{{" not in plain and "}}" not in plain:
            self._note_missing(plain)
            return plain
        if _holds_json(plain):
            return plain
        for other in (_formatted(word, self.values), _halved(plain)):
            if other is not None and (_holds_json(other) or (not PLACEHOLDER.search(other) and "{" not in other)):
                self.is_doubled = True
                return other
        if not _is_variable_only(plain):
            self.unclear.append(word)
        return plain

    def _whole(self, word: str, names: list[str]) -> str | None:
        """A word that is one placeholder of JSON and not in single quotes: the shell would take its quotes away."""
        if len(names) != 1 or names[0] not in self.values:
            return None
        value = self.values[names[0]]
        match = re.fullmatch(r"""(?P<flag>-[\w.-]+=)?(?P<quote>"?)\{[\w.-]+\}(?P=quote)""", word)
        if match is None or '"' not in value or not _is_json(value):
            return None
        self.requoted.append(names[0])
        return f"{match['flag'] or ''}{shlex.quote(value)}"

    def _note_missing(self, text: str) -> None:
        if not _holds_json(text):
            self.missing += PLACEHOLDER.findall(_without_variables(text))


def _replace(text: str, values: Mapping[str, str]) -> str:
    """Each known placeholder replaced; `${NAME}` is the shell's and stays."""

    def value(found: re.Match[str]) -> str:
        return values.get(found[1], found[0])

    return re.sub(rf"(?<!\$){PLACEHOLDER.pattern}", value, text)


def _formatted(word: str, values: Mapping[str, str]) -> str | None:
    """As `str.format` reads it, None where it would fail."""
    parts: list[str] = []
    try:
        for literal, name, spec, conversion in string.Formatter().parse(word):
            parts.append(literal)
            if name is None:
                continue
            if name not in values or spec or conversion:
                return None
            parts.append(values[name])
    except ValueError:
        return None
    return "".join(parts)


def _halved(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _holds_json(word: str) -> bool:
    """True when the word, as a shell hands it over, is or ends in a JSON object or list."""
    try:
        words = shlex.split(word)
    except ValueError:
        return False
    if len(words) != 1:
        return False
    begin = re.search(r"[{\[]", words[0])
    return begin is not None and _is_json(words[0][begin.start() :])


def _is_json(text: str) -> bool:
    try:
        return isinstance(read_json(text), dict | list)
    except ValueError:
        return False


def _without_variables(word: str) -> str:
    return re.sub(r"\$\{[^}]*\}", "", word)


def _is_variable_only(word: str) -> bool:
    return not re.search(r"[{}]", re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "", word))
