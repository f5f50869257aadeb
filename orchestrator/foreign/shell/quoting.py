"""What stands inside one word: quotes, escapes, `$NAME` and its like, as pieces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import InputError
from orchestrator.foreign.shell.pieces import Arithmetic, Piece, Reference, Substitution, Text

MAX_DEPTH = 20
"""Quotes and brackets inside each other."""

_PARAMETER = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*?$!#-])(?:\[(?P<index>[^\]\n]*)\])?")
_EXPANSION = re.compile(r":?[-=?+]|%%?|##?")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
PLACEHOLDER = re.compile(r"<[A-Za-z](?:[\w ./:,|-]{0,60}\w)?>")
"""`<your-model>`: a gap that a page leaves to its reader; a shell would read two redirections, and nobody writes so."""

_HEREDOC = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"\\]?)(?P<end>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)?")
_CAT = re.compile(
    r"\$\([ \t\n]*cat[ \t]*<<(?P<dash>-?)[ \t]*(?P<quote>['\"\\]?)(?P<end>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)?[ \t]*\n"
    r"(?:(?P<body>.*?)\n)??[ \t]*(?P=end)[ \t\n]*\)",
    re.DOTALL,
)
_ANSI_NUMBER = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|([0-7]{1,3})")


@dataclass(slots=True, kw_only=True)
class Characters:
    """A text and how far it is read. `is_script`: False: `$` and backticks are letters."""

    text: str
    first_line: int
    is_script: bool
    at: int = 0
    depth: int = 0
    counted: tuple[int, int] = (0, 0)

    @property
    def line(self) -> int:
        at, lines = self.counted
        if self.at < at:
            at, lines = 0, 0
        lines += self.text.count("\n", at, self.at)
        self.counted = (self.at, lines)
        return self.first_line + lines

    def piece(self) -> Sequence[Piece]:
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
        if char == "<" and self.is_script and (gap := PLACEHOLDER.match(self.text, self.at)) is not None:
            self.at = gap.end()
            return [Substitution(source=gap[0])]
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
            raise self.never_closed(quote, line)
        inside, self.at = self.text[self.at + 1 : end], end + 1
        return inside

    def _double(self) -> Sequence[Piece]:
        line = self.line
        self.at += 1
        pieces: list[Piece] = [Text(text="", is_quoted=True)]
        while self.at < len(self.text) and self.text[self.at] != '"':
            pieces.extend(self._inside_double())
        if self.at >= len(self.text):
            raise self.never_closed('"', line)
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
            raise self.never_closed("`", line)
        self.at += 1
        return Substitution(source=self.text[begin : self.at], is_quoted=is_quoted)

    def _dollar(self, *, is_quoted: bool) -> Sequence[Piece]:
        begin, after = self.at, self.text[self.at + 1 : self.at + 2]
        if after == "(":
            return self._command(begin, is_quoted=is_quoted)
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

    def _command(self, begin: int, *, is_quoted: bool) -> Sequence[Piece]:
        is_arithmetic = self.text.startswith("$((", self.at)
        self.at += 1
        self._bracket("(", ")")
        source = self.text[begin : self.at]
        if is_arithmetic and source.endswith("))"):
            inner = self._within(source[3:-2]).quoted_pieces()
            return [Arithmetic(inner=inner, source=source, is_quoted=is_quoted)]
        if (document := _CAT.fullmatch(source)) is not None:
            body = re.sub(r"(?m)^\t+", "", document["body"] or "") if document["dash"] else document["body"] or ""
            if document["quote"]:
                return [Text(text=body.rstrip("\n"), is_quoted=is_quoted)]
            return self._within(body.rstrip("\n")).quoted_pieces()
        return [Substitution(source=source, is_quoted=is_quoted)]

    def quoted_pieces(self) -> tuple[Piece, ...]:
        """The whole text as if it stood in double quotes."""
        pieces: list[Piece] = []
        while self.at < len(self.text):
            pieces.extend(self._inside_double())
        return joined(pieces)

    def _bracket(self, opens: str, closes: str) -> None:
        """Move past a bracket and all that it holds; quotes inside are respected."""
        outer, self.depth = self.depth, self.deeper()
        self._move_past(opens, closes)
        self.depth = outer

    def _move_past(self, opens: str, closes: str) -> None:
        line, depth = self.line, 0
        ends_with: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 1
            elif char == "#" and self.text[self.at - 1 : self.at] in {" ", "\t", "\n", ";", "("}:
                self._to_line_end()
                continue
            elif (document := _HEREDOC.match(self.text, self.at)) and self.text[self.at - 1] != "<":
                ends_with.append(document["end"])
                self.at = document.end()
                continue
            elif char == "\n" and ends_with:
                self.at += 1
                self._past_documents(ends_with)
                ends_with = []
                continue
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
        raise self.never_closed(opens, line)

    def _to_line_end(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _past_documents(self, ends_with: Sequence[str]) -> None:
        """Past the texts of here-documents, whose quotes and brackets close nothing."""
        for word in ends_with:
            while self.at < len(self.text):
                begin = self.at
                self._to_line_end()
                row = self.text[begin : self.at]
                self.at = min(self.at + 1, len(self.text))
                if row.strip() == word:
                    break

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
            raise self.never_closed('"', line)
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
                pieces.extend(self.piece())
        return joined(pieces)

    def _within(self, text: str) -> Characters:
        """A lexer for a text inside this one's."""
        return Characters(text=text, first_line=self.line, is_script=True, depth=self.deeper())

    def deeper(self) -> int:
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
        raise self.never_closed("${", line)

    def _ansi(self) -> Text:
        line = self.line
        self.at += 2
        out: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != "'":
            char = self.text[self.at]
            self.at += 1
            out.append(self._ansi_escape() if char == "\\" else char)
        if self.at >= len(self.text):
            raise self.never_closed("$'", line)
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

    def never_closed(self, what: str, line: int) -> InputError:
        return InputError(
            f"line {line}: `{what}` is opened and never closed", hint="paste the whole command, quotes included"
        )


def joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbouring texts of one kind as one."""
    out: list[Piece] = []
    for piece in pieces:
        last = out[-1] if out else None
        if isinstance(piece, Text) and isinstance(last, Text) and piece.is_quoted == last.is_quoted:
            out[-1] = Text(text=last.text + piece.text, is_quoted=last.is_quoted)
        else:
            out.append(piece)
    return tuple(out)
