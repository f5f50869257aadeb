"""Pieces to words: variables filled in as far as they are known, and what was not known kept with the word."""

from __future__ import annotations

import ast
import fnmatch
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.foreign.shell.pieces import Arithmetic, Piece, RawWord, Reference, Substitution, Text

MAX_WORD = 100_000
"""Characters of one word: variables that hold each other grow no further."""

_WORKING_FOLDER = frozenset({"$(pwd)", "`pwd`", "$( pwd )"})
_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: int(a / b),
    ast.Mod: lambda a, b: a - b * int(a / b),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word as far as it is known.

    Attributes:
        text: What is not known stands as written: `${NAME}`, `$(command)`.
        missing: Names of variables that nothing sets; `HOME` and `PWD` are left to the reader.
        code: Shell code whose value only running it tells.
    """

    text: str
    line: int
    missing: tuple[str, ...] = ()
    code: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """True when nothing in it waits for somebody's environment or a shell."""
        return not self.missing and not self.code

    @property
    def reference(self) -> str | None:
        """The variable when the word is one unset variable and nothing else."""
        return self.missing[0] if len(self.missing) == 1 and self.text == f"${{{self.missing[0]}}}" else None


@dataclass(slots=True, kw_only=True)
class Variables:
    """What is known while a script is read from top to bottom.

    Attributes:
        values: An array has several words, and its name in `arrays`.
        positional: `$1`, `$2`, …; None: not known.
        defaults: Defaults that were taken because nothing sets the variable.
        left_out: Variables whose `${NAME:+words}` came to nothing.
        required: `${NAME:?message}` of unset variables.
        unset: What `unset` took away.
        uncertain: Set on a condition, in a loop or by a program: set or not, only running it tells.
        assumed_unset: Taken as not set in a condition, because nothing in the text sets them.
    """

    values: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    exported: set[str] = field(default_factory=set)
    positional: tuple[Word, ...] | None = None
    defaults: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    required: dict[str, str] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)
    uncertain: set[str] = field(default_factory=set)
    assumed_unset: set[str] = field(default_factory=set)

    def copy(self) -> Variables:
        """The same knowledge, to be changed on its own; what is recorded goes to both."""
        return replace(self, values=dict(self.values), arrays=set(self.arrays), exported=set(self.exported))


def expand(word: RawWord, variables: Variables) -> tuple[Word, ...]:
    """A word's fields: none, one, or several when an unquoted variable holds blanks or an array is meant."""
    fields = _Fields(line=word.line)
    _expand_into(fields, word.pieces, variables, splits_text=False)
    return fields.done()


def join(pieces: tuple[Piece, ...], variables: Variables, *, line: int) -> Word:
    """Pieces as one word, nothing split: the right side of an assignment."""
    fields = _Fields(line=line)
    fields.add("", splits=False)
    for piece in pieces:
        for index, part in enumerate(_values(piece, variables, line)):
            fields.add_word(replace(part, text=f" {part.text}" if index else part.text), splits=False)
    return fields.done()[0]


@dataclass(slots=True, kw_only=True)
class _Fields:
    line: int
    finished: list[Word] = field(default_factory=list)
    current: Word | None = None
    vanishes: bool = False
    """An array without items stands in it: `"${A[@]}"` alone is no word, not an empty one."""

    def add(self, text: str, *, splits: bool) -> None:
        self.add_word(Word(text=text, line=self.line), splits=splits)

    def add_word(self, word: Word, *, splits: bool) -> None:
        if not splits:
            self._append(word)
            return
        for index, part in enumerate(split(word)):
            if index:
                self.end()
            if part.text:
                self._append(part)

    def _append(self, word: Word) -> None:
        if self.current is None:
            self.current = replace(word, line=self.line)
            return
        self.current = Word(
            text=(self.current.text + word.text)[:MAX_WORD],
            line=self.line,
            missing=tuple(dict.fromkeys((*self.current.missing, *word.missing))),
            code=tuple(dict.fromkeys((*self.current.code, *word.code))),
        )

    def end(self) -> None:
        if self.current is not None and not (self.vanishes and self.current.text == ""):
            self.finished.append(self.current)
        self.current = None
        self.vanishes = False

    def done(self) -> tuple[Word, ...]:
        self.end()
        return tuple(self.finished)


