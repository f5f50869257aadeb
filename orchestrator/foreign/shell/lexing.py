"""Shell text cut into words and operators, as bash cuts it, and as people mean it where bash would not.

Theory of operation. One pass over the characters. Quotes and escapes are resolved at once; `$NAME` and its like become
pieces that `expanding` fills in later. What published commands get wrong and their readers put right without noticing
is put right here too, each with a remark: a backslash followed by spaces or a comment, a comment or an empty line
between continued lines, a lost backslash before a line that begins with `-`, PowerShell's and cmd's line ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.errors import InputError
from orchestrator.foreign.shell.pieces import Arithmetic, Operator, Piece, RawWord, Reference, Substitution, Text, Token

MAX_CHARACTERS = 300_000
MAX_DEPTH = 20
"""Expansions inside expansions."""

_OPERATORS = (
    *("&>>", "<<<", "<<-", ";;&"),
    *("&&", "||", ";;", ";&", "|&", "&>", ">&", "<&", "<<", ">>", ">|", "<>"),
    *(";", "&", "|", "<", ">", "(", ")"),
)
REDIRECTIONS = frozenset({"&>>", "<<<", "<<-", "&>", ">&", "<&", "<<", ">>", ">|", "<>", "<", ">"})
_CONTINUED = re.compile(r"\\[ \t]*(#[^\n]*)?\n")
_GAP = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*(?P<next>[^\n]?[^\n]?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*?$!#-])(?:\[(?P<index>[^\]\n]*)\])?")
_EXPANSION = re.compile(r":?[-=?+]|%%?|##?")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_ANSI_NUMBER = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|([0-7]{1,3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that was put right, on its line."""

    line: int
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What was cut, and what had to be put right for it."""

    tokens: tuple[Token, ...]
    remarks: tuple[Remark, ...] = ()


def cut(text: str, *, line: int = 1, is_script: bool = True) -> Tokens:
    """Cut shell text.

    Args:
        line: The line on which the text begins, for messages.
        is_script: False: a line end is a blank like any other, and `;`, `|`, `#` and their like are letters, as for
            `shlex.split` (a compose file's command).

    Raises:
        InputError: A quote or a bracket is never closed (with its line), or the text is too large.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"too large for a command: {len(text)} characters, at most {MAX_CHARACTERS}")
    lexer = _Lexer(text=text.replace("\r\n", "\n"), first_line=line, is_script=is_script)
    return Tokens(tokens=tuple(lexer.tokens()), remarks=tuple(lexer.remarks))


