"""Words and operators as statements: simple commands, and the blocks that hold them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import InputError
from orchestrator.foreign.shell.lexing import REDIRECTIONS
from orchestrator.foreign.shell.pieces import Operator, RawWord, Text, Token

MAX_DEPTH = 30
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_SEPARATORS = frozenset({";", "&", "&&", "||", "|", "|&", "\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """`> log`, `2>&1`, `<<EOF` with its `body`."""

    operator: str
    target: RawWord | None
    line: int
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """One command: assignments before it, its words, its redirections. `after`: the operator that follows it."""

    assignments: tuple[RawWord, ...]
    words: tuple[RawWord, ...]
    redirections: tuple[Redirection, ...]
    line: int
    after: str = ";"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """What runs when the `condition` holds; () for `else`."""

    condition: tuple[Statement, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    branches: tuple[Branch, ...]
    line: int
    after: str = ";"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One arm of a `case`."""

    patterns: tuple[RawWord, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    subject: RawWord
    choices: tuple[Choice, ...]
    line: int
    after: str = ";"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """`for`, `while`, `until`, `select`; `variable` of a `for`."""

    kind: str
    variable: str | None
    body: tuple[Statement, ...]
    line: int
    after: str = ";"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`{ …; }`, `( … )`, or a function's definition when it has a `name`."""

    body: tuple[Statement, ...]
    line: int
    name: str | None = None
    is_subshell: bool = False
    after: str = ";"


Statement = Simple | If | Case | Loop | Group


def parse(tokens: Sequence[Token]) -> tuple[Statement, ...]:
    """Statements of a script, in order.

    A block that is never closed ends with the text; a word that closes none stands as a command of its own.

    Raises:
        InputError: Blocks nested too deep.
    """
    parser = _Parser(tokens)
    found: list[Statement] = []
    while not parser.is_done:
        found.extend(parser.statements(until=frozenset()))
        parser.skip_stray()
    return tuple(found)


def assigned_name(word: RawWord) -> str | None:
    """The variable when the word is an assignment (`A=b`, `A+=b`, `A=(…)`), else None."""
    first = word.pieces[0] if word.pieces else None
    if not isinstance(first, Text) or first.is_quoted:
        return None
    named = _ASSIGNMENT.match(first.text)
    return None if named is None else named[1]


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._tokens)

    def skip_stray(self) -> None:
        """Move past a token that begins nothing (`)`, `;;`, a stray `fi`)."""
        if not self.is_done:
            self._at += 1

    def statements(self, *, until: frozenset[str]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InputError(f"line {self._line}: blocks nested deeper than {MAX_DEPTH}")
        while not self.is_done:
            token = self._tokens[self._at]
            if isinstance(token, Operator) and token.text in _SEPARATORS:
                self._at += 1
            elif self._ends_block(token, until):
                break
            elif (statement := self._statement()) is not None:
                found.append(statement)
            else:
                break
        self._depth -= 1
        return tuple(found)

    def _ends_block(self, token: Token, until: frozenset[str]) -> bool:
        if isinstance(token, Operator):
            return token.text in {")", ";;", ";&", ";;&"}
        return token.plain in until or (self._depth > 1 and token.plain in _CLOSERS)

    def _statement(self) -> Statement | None:
        token = self._tokens[self._at]
        if isinstance(token, Operator):
            return self._group() if token.text == "(" else self._simple()
        match token.plain:
            case "if":
                return self._if()
            case "case":
                return self._case()
            case "for" | "while" | "until" | "select":
                return self._loop(token.plain)
            case "{":
                return self._group()
            case "function":
                return self._function(self._at + 1)
        following = self._text_at(self._at + 1), self._text_at(self._at + 2)
        if following == ("(", ")") and token.plain is not None:
            return self._function(self._at)
        return self._simple()

    def _simple(self) -> Simple | None:
        line, begin = self._line, self._at
        assignments: list[RawWord] = []
        words: list[RawWord] = []
        redirections: list[Redirection] = []
        in_test = False
        while not self.is_done:
            token = self._tokens[self._at]
            if isinstance(token, RawWord):
                self._at += 1
                in_test = (in_test or (token.plain == "[[" and not words)) and token.plain != "]]"
                is_assignment = not words and assigned_name(token) is not None
                (assignments if is_assignment else words).append(token)
            elif token.text in REDIRECTIONS and not in_test:
                redirections.append(self._redirection(token))
            elif in_test and token.text != "\n":
                self._at += 1
                words.append(RawWord(pieces=(Text(text=token.text),), line=token.line))
            else:
                break
        if self._at == begin:
            return None
        return Simple(
            assignments=tuple(assignments),
            words=tuple(words),
            redirections=tuple(redirections),
            line=line,
            after=self._after(),
        )

    def _redirection(self, token: Operator) -> Redirection:
        self._at += 1
        target = self._tokens[self._at] if not self.is_done else None
        if not isinstance(target, RawWord):
            return Redirection(operator=token.text, target=None, line=token.line, body=token.body)
        self._at += 1
        return Redirection(operator=token.text, target=target, line=token.line, body=token.body)

    def _if(self) -> If:
        line = self._line
        branches: list[Branch] = []
        while self._takes("if") or self._takes("elif"):
            condition = self.statements(until=frozenset({"then"}))
            self._takes("then")
            body = self.statements(until=frozenset({"elif", "else", "fi"}))
            branches.append(Branch(condition=condition, body=body))
        if self._takes("else"):
            branches.append(Branch(condition=(), body=self.statements(until=frozenset({"fi"}))))
        self._takes("fi")
        self._skip_redirections()
        return If(branches=tuple(branches), line=line, after=self._after())

    def _case(self) -> Case:
        line = self._line
        self._at += 1
        subject = self._word() or RawWord(pieces=(), line=line)
        self._skip_newlines()
        self._takes("in")
        choices: list[Choice] = []
        while not self.is_done:
            self._skip_newlines()
            if self._takes("esac") or self.is_done:
                break
            begin = self._at
            patterns = self._patterns()
            body = self.statements(until=frozenset({"esac"}))
            choices.append(Choice(patterns=patterns, body=body))
            if self._text_at(self._at) in {";;", ";&", ";;&"} or self._at == begin:
                self._at += 1
        return Case(subject=subject, choices=tuple(choices), line=line, after=self._after())

    def _patterns(self) -> tuple[RawWord, ...]:
        patterns: list[RawWord] = []
        if self._text_at(self._at) == "(":
            self._at += 1
        while not self.is_done:
            token = self._tokens[self._at]
            if isinstance(token, RawWord):
                patterns.append(token)
            elif token.text == ")":
                self._at += 1
                break
            elif token.text != "|":
                break
            self._at += 1
        return tuple(patterns)

    def _loop(self, kind: str) -> Loop:
        line = self._line
        self._at += 1
        named = self._word() if kind in {"for", "select"} else None
        self.statements(until=frozenset({"do"}))
        self._takes("do")
        body = self.statements(until=frozenset({"done"}))
        self._takes("done")
        self._skip_redirections()
        variable = named.plain if named is not None else None
        return Loop(kind=kind, variable=variable, body=body, line=line, after=self._after())

    def _function(self, at: int) -> Group:
        line = self._line
        self._at = at
        name = self._word()
        while self._text_at(self._at) in {"(", ")", "\n"}:
            self._at += 1
        body = self._group()
        named = name.plain if name is not None else None
        return Group(body=body.body, line=line, name=named or "", after=body.after)

    def _group(self) -> Group:
        line = self._line
        is_subshell = self._text_at(self._at) == "("
        if not is_subshell and not self._takes("{"):
            return Group(body=(), line=line)
        self._at += 1 if is_subshell else 0
        body = self.statements(until=frozenset({"}"}))
        if self._text_at(self._at) == ")":
            self._at += 1
        else:
            self._takes("}")
        self._skip_redirections()
        return Group(body=body, line=line, is_subshell=is_subshell, after=self._after())

    def _skip_redirections(self) -> None:
        while not self.is_done and isinstance(token := self._tokens[self._at], Operator) and token.text in REDIRECTIONS:
            self._redirection(token)

    def _skip_newlines(self) -> None:
        while self._text_at(self._at) == "\n":
            self._at += 1

    def _after(self) -> str:
        text = self._text_at(self._at)
        return text if text in {"&&", "||", "|", "|&", "&"} else ";"

    def _takes(self, keyword: str) -> bool:
        token = self._tokens[self._at] if not self.is_done else None
        if isinstance(token, RawWord) and token.plain == keyword:
            self._at += 1
            return True
        return False

    def _word(self) -> RawWord | None:
        token = self._tokens[self._at] if not self.is_done else None
        if isinstance(token, RawWord):
            self._at += 1
            return token
        return None

    def _text_at(self, at: int) -> str | None:
        token = self._tokens[at] if at < len(self._tokens) else None
        return token.text if isinstance(token, Operator) else None

    @property
    def _line(self) -> int:
        at = min(self._at, len(self._tokens) - 1)
        return self._tokens[at].line if self._tokens else 1