def split(word: Word) -> tuple[Word, ...]:
    """A word's parts between blanks; code that is not known is one sign, whatever blanks it holds."""
    if word.is_known:
        return tuple(replace(word, text=part) for part in re.split(r"[ \t\n]+", word.text))
    whole = "|".join(map(re.escape, sorted(word.code, key=len, reverse=True)))
    parts = re.findall(rf"((?:{whole}|[^ \t\n])+)" if whole else r"([^ \t\n]+)", word.text)
    before, after = word.text[:1].isspace(), word.text[-1:].isspace()
    return tuple(
        Word(
            text=part,
            line=word.line,
            missing=tuple(name for name in word.missing if f"${{{name}}}" in part),
            code=tuple(code for code in word.code if code in part),
        )
        for part in (*([""] if before else []), *parts, *([""] if after else []))
    )


def _expand_into(fields: _Fields, pieces: tuple[Piece, ...], variables: Variables, *, splits_text: bool) -> None:
    for piece in pieces:
        if isinstance(piece, Text):
            fields.add(piece.text, splits=splits_text and not piece.is_quoted)
            continue
        if isinstance(piece, Reference) and not piece.is_quoted and (argument := _argument_of(piece, variables)):
            _expand_into(fields, argument, variables, splits_text=True)
            continue
        values = _values(piece, variables, fields.line)
        if isinstance(piece, Reference) and _is_all(piece) and piece.is_quoted and "*" in {piece.name, piece.index}:
            values = (Word(text=" ".join(v.text for v in values), line=fields.line),)
        elif isinstance(piece, Reference) and _is_all(piece) and not values:
            fields.vanishes = True
        for index, value in enumerate(values):
            if index:
                fields.end()
            fields.add_word(value, splits=not piece.is_quoted)


def _argument_of(piece: Reference, variables: Variables) -> tuple[Piece, ...]:
    """The argument when it is what the expansion comes to: `:-` of an unset, `:+` of a set variable."""
    known = _lookup(piece, variables)
    is_set = known is not None and (not piece.operator.startswith(":") or any(w.text for w in known))
    kind = piece.operator.lstrip(":")
    if (kind in {"-", "="} and not is_set) or (kind == "+" and is_set):
        if kind != "+":
            _take_default(piece, variables)
        return piece.argument
    return ()


def _take_default(piece: Reference, variables: Variables) -> None:
    value = join(piece.argument, variables, line=0)
    if value.text and not piece.name.isdigit():
        variables.defaults.setdefault(piece.name, value.text)
    if piece.operator.endswith("="):
        variables.values[piece.name] = (value,)


def _values(piece: Piece, variables: Variables, line: int) -> tuple[Word, ...]:
    if isinstance(piece, Text):
        return (Word(text=piece.text, line=line),)
    if isinstance(piece, Substitution):
        if piece.source in _WORKING_FOLDER:
            return _lookup_name("PWD", variables) or (Word(text="${PWD}", line=line, missing=("PWD",)),)
        return (Word(text=piece.source, line=line, code=(piece.source,)),)
    if isinstance(piece, Arithmetic):
        return (_computed(piece, variables, line),)
    return _referenced(piece, variables, line)