@dataclass(slots=True, kw_only=True)
class _Lexer:
    text: str
    first_line: int
    is_script: bool
    at: int = 0
    remarks: list[Remark] = field(default_factory=list)
    found: list[Token] = field(default_factory=list)
    heredocs: list[tuple[int, str, bool]] = field(default_factory=list)
    counted: tuple[int, int] = (0, 0)
    depth: int = 0

    @property
    def line(self) -> int:
        at, lines = self.counted
        if self.at < at:
            at, lines = 0, 0
        lines += self.text.count("\n", at, self.at)
        self.counted = (self.at, lines)
        return self.first_line + lines

    def tokens(self) -> Sequence[Token]:
        while self.at < len(self.text):
            self._step()
        self._take_heredocs()
        return self.found

    def _step(self) -> None:
        char = self.text[self.at]
        if char in " \t" or (char == "\n" and not self.is_script):
            self.at += 1
        elif (continued := _CONTINUED.match(self.text, self.at)) is not None:
            self._continue(continued)
        elif char == "\n":
            self._end_line()
        elif char == "#" and self.is_script:
            self._comment()
        elif (operator := self._operator()) is not None:
            self.found.append(Operator(text=operator, line=self.line))
            self.at += len(operator)
        else:
            self._word_or_descriptor()

    def _operator(self) -> str | None:
        if not self.is_script or self.text.startswith(("<(", ">("), self.at):
            return None
        return next((op for op in _OPERATORS if self.text.startswith(op, self.at)), None)

    def _continue(self, continued: re.Match[str]) -> None:
        line = self.line
        self.at = continued.end()
        if continued[0] != "\\\n":
            self._remark(
                line, "`\\` before the end of the line", "spaces or a comment follow it; read as a line goes on"
            )
        # Comments and empty lines between continued lines: a shell would end the command there.
        gap = _GAP.match(self.text, self.at)
        if self.is_script and gap is not None and "\n" in gap[0] and _is_flag(gap["next"]):
            self._remark(self.line, "a comment or an empty line between continued lines", "a shell ends there; read on")
            self.at = gap.start("next")

    def _end_line(self) -> None:
        line = self.line
        self.at += 1
        if self.heredocs:
            self._take_heredocs()
        elif self._goes_on():
            gap = _GAP.match(self.text, self.at)
            self._remark(line, "a line that ends without `\\`", "the next one begins with a flag; read as one command")
            self.at = gap.start("next") if gap is not None else self.at
            return
        self.found.append(Operator(text="\n", line=line))

    def _goes_on(self) -> bool:
        before = self.found[-1] if self.found else None
        if not isinstance(before, RawWord) or before.plain in {"in", "then", "do", "else"}:
            return False
        gap = _GAP.match(self.text, self.at)
        return gap is not None and _is_flag(gap["next"])

    def _comment(self) -> None:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        comment = self.text[self.at : end].rstrip()
        if comment.endswith("\\") and self.found and isinstance(self.found[-1], RawWord):
            self._remark(self.line, "a comment that ends with `\\`", "a shell ends the command there; read on")
            end = min(end + 1, len(self.text))
        self.at = end

    def _word_or_descriptor(self) -> None:
        descriptor = re.compile(r"[0-9]+(?=[<>])").match(self.text, self.at) if self.is_script else None
        if descriptor is not None:
            self.at = descriptor.end()
            return
        line = self.line
        pieces = self._pieces()
        # A comment in backticks stands between arguments and comes to nothing.
        if pieces and all(isinstance(p, Substitution) and _is_comment(p.source) and not p.is_quoted for p in pieces):
            return
        word = RawWord(pieces=pieces, line=line)
        if self.is_script and self.text.startswith("(", self.at) and _ARRAY.fullmatch(word.plain or ""):
            word = RawWord(pieces=pieces, line=line, items=self._array(line))
        self._await_heredoc(word)
        self.found.append(word)

    def _array(self, line: int) -> tuple[RawWord, ...]:
        self.at += 1
        outer, self.found, self.depth = self.found, [], self._deeper()
        while self.at < len(self.text) and self.text[self.at] != ")":
            self._step()
        items, self.found, self.depth = self.found, outer, self.depth - 1
        if self.at >= len(self.text):
            raise self._never_closed("(", line)
        self.at += 1
        return tuple(item for item in items if isinstance(item, RawWord))

    def _await_heredoc(self, word: RawWord) -> None:
        before = self.found[-1] if self.found else None
        if isinstance(before, Operator) and before.text in {"<<", "<<-"}:
            ends_with = "".join(piece.text for piece in word.pieces if isinstance(piece, Text))
            self.heredocs.append((len(self.found) - 1, ends_with, before.text == "<<-"))

    def _take_heredocs(self) -> None:
        for index, ends_with, strips_tabs in self.heredocs:
            body: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                row, self.at = self.text[self.at : end], min(end + 1, len(self.text))
                if (row.lstrip("\t") if strips_tabs else row) == ends_with:
                    break
                body.append(row)
            opened = self.found[index]
            self.found[index] = (
                Operator(text=opened.text, line=opened.line, body="\n".join(body))
                if isinstance(opened, Operator)
                else opened
            )
        self.heredocs = []

    def _pieces(self) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        while self.at < len(self.text) and not self._ends_word(bool(pieces)):
            pieces.extend(self._piece())
        return _joined(pieces)

    def _ends_word(self, has_begun: bool) -> bool:
        char = self.text[self.at]
        if char in " \t\n" or (self._operator() is not None):
            return True
        if has_begun and (continued := _CONTINUED.match(self.text, self.at)) is not None:
            after = self.text[continued.end() : continued.end() + 2]
            if _is_flag(after):
                self._remark(
                    self.line, "no space before `\\`", "a shell joins the next flag to this word; read as two words"
                )
                return True
            return after[:1] in {" ", "\t"} or continued[0] != "\\\n"
        return False

    def _piece(self) -> Sequence[Piece]:
        char = self.text[self.at]
        if char == "\\":
            return self._escape()
        if char == "'":
            return [Text(text=self._until("'"), is_quoted=True)]
        if char == '"':
            return self._double()
        if char == "`" and self.is_script:
            return [self._backtick(is_quoted=False)]
        if char == "$" and self.is_script:
            return self._dollar(is_quoted=False)
        if self.text.startswith(("<(", ">("), self.at) and self.is_script:
            begin = self.at
            self.at += 1
            self._bracket("(", ")")
            return [Substitution(source=self.text[begin : self.at])]
        self.at += 1
        return [Text(text=char)]

    def _escape(self) -> Sequence[Piece]:
        if self.text.startswith("\\\n", self.at):
            self.at += 2
            return []
        escaped = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        return [Text(text=escaped, is_quoted=True)] if escaped else []

    def _until(self, quote: str) -> str:
        line = self.line
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise self._never_closed(quote, line)
        inside, self.at = self.text[self.at + 1 : end], end + 1
        return inside

    def _double(self) -> Sequence[Piece]:
        line = self.line
        self.at += 1
        pieces: list[Piece] = [Text(text="", is_quoted=True)]
        while self.at < len(self.text) and self.text[self.at] != '"':
            pieces.extend(self._inside_double())
        if self.at >= len(self.text):
            raise self._never_closed('"', line)
        self.at += 1
        return pieces

    def _inside_double(self) -> Sequence[Piece]:
        char = self.text[self.at]
        if char == "\\":
            after = self.text[self.at + 1 : self.at + 2]
            self.at += 2
            if after == "\n":
                return []
            return [Text(text=after if after and after in '$`"\\' else f"\\{after}", is_quoted=True)]
        if char == "`" and self.is_script:
            return [self._backtick(is_quoted=True)]
        if char == "$" and self.is_script:
            return self._dollar(is_quoted=True)
        self.at += 1
        return [Text(text=char, is_quoted=True)]

    def _backtick(self, *, is_quoted: bool) -> Substitution:
        line, begin = self.line, self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "`":
            self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            raise self._never_closed("`", line)
        self.at += 1
        return Substitution(source=self.text[begin : self.at], is_quoted=is_quoted)

    def _dollar(self, *, is_quoted: bool) -> Sequence[Piece]:
        begin, after = self.at, self.text[self.at + 1 : self.at + 2]
        if after == "(":
            return [self._command(begin, is_quoted=is_quoted)]
        if after == "{":
            return [self._braced(begin, is_quoted=is_quoted)]
        if after == "'" and not is_quoted:
            return [self._ansi()]
        if after == '"' and not is_quoted:
            self.at += 1
            return self._double()
        named = _PARAMETER.match(self.text, self.at + 1)
        if named is None:
            self.at += 1
            return [Text(text="$", is_quoted=is_quoted)]
        name = named["name"] if not named["name"].isdigit() else named["name"][0]
        self.at += 1 + len(name)
        return [Reference(name=name, source=self.text[begin : self.at], is_quoted=is_quoted)]

    def _command(self, begin: int, *, is_quoted: bool) -> Piece:
        is_arithmetic = self.text.startswith("$((", self.at)
        self.at += 1
        self._bracket("(", ")")
        source = self.text[begin : self.at]
        if is_arithmetic and source.endswith("))"):
            inner = self._within(source[3:-2]).quoted_pieces()
            return Arithmetic(inner=inner, source=source, is_quoted=is_quoted)
        return Substitution(source=source, is_quoted=is_quoted)

    def quoted_pieces(self) -> tuple[Piece, ...]:
        """The whole text as if it stood in double quotes."""
        pieces: list[Piece] = []
        while self.at < len(self.text):
            pieces.extend(self._inside_double())
        return _joined(pieces)

    def _bracket(self, opens: str, closes: str) -> None:
        """Move past a bracket and all that it holds; quotes inside are respected."""
        outer, self.depth = self.depth, self._deeper()
        self._move_past(opens, closes)
        self.depth = outer

    def _move_past(self, opens: str, closes: str) -> None:
        line, depth = self.line, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 1
            elif char == "'":
                self._until("'")
                continue
            elif char == '"':
                self._skip_double()
                continue
            elif char == opens:
                depth += 1
            elif char == closes:
                depth -= 1
                if depth == 0:
                    self.at += 1
                    return
            self.at += 1
        raise self._never_closed(opens, line)

    def _skip_double(self) -> None:
        line = self.line
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            if self.text.startswith("$(", self.at):
                self.at += 1
                self._bracket("(", ")")
            else:
                self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            raise self._never_closed('"', line)
        self.at += 1

    def _braced(self, begin: int, *, is_quoted: bool) -> Piece:
        line = self.line
        end = self._closing_brace(line, quotes='"' if is_quoted else "'\"")
        inside = self.text[begin + 2 : end]
        self.at = end + 1
        source = self.text[begin : self.at]
        named = _PARAMETER.match(inside)
        if named is None:
            return Substitution(source=source, is_quoted=is_quoted)
        rest = inside[named.end() :]
        operator = _EXPANSION.match(rest)
        if rest and operator is None:
            return Substitution(source=source, is_quoted=is_quoted)
        argument = rest[operator.end() :] if operator is not None else ""
        lexer = self._within(argument)
        return Reference(
            name=named["name"],
            source=source,
            operator=operator[0] if operator is not None else "",
            argument=lexer.quoted_pieces() if is_quoted else lexer.argument_pieces(),
            index=named["index"],
            is_quoted=is_quoted,
        )

    def argument_pieces(self) -> tuple[Piece, ...]:
        """The whole text as the unquoted argument of an expansion: blanks are letters, quotes count."""
        pieces: list[Piece] = []
        while self.at < len(self.text):
            if self.text[self.at] == "$":
                pieces.extend(self._dollar(is_quoted=False))
            elif self.text[self.at] in "<>":
                pieces.append(Text(text=self.text[self.at]))
                self.at += 1
            else:
                pieces.extend(self._piece())
        return _joined(pieces)

    def _within(self, text: str) -> _Lexer:
        """A lexer for a text inside this one's."""
        return _Lexer(text=text, first_line=self.line, is_script=True, depth=self._deeper())

    def _deeper(self) -> int:
        if self.depth >= MAX_DEPTH:
            raise InputError(f"line {self.line}: quotes and brackets nested deeper than {MAX_DEPTH}")
        return self.depth + 1

    def _closing_brace(self, line: int, *, quotes: str) -> int:
        at, depth = self.at + 2, 1
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif char in quotes:
                at = max(at, self.text.find(char, at + 1))
            elif self.text.startswith("${", at):
                depth += 1
                at += 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    return at
            at += 1
        raise self._never_closed("${", line)

    def _ansi(self) -> Text:
        line = self.line
        self.at += 2
        out: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != "'":
            char = self.text[self.at]
            self.at += 1
            out.append(self._ansi_escape() if char == "\\" else char)
        if self.at >= len(self.text):
            raise self._never_closed("$'", line)
        self.at += 1
        return Text(text="".join(out), is_quoted=True)

    def _ansi_escape(self) -> str:
        number = _ANSI_NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            code = int(number[1] or number[2] or "0", 16) if number[3] is None else int(number[3], 8)
            return chr(code) if not 0xD800 <= code <= 0xDFFF else ""
        char = self.text[self.at : self.at + 1]
        self.at += 1
        return _ANSI.get(char, char if char in "\\'\"?" else f"\\{char}")

    def _remark(self, line: int, what: str, why: str) -> None:
        self.remarks.append(Remark(line=line, what=what, why=why))

    def _never_closed(self, what: str, line: int) -> InputError:
        return InputError(
            f"line {line}: `{what}` is opened and never closed", hint="paste the whole command, quotes included"
        )


def _is_flag(two: str) -> bool:
    return len(two) == 2 and two[0] == "-" and (two[1] == "-" or two[1].isalpha())


def _is_comment(source: str) -> bool:
    return source.startswith("`") and source[1:-1].lstrip().startswith("#")


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbouring texts of one kind as one."""
    out: list[Piece] = []
    for piece in pieces:
        last = out[-1] if out else None
        if isinstance(piece, Text) and isinstance(last, Text) and piece.is_quoted == last.is_quoted:
            out[-1] = Text(text=last.text + piece.text, is_quoted=last.is_quoted)
        else:
            out.append(piece)
    return tuple(out)