def _referenced(piece: Reference, variables: Variables, line: int) -> tuple[Word, ...]:
    argument = _argument_of(piece, variables)
    if argument:
        return (join(argument, variables, line=line),)
    known = _lookup(piece, variables)
    kind = piece.operator.lstrip(":")
    if kind == "+":
        if known is None:
            variables.left_out.setdefault(piece.name, join(piece.argument, variables, line=line).text)
        return ()
    if kind in {"-", "="} and (known is None or not any(word.text for word in known)):
        return ()
    if known is not None and (kind != "?" or any(word.text for word in known)):
        return _trimmed(piece, known, variables)
    if kind == "?":
        variables.required.setdefault(piece.name, join(piece.argument, variables, line=line).text)
    if piece.name in "@*":
        return ()
    if not piece.name[0].isalpha() and piece.name[0] != "_" and not piece.name.isdigit():
        return (Word(text=piece.source, line=line, code=(piece.source,)),)
    return (Word(text=f"${{{piece.name}}}", line=line, missing=(piece.name,)),)


def _trimmed(piece: Reference, known: tuple[Word, ...], variables: Variables) -> tuple[Word, ...]:
    if piece.operator not in {"%", "%%", "#", "##"}:
        return known
    pattern = join(piece.argument, variables, line=0).text
    return tuple(replace(w, text=_trim(w.text, piece.operator, pattern)) if w.is_known else w for w in known)


def _trim(text: str, kind: str, pattern: str) -> str:
    cuts = range(min(len(text), 4096) + 1)
    if kind.startswith("%"):
        ends = [n for n in cuts if fnmatch.fnmatchcase(text[len(text) - n :], pattern)]
        taken = (max(ends) if kind == "%%" else min(ends)) if ends else 0
        return text[: len(text) - taken]
    starts = [n for n in cuts if fnmatch.fnmatchcase(text[:n], pattern)]
    return text[(max(starts) if kind == "##" else min(starts)) if starts else 0 :]


def _is_all(piece: Reference) -> bool:
    return piece.name in {"@", "*"} or piece.index in {"@", "*"}


def _lookup(piece: Reference, variables: Variables) -> tuple[Word, ...] | None:
    if piece.name in {"@", "*"}:
        return variables.positional
    if piece.name.isdigit():
        at = int(piece.name) - 1
        if variables.positional is None or at < 0:
            return None
        return variables.positional[at : at + 1] or None
    known = _lookup_name(piece.name, variables)
    if known is None or piece.index in {"@", "*"}:
        return known
    at = int(piece.index) if piece.index is not None and piece.index.isdecimal() and len(piece.index) < 6 else 0
    return known[at : at + 1] or None


def _lookup_name(name: str, variables: Variables) -> tuple[Word, ...] | None:
    return variables.values.get(name)


def home_for_tilde(text: str) -> str:
    """`~` and `${HOME}` at the beginning as `~`."""
    return re.sub(r"^(\$HOME|\$\{HOME\})(?=/|$)", "~", text)


def _computed(piece: Arithmetic, variables: Variables, line: int) -> Word:
    inner = join(piece.inner, variables, line=line)
    names = re.sub(
        r"[A-Za-z_][A-Za-z0-9_]*",
        lambda name: known[0].text if (known := variables.values.get(name[0])) and known[0].is_known else name[0],
        inner.text,
    )
    number = _arithmetic(names) if inner.is_known else None
    if number is None:
        return Word(text=piece.source, line=line, missing=inner.missing, code=(piece.source,))
    return Word(text=str(number), line=line)


def _arithmetic(text: str) -> int | None:
    """Whole numbers, `+ - * / %` and brackets; None for anything else."""
    if len(text) > 200 or not re.fullmatch(r"[0-9+\-*/% ()\t\n]+", text) or "**" in text or "//" in text:
        return None
    try:
        return _evaluated(ast.parse(text.strip().replace("/", "//"), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError, OverflowError):
        return None


def _evaluated(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) < 10**15:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluated(node.operand)
    if isinstance(node, ast.BinOp) and (compute := _BINARY.get(type(node.op))) is not None:
        return compute(_evaluated(node.left), _evaluated(node.right))
    raise ValueError("not a sum")
